"""Whole runs on the fake platform, against a baseline: plan, engine, merger, summary, gate.

A launch's times scatter by LAUNCH_SPREAD, lognormally; the machine gets slower by a quarter from
the first trial to the last. What was planted is known.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engine.fake_platform import FakeClock, FakePlatform, Moment, Script, services
from tests.engine.making import COMMAND, TRAIN, a_machine, an_experiment, devices_of

from broadgauge.engine.against import Against
from broadgauge.engine.plan import make_plan
from broadgauge.engine.ports import Series
from broadgauge.engine.run import run
from broadgauge.results.comparing.compare_cases import compare_runs
from broadgauge.results.comparing.gate import GateOutcome, gate, gate_across_runs
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.plan import BaselineRun, Plan
from broadgauge.specs.records.record import Environment, Record

LIMIT = 0.03
LAUNCH_SPREAD = 0.01
STEP_SPREAD = 0.02
DRIFT = 0.25
ONE_NODE = {"shapes": ["1x1"]}


class MemoryStore:
    """A run folder's part in a run, without a disk."""

    def __init__(self) -> None:
        self.location = "memory"
        self.records: list[Record] = []
        self.environments: dict[str, Environment] = {}

    def add_environment(self, environment: Environment) -> str:
        self.environments["only"] = environment
        return "only"

    def append(self, record: Record, series: Series, left: object = ()) -> Record:
        self.records.append(record)
        return record


def measured(
    plan: Plan, rng: np.random.Generator, slowdown_ratio: float, level: float = 1.0
) -> RunSummary:
    """This plan's run, where the candidate takes `slowdown_ratio` more time than the baseline."""
    num_trials = sum(len(launch.trials) for launch in plan.launches)
    factors: dict[str, float] = {}

    def time_s(moment: Moment) -> float:
        launch_id = moment.trial_id.rpartition(".")[0]
        if launch_id not in factors:
            drift = DRIFT * len(factors) / num_trials
            factors[launch_id] = math.exp(LAUNCH_SPREAD * rng.standard_normal() + drift)
        slower = 1 + slowdown_ratio if moment.case.arm == "candidate" else 1.0
        step = math.exp(STEP_SPREAD * rng.standard_normal())
        return level * moment.ideal_s * slower * factors[launch_id] * step

    clock, store = FakeClock(), MemoryStore()
    platform = FakePlatform(clock, Script(time_s=time_s))
    run(plan, platform, store, services(clock))
    return summary(plan, store.records, store.environments)


def summary(
    plan: Plan, records: Sequence[Record], environments: Mapping[str, Environment]
) -> RunSummary:
    return summarise_run(
        folder=Path("memory"),
        plan=plan,
        records=records,
        experiment_yaml="",
        environments=environments,
    )


def plan_of(launches: int, workloads: list[dict[str, Any]], *, is_against: bool = True) -> Plan:
    experiment = an_experiment(workloads=workloads, cluster=ONE_NODE, launches=launches)
    baseline = BaselineRun(
        run="runs/old", experiment_name="tiny", started_unix_s=1.0, working_folder="/old"
    )
    return make_plan(
        experiment,
        devices_of(a_machine()),
        working_folder="/new",
        against=Against(run=baseline, experiment=experiment) if is_against else None,
    )


def outcomes(
    plan: Plan, repetitions: int, slowdown_ratio: float, seed: int
) -> Counter[GateOutcome]:
    rng = np.random.default_rng(seed)
    return Counter(
        gate(measured(plan, rng, slowdown_ratio), LIMIT).outcome for _ in range(repetitions)
    )


def named(count: int) -> list[dict[str, Any]]:
    return [
        {**COMMAND, "name": f"job-{number}", "command": ["train.py", str(number)]}
        for number in range(count)
    ]


def test_a_planted_slowdown_of_5_percent_is_found_in_four_of_five_runs() -> None:
    """5 launches that scatter by 1 %, a limit of 3 %."""
    found = outcomes(plan_of(5, named(1)), 100, 0.05, seed=3)
    assert found[GateOutcome.REGRESSION] >= 80, found


def test_a_planted_slowdown_is_found_beside_cases_that_did_not_change() -> None:
    """One of three cases, 6 launches: Holm's first step is 5 % / 3."""
    plan = plan_of(6, named(3))
    rng = np.random.default_rng(5)
    slow = "job-1"
    found = 0
    for _ in range(60):
        whole = measured(plan, rng, 0.0)
        planted = [
            record.model_copy(
                update={"metrics": {k: v and 1.05 * v for k, v in record.metrics.items()}}
            )
            if record.workload == slow and plan.case(record.case_key).arm == "candidate"
            else record
            for record in whole.records
        ]
        rows = {
            row.label: row.outcome
            for row in gate(summary(plan, planted, whole.environments), LIMIT).rows
        }
        found += rows[f"{slow} 1x1 one node"] is GateOutcome.REGRESSION
        assert len(rows) == 3
    assert found >= 48, found


def test_nothing_planted_is_left_alone_whatever_drifts() -> None:
    found = outcomes(plan_of(4, [*named(2), TRAIN]), 100, 0.0, seed=7)
    assert found[GateOutcome.REGRESSION] <= 5, found


@pytest.mark.parametrize("slowdown_ratio", [0.0, 0.05, 0.5])
def test_runs_that_were_not_interleaved_are_never_gated(slowdown_ratio: float) -> None:
    """The same case in two runs, however large the difference: change and moment are one."""
    rng = np.random.default_rng(11)
    alone = plan_of(5, named(1), is_against=False)
    for _ in range(20):
        level = math.exp(0.1 * rng.standard_normal())
        before = measured(alone, rng, 0.0)
        after = measured(alone, rng, slowdown_ratio, level=level)
        found = gate_across_runs(compare_runs(before, after), LIMIT)
        assert found.outcome is GateOutcome.CANNOT_TELL
        assert gate(after, LIMIT).outcome is GateOutcome.CANNOT_TELL
