"""Simulated runs of several cases whose truth is known, for the verdicts of hypotheses.

Launches scatter, steps within a launch are correlated, the machine drifts over the run, and the
cases of a block run in the schedule's own order (engine.schedule.counterbalanced).
`python tests/results/simulated_experiments.py` prints how often a verdict is right.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from broadgauge.engine.schedule import counterbalanced
from broadgauge.results.comparing.hypotheses import HypothesisVerdict, evaluate
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.case import Case
from broadgauge.specs.hypothesis import Hypothesis
from broadgauge.specs.networks.network import Network
from broadgauge.specs.plan import Plan
from broadgauge.specs.records.record import Record, Status
from broadgauge.specs.workloads.workload import TrainWorkload

LAUNCH_SPREAD_RATIO = 0.02
STEP_SPREAD_RATIO = 0.05
NUM_STEPS = 16
SEED = 0
TRAIN = TrainWorkload(kind="train")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """How do the trials scatter?"""

    name: str
    step_correlation: float = 0.5
    drift_of_spread: float = 0.0
    """Growth over the whole run, linear in time, in standard deviations of launches."""


WORLDS = (
    World(name="correlated steps"),
    World(name="strongly correlated steps", step_correlation=0.9),
    World(name="drift 3", drift_of_spread=3),
    World(name="drift -10", drift_of_spread=-10),
)


def network_case(name: str, nodes: int = 2) -> Case:
    rates = {"reference": None}
    rate_gbps = rates.get(name, 1.0 + sum(name.encode()) / 1000)
    return Case(
        workload=TRAIN,
        network=None if nodes == 1 else Network(name=name, rate_gbps=rate_gbps),
        nodes=nodes,
        ranks_per_node=1,
        device="cpu",
        backend="gloo",
        environment={},
    )


def position_of(number: int, block: int, num: int) -> int:
    """When in its block does this case run?"""
    return counterbalanced(range(num), block, SEED).index(number)


def run_of(
    cases: Sequence[Case], levels: Sequence[Sequence[float]], metric: str = "step_time_s"
) -> RunSummary:
    """The k-th value of a case is of block k."""
    records = [
        Record(
            record_id=f"b{block}.l{number}.t0",
            case_key=case.key,
            workload=case.workload.name,
            network=case.network_name,
            shape=case.shape,
            launch_id=f"b{block}.l{number}",
            block=block,
            trial=0,
            position=position_of(number, block, len(cases)),
            started_unix_s=1.0,
            ended_unix_s=2.0,
            status=Status.OK,
            metrics={metric: float(value)},
        )
        for number, (case, values) in enumerate(zip(cases, levels, strict=True))
        for block, value in enumerate(values)
    ]
    plan = Plan(experiment_name="x", seed=0, cases=tuple(cases), launches=(), expected_s=1)
    return summarise_run(
        folder=Path("nowhere"), plan=plan, records=records, experiment_yaml="", environments={}
    )


def simulated_runs(
    world: World,
    cases: Sequence[Case],
    truths: Sequence[float],
    *,
    launches: int,
    repetitions: int,
    seed: int = 5,
) -> Iterator[RunSummary]:
    """Each case's mean is its truth (times the machine's drift, which all share)."""
    rng = np.random.default_rng([seed, launches, len(cases), *world.name.encode()])
    num = len(cases)
    slots = np.array(
        [
            [position_of(number, block, num) + block * num for block in range(launches)]
            for number in range(num)
        ]
    )
    drift = 1 + world.drift_of_spread * LAUNCH_SPREAD_RATIO * slots / (num * launches)
    drift = drift / drift.mean()
    rho = world.step_correlation
    for _ in range(repetitions):
        logs = LAUNCH_SPREAD_RATIO * rng.standard_normal(slots.shape)
        levels = np.exp(logs - LAUNCH_SPREAD_RATIO**2 / 2)
        steps = np.empty((*slots.shape, NUM_STEPS))
        steps[..., 0] = rng.standard_normal(slots.shape)
        for step in range(1, NUM_STEPS):
            fresh = np.sqrt(1 - rho**2) * rng.standard_normal(slots.shape)
            steps[..., step] = rho * steps[..., step - 1] + fresh
        means = levels * drift * (1 + STEP_SPREAD_RATIO * steps).mean(axis=2)
        yield run_of(cases, means * np.asarray(truths)[:, None])


def verdicts(hypothesis: Hypothesis, runs: Iterator[RunSummary]) -> dict[HypothesisVerdict, int]:
    """How often is each verdict given?"""
    counts = dict.fromkeys(HypothesisVerdict, 0)
    for run in runs:
        counts[evaluate(hypothesis, run).verdict] += 1
    return counts


def print_table(repetitions: int) -> None:
    """Of `ratio at_least 1.05`: verdicts in percent, by the true ratio, the cases and launches."""
    sys.stdout.write("| true ratio | cases | launches | supported | refuted | can't tell |\n")
    sys.stdout.write(f"|{' --- |' * 6}\n")
    claim = Hypothesis(
        name="h",
        statement="slower",
        cases={"network": "n*"},
        over={"network": "reference"},
        at_least=1.05,
    )
    for num_cases in (1, 4):
        cases = [network_case("reference"), *(network_case(f"n{i}") for i in range(num_cases))]
        for truth in (0.945, 0.98, 1.05, 1.12, 1.165):
            for launches in (3, 5, 10):
                runs = simulated_runs(
                    WORLDS[0],
                    cases,
                    [1.0, *[truth] * num_cases],
                    launches=launches,
                    repetitions=repetitions,
                )
                counts = verdicts(claim, runs)
                cells = " | ".join(f"{100 * n / repetitions:.1f}" for n in counts.values())
                sys.stdout.write(f"| {truth} | {num_cases} | {launches} | {cells} |\n")


if __name__ == "__main__":
    print_table(repetitions=2_000)
