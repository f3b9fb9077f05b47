"""How does a run's training look as a question, scaled until the answer is what was measured?"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from broadgauge.catalog.gpus import Gpu, find_gpu
from broadgauge.predict.asking.workload_case import training_case
from broadgauge.predict.case import TrainingCase, own_gpu_of
from broadgauge.predict.costs.compute import compute_costs
from broadgauge.predict.costs.pieces import ComputeCosts
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.facts.columns import Columns, columns_of
from broadgauge.predict.facts.knowledge import Knowledge
from broadgauge.predict.prediction import NORMAL_80, Interval
from broadgauge.predict.runs.cases import RunCase
from broadgauge.predict.runs.network import Basis, CarriedFabric, carried
from broadgauge.predict.system.costs import NO_GPU, scaled_costs, stand_in, steps_of, system_costs
from broadgauge.predict.timeline.evaluation import evaluate
from broadgauge.predict.whatif.changes import Change, WhatIfAnswer
from broadgauge.predict.whatif.core_prior import core_prior
from broadgauge.predict.whatif.hybrid_shards import refuse_unknown_shards
from broadgauge.specs.errors import InputError
from broadgauge.specs.machines.system import PathTimes, System

LEAST_EXPOSED_RATIO = 0.05
"""A step that waits less than this for communication says nothing of how fast its network is."""
FEW_LAUNCHES_RATIO = 0.03
"""Half-width of a measured figure with fewer than three launches. Source: docs/measurements.md:
steps of equal cases were within 1 to 3 % of each other on a quiet machine."""
RATIOS = np.geomspace(0.1, 10.0, 25)
"""Of communication, in which the one that gives the run's own step is looked for."""
MOST_STRETCH_RATIO = 1.25
"""A shaped link is filled to 80 % at least by what is sent over it: Gloo filled 93 to 99 %, NCCL 97
to 100 % (docs/measurements.md). What takes longer waits for something else than the link."""
CARRIED_RATIO: dict[Basis, float] = {
    "own": 1.03,
    "found": 1.25,
    "host": 1.08,
    "line": 1.15,
    "unknown": 3.0,
}
"""80 % bounds of a collective's time, by what it rests on. Source: own and host, the runs of
docs/measurements.md; a network of which nothing was measured is known to a factor of 3; of another
rate than that of a found network nobody has measured how the host's part goes along."""
NODES_RATIO, STRATEGY_RATIO = 1.1, 1.15
"""The same for a number of nodes, or a way of splitting, that was not measured."""


_Asked = TypeVar("_Asked", bound=str | int | float)


class RunModel:
    """The run's training as a question, scaled until it gives what was measured."""

    def __init__(
        self,
        base: RunCase,
        paths: tuple[PathTimes, ...],
        system: System | None,
        knowledge: Knowledge,
        gpus: Sequence[Gpu] | None = None,
    ) -> None:
        """`paths`: the run's own collectives; those of the system file come after them. `gpus`:
        those that are known; None: the shipped ones."""
        self.base, self._system, self._knowledge = base, system, knowledge
        self._paths = paths if system is None else (*paths, *system.paths)
        case = base.case
        gpu, own_gpu = self._find_gpu(gpus)
        self.own = carried(base, case.network, case.nodes, self._paths)
        self._question = training_case(
            base.workload,
            gpu=gpu,
            nodes=case.nodes,
            ranks_per_node=case.ranks_per_node,
            fabric=self.own.fabric,
        )
        self._question = replace(self._question, own_gpu=own_gpu)
        refuse_unknown_shards(base, self._question)
        modelled = self._evaluated([self._question], [self.own], 1.0, np.ones(1))
        step_s = base.step_s.value
        if base.without_s is not None:
            self.without_s = base.without_s.value
        elif case.world_size == 1:
            self.without_s = step_s
        else:
            self.without_s = step_s * float(modelled[1][0] / modelled[0][0])
        self._scale = self.without_s / float(modelled[1][0])
        self.is_identified = 1 - self.without_s / step_s >= max(
            LEAST_EXPOSED_RATIO, _half_width(base)
        )
        ratio = self._solve(step_s) if self.is_identified else 1.0
        self.ratio = min(ratio, MOST_STRETCH_RATIO)
        """Of communication, run over model."""
        now = self._evaluated([self._question], [self.own], self._scale, np.full(1, self.ratio))
        self.excess_s = step_s - float(now[0][0]) if ratio > self.ratio else 0.0
        """What no wire can be the reason of, so it is kept as the host's, byte by byte."""
        self._own_bytes = float(now[2][0])
        self._residual = (step_s - self.excess_s) / float(now[0][0])
        """What none of the two explains; 1 but for rounding where the network is identified."""

    def _find_gpu(self, gpus: Sequence[Gpu] | None) -> tuple[str, Gpu | None]:
        """Its name, and its facts where they are the user's own."""
        if self._system is not None:
            self.machine_words = "products, copies and launches of the system file"
            return stand_in(self._system), None
        if self.base.case.device == "cpu":
            self.machine_words = "the usual proportions of a training on cores"
            self._system = core_prior()
            return NO_GPU, None
        gpu = find_gpu(self.base.device_name, gpus)
        name = NO_GPU if gpu is None else gpu.name
        self.machine_words = f"the data sheet of {name}" + (
            f", as {self.base.device_name or 'the GPU'} is in no catalog" if gpu is None else ""
        )
        return name, None if gpu is None else own_gpu_of(gpu)

    def beyond_own(self, change: Change) -> Change:
        """Without what is asked for and is so in the run: that was measured."""
        own, question = self.base.case, self._question
        is_own = change.kind is None and change.network == own.network
        return replace(
            change,
            network=None if is_own else change.network,
            nodes=_unless(change.nodes, own.nodes),
            strategy=_unless(change.strategy, question.strategy),
            accumulation=_unless(change.accumulation, self.base.workload.accumulation),
            gradient_bytes=_unless(change.gradient_bytes, question.gradient_bytes),
        )

    def answer(self, change: Change) -> WhatIfAnswer:
        """The step with this change, and its interval. Raises InputError."""
        question, there = self._changed(change)
        ratio, doubt = self._transferred(change, there)
        slow, fast = self._bounds(change, there)
        cases = [question, question, question]
        places = [there, there, there]
        ratios = ratio * np.array([1.0, slow * doubt, fast / doubt])
        step_s, alone_s, sent = self._evaluated(cases, places, self._scale, ratios)
        more_s = self._excess_of(change, float(sent[0]))
        step_s = step_s * self._residual + more_s * np.array([1.0, 1.5, 0.5])
        if change.kind is not None:  # another network's host may not have it; it may
            step_s[1] += self.excess_s
        value = float(step_s[0])
        own = NORMAL_80 / 1.96 * _half_width(self.base)
        if change.strategy is not None or change.nodes is not None:
            own = float(np.hypot(own, np.log(NODES_RATIO) / 2))
        up = float(np.exp(np.hypot(np.log(max(1.0, step_s[1] / value)), own)))
        down = float(np.exp(np.hypot(np.log(max(1.0, value / step_s[2])), own)))
        tokens = question.global_batch * question.seq_len
        before = self._question.global_batch * self._question.seq_len / self.base.step_s.value
        return WhatIfAnswer(
            label=change.label,
            nodes=question.nodes,
            step_s=Interval(value=value, low=value / down, high=value * up),
            tokens_per_s=tokens / value,
            speedup_ratio=tokens / value / before,
            compute_s=float(alone_s[0]) * self._residual,
            exposed_s=max(0.0, value - float(alone_s[0]) * self._residual),
            network_bytes=float(sent[0]),
            basis=None if change.kind is not None else there.basis,
            is_measured=change.is_nothing,
        )

    def _excess_of(self, change: Change, sent_bytes: float) -> float:
        """What of the unexplained seconds is there too? As many for each byte."""
        if change.kind is not None:
            return 0.0
        return self.excess_s * (sent_bytes / self._own_bytes if self._own_bytes else 1.0)

    def _changed(self, change: Change) -> tuple[TrainingCase, CarriedFabric]:
        nodes = self._question.nodes if change.nodes is None else change.nodes
        case = self.base.case
        there = self.own
        if change.kind is not None:
            there = change.kind.carried
        elif change.network is not None or nodes != case.nodes:
            network = case.network if change.network is None else change.network
            there = carried(self.base, network, nodes, self._paths)
        if nodes * self._question.gpus_per_node == 1 and not change.is_on_own_network:
            raise InputError(
                f"{case.label} is one rank, which sends nothing over any network",
                hint="--nodes 2, or another training with --case",
            )
        if nodes > 1 and change.kind is None and there.basis == "unknown":
            raise InputError(
                f"{self.base.case.label}: nothing of this run says what its network carries among "
                f"{nodes} nodes: the network was not shaped and no collectives were measured on it",
                hint="name one with --network, or add a `collectives` workload to the experiment",
            )
        ranks = nodes * self._question.gpus_per_node
        accumulation = change.accumulation or self.base.workload.accumulation
        question = replace(
            self._question,
            nodes=nodes,
            data_parallel=ranks,
            global_batch=self._question.micro_batch * accumulation * ranks,
            fabric=there.fabric,
            strategy=change.strategy or self._question.strategy,
            gradient_bytes=change.gradient_bytes or self._question.gradient_bytes,
        )
        refuse_unknown_shards(self.base, question)
        return question, there

    def _transferred(self, change: Change, there: CarriedFabric) -> tuple[float, float]:
        """How much of the run's own factor holds there? And what it may be wrong by.

        It is about what this run waits for: the host's own work, or the wire. Where the answer
        waits for the other of the two it says nothing.
        """
        if change.kind is not None:
            return 1.0, 1.0
        share = 1 - abs(there.host_ratio - self.own.host_ratio)
        return self.ratio**share, max(self.ratio, 1 / self.ratio) ** ((1 - share) / 2)

    def _bounds(self, change: Change, there: CarriedFabric) -> tuple[float, float]:
        """By how much could communication be slower and faster than modelled?"""
        if change.is_nothing:
            return 1.0, 1.0
        slow = fast = 1.0
        if change.kind is not None:
            kind = change.kind
            slow = max(1.0, kind.gbyte_per_s / kind.low_gbyte_per_s)
            fast = max(1.0, kind.high_gbyte_per_s / kind.gbyte_per_s)
        elif change.network is not None and change.network != self.base.case.network:
            slow = fast = CARRIED_RATIO[there.basis]
        more = 0.0
        if change.nodes is not None:
            more = float(np.hypot(more, np.log(NODES_RATIO)))
        if change.strategy is not None or change.gradient_bytes is not None:
            more = float(np.hypot(more, np.log(STRATEGY_RATIO)))
        return (
            float(np.exp(np.hypot(np.log(slow), more))),
            float(np.exp(-np.hypot(np.log(fast), more))),
        )

    def _solve(self, step_s: float) -> float:
        """The stretch of communication with which the model's step is the measured one."""
        low, high = RATIOS[0], RATIOS[-1]
        for _ in range(3):
            ratios = np.geomspace(low, high, len(RATIOS))
            cases = [self._question] * len(ratios)
            steps_s, _, _ = self._evaluated(cases, [self.own] * len(ratios), self._scale, ratios)
            place = int(np.searchsorted(steps_s, step_s))
            if place in (0, len(ratios)):
                return float(ratios[0] if place == 0 else ratios[-1])
            low, high = ratios[place - 1], ratios[place]
        return float(np.sqrt(low * high))

    def _evaluated(
        self,
        cases: Sequence[TrainingCase],
        places: Sequence[CarriedFabric],
        scale: float,
        ratios: Times,
    ) -> tuple[Times, Times, Times]:
        """Step, step without communication, bytes out of a node."""
        columns = columns_of(cases)
        costs = scaled_costs(self._costs(columns), np.full(len(columns), scale))
        if self.base.case.device == "cpu":
            shares = np.array([each.host_ratio for each in places])
            costs = replace(costs, overlap_slowdown_ratio=shares)
        found = evaluate(columns, costs, communication_ratio=ratios)
        step_s, alone_s = steps_of(found, columns, is_cpu=self.base.case.device == "cpu")
        return step_s, alone_s, found.network_bytes

    def _costs(self, columns: Columns) -> ComputeCosts:
        if self._system is not None:
            return system_costs(columns, self._system)
        return compute_costs(columns, self._knowledge)


def _unless(asked: _Asked | None, own: object) -> _Asked | None:
    """None: as it was."""
    return None if asked == own else asked


def _half_width(base: RunCase) -> float:
    """Of the measured step, 95 %, as a share of it."""
    width = base.step_s.half_width_ratio
    return FEW_LAUNCHES_RATIO if width is None else width
