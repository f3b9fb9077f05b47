"""What would an experiment's trainings take on the machine that a system file is of?"""

from collections.abc import Iterator
from dataclasses import dataclass

from broadgauge.predict.asking.workload_case import why_unknown
from broadgauge.predict.kinds import left_out_words, training_of
from broadgauge.predict.system.steps import (
    AskedStep,
    backend_of,
    predict_steps,
    why_unknown_here,
)
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.machines.cluster import split_shape
from broadgauge.specs.machines.system import System
from broadgauge.specs.networks.network import AnyNetwork, Network, NodePath


@dataclass(frozen=True, slots=True, kw_only=True)
class HereStep:
    """One training of the file."""

    label: str
    """As a run's: `train 2x1 pod-like`."""
    step_time_s: float
    step_without_communication_s: float
    tokens_per_s: float
    network_bytes: float
    """Payload that a node sends in a step."""

    @property
    def network_cost_s(self) -> float:
        """What communication adds to a step, as a run measures it."""
        return max(0.0, self.step_time_s - self.step_without_communication_s)


def steps_here(
    experiment: Experiment, system: System
) -> tuple[tuple[HereStep, ...], tuple[tuple[str, int], ...]]:
    """Every training, and what was left out: why, and how many. Raises InputError: none."""
    asked: dict[str, tuple[Case, AskedStep]] = {}
    left_out: dict[str, int] = {}
    for case in _cases(experiment, system):
        workload = training_of(case.workload)
        reason = next((rule.reason for rule in experiment.skip_if if rule.matches(case)), None)
        if workload is None:
            reason = left_out_words(case.workload)
        elif reason is None:
            reason = why_unknown(workload, case.nodes, case.ranks_per_node)
            reason = reason or why_unknown_here(workload)
        if reason is not None:
            left_out[reason] = left_out.get(reason, 0) + 1
        elif workload is not None:
            question = AskedStep(
                workload=workload,
                network=case.network,
                nodes=case.nodes,
                ranks_per_node=case.ranks_per_node,
            )
            asked.setdefault(case.key, (case, question))
    if not asked:
        raise InputError(
            f"{experiment.name}: there is no training to predict: {'; '.join(left_out)}",
            hint="a workload of `kind: train`",
        )
    pairs = list(asked.values())
    found = [
        HereStep(
            label=case.label,
            step_time_s=answer.step_s,
            step_without_communication_s=answer.without_s,
            tokens_per_s=_tokens(question) / answer.step_s,
            network_bytes=answer.network_bytes,
        )
        for (case, question), answer in zip(
            pairs, predict_steps(system, [question for _, question in pairs]), strict=True
        )
    ]
    return tuple(found), tuple(left_out.items())


def _tokens(asked: AskedStep) -> float:
    """Of a step, all ranks."""
    workload = asked.workload
    sequences = workload.batch_per_rank * workload.accumulation * asked.nodes * asked.ranks_per_node
    return float(sequences * workload.model.seq_len)


def _cases(experiment: Experiment, system: System) -> Iterator[Case]:
    for nodes, ranks in _shapes(experiment, system):
        for workload in experiment.workloads:
            named = [
                each
                for each in experiment.networks
                if workload.networks is None or each.name in workload.networks
            ]
            ways: list[AnyNetwork | None] = [None]
            if nodes > 1:
                ways = [each.on_nodes(nodes) for each in named if isinstance(each, Network)]
            elif ranks > 1:
                ways = [each for each in named if isinstance(each, NodePath)] or ways
            for way in ways:
                yield Case(
                    workload=workload,
                    network=way,
                    nodes=nodes,
                    ranks_per_node=ranks,
                    device=system.device.kind,
                    backend=backend_of(system),
                    environment={},
                )


def _shapes(experiment: Experiment, system: System) -> list[tuple[int, int]]:
    """As a run resolves them: `auto` shares the GPUs out over the largest number of nodes, and is 1
    on CPUs; `all` are the ranks of the largest shape."""
    texts = [split_shape(text) for text in experiment.cluster.shapes]
    gpus = system.device.count if system.device.kind == "cuda" else 0
    most_nodes = max(nodes for nodes, _ in texts)
    whole = max(1, gpus // most_nodes)
    numbered = [(nodes, ranks.replace("auto", str(whole))) for nodes, ranks in texts]
    largest = max((n * int(ranks) for n, ranks in numbered if ranks.isdigit()), default=whole)
    return list(
        dict.fromkeys(
            (nodes, int(ranks) if ranks.isdigit() else max(1, largest // nodes))
            for nodes, ranks in numbered
        )
    )
