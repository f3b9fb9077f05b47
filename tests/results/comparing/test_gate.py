"""Does the gate find a slowdown, leave what did not change alone, and know what it can't tell?

Error rates are counted over simulated runs whose truth is known.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from broadgauge.results.comparing.arms import arms_compared, of_arm
from broadgauge.results.comparing.compare_cases import compare_runs
from broadgauge.results.comparing.gate import Gate, GateOutcome, gate, gate_across_runs, parse_limit
from broadgauge.results.model import RunSummary
from broadgauge.results.resolution import smallest_ratio
from broadgauge.results.summary import summarise_run
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.network import Network
from broadgauge.specs.plan import BaselineRun, Plan
from broadgauge.specs.records.record import Record, Status
from broadgauge.specs.workloads.workload import CommandMetric, CommandWorkload, Workload

STEP = CommandMetric(name="step_time_s", regex="(.)")
RATE = CommandMetric(name="images_per_s", regex="(.)", lower_is_better=False)
Values = list[float | None]
TRIAL_S = 30.0
PAUSE_S = 5.0


def a_case(name: str = "mine", metric: CommandMetric = STEP) -> Case:
    workload: Workload = CommandWorkload(
        kind="command", name=name, command=(f"{name}.py",), metrics=(metric,)
    )
    return Case(
        workload=workload,
        network=Network(name="slow"),
        nodes=2,
        ranks_per_node=1,
        device="cpu",
        backend="gloo",
        environment={},
    )


def a_run(
    *values: tuple[Case, Values, Values],
    orders: str = "AB",
    pause_s: dict[int, float] | None = None,
) -> RunSummary:
    """Values of candidate and baseline by block; `orders` are taken in turns (`AB`: alternating).

    `pause_s`: before the second side of a block. A value of None has not run.
    """
    records: list[Record] = []
    arms = [(case, case.model_copy(update={"arm": "baseline"})) for case, *_ in values]
    now_s = 1e9
    num_blocks = len(values[0][1])
    for block in range(num_blocks):
        position = 0
        for both, (case, *sides) in zip(arms, values, strict=True):
            side_order = (0, 1) if orders[block % len(orders)] == "A" else (1, 0)
            for side in side_order:
                now_s += PAUSE_S
                if position % 2 and pause_s is not None:
                    now_s += pause_s.get(block, 0.0)
                key = both[side].key
                name = f"{key}.{block}"
                value = sides[side][block]
                if value is not None:
                    records.append(
                        Record(
                            record_id=name,
                            case_key=key,
                            workload=case.workload.name,
                            network="slow",
                            shape="2x1",
                            launch_id=name,
                            block=block,
                            trial=0,
                            position=position,
                            started_unix_s=now_s,
                            ended_unix_s=now_s + TRIAL_S,
                            status=Status.OK,
                            metrics={case.workload.metrics[0].name: value},  # type: ignore[union-attr]
                        )
                    )
                now_s += TRIAL_S
                position += 1
    plan = Plan(
        experiment_name="x",
        seed=0,
        cases=tuple(each for pair in arms for each in pair),
        launches=(),
        expected_s=1,
        baseline=BaselineRun(
            run="runs/old", experiment_name="x", started_unix_s=1.0, working_folder="/old"
        ),
    )
    return summarise_run(
        folder=Path("nowhere"), plan=plan, records=records, experiment_yaml="", environments={}
    )


def simulated(
    rng: np.random.Generator,
    *,
    launches: int,
    slowdown_ratio: float = 0.0,
    spread_ratio: float = 0.01,
    cases: int = 1,
    drift_ratio: float = 0.0,
) -> Gate:
    """One run: launches scatter by `spread_ratio` each; the machine drifts over the run."""
    values = []
    for number in range(cases):
        logs = spread_ratio * rng.standard_normal((2, launches))
        blocks = np.arange(launches)
        second = np.stack([blocks % 2, 1 - blocks % 2])
        drift = drift_ratio * (blocks + second / 2) / launches
        logs += drift + np.log1p(slowdown_ratio) * np.array([[1.0], [0.0]])
        sides = np.exp(logs).tolist()
        values.append((a_case(f"case-{number}"), *sides))
    return gate(a_run(*values), 0.03)


def rates(repetitions: int, **how: float) -> Counter[GateOutcome]:
    rng = np.random.default_rng([int(1000 * value) for value in how.values()])
    return Counter(simulated(rng, **how).outcome for _ in range(repetitions))  # type: ignore[arg-type]


def test_a_planted_slowdown_is_found_in_four_of_five_runs() -> None:
    """5 % at a limit of 3 %, 5 launches that scatter by 1 %; and by 2 % with 10 launches."""
    assert rates(150, launches=5, slowdown_ratio=0.05)[GateOutcome.REGRESSION] >= 0.85 * 150
    wide = rates(150, launches=10, slowdown_ratio=0.05, spread_ratio=0.02)
    assert wide[GateOutcome.REGRESSION] >= 0.85 * 150


def test_what_did_not_change_is_left_alone() -> None:
    """At most 2.5 % of runs, over all their cases together; spread by 5 %, so that chance passes
    the limit often enough to be caught."""
    for launches, cases in ((3, 1), (5, 3)):
        found = rates(250, launches=launches, cases=cases, spread_ratio=0.05)
        assert found[GateOutcome.REGRESSION] <= 0.05 * 250, (launches, cases, found)


def test_drift_is_no_slowdown() -> None:
    found = rates(200, launches=6, spread_ratio=0.005, drift_ratio=0.3)
    assert found[GateOutcome.REGRESSION] <= 0.045 * 200


def test_no_regression_is_said_where_the_limit_can_be_excluded() -> None:
    quiet = rates(200, launches=5, spread_ratio=0.005)
    assert quiet[GateOutcome.NO_REGRESSION] >= 0.9 * 200
    beyond = rates(250, launches=5, slowdown_ratio=0.03001, spread_ratio=0.01)
    assert beyond[GateOutcome.NO_REGRESSION] <= 0.05 * 250


EXACT = [1.0, 1.001, 0.999, 1.0005, 0.9995]


def of_ratio(ratio: float, metric: CommandMetric = STEP) -> Gate:
    candidate = [ratio * value for value in EXACT]
    return gate(a_run((a_case(metric=metric), candidate, [1.0] * 5)), 0.03)


@pytest.mark.parametrize(
    ("ratio", "outcome"),
    [
        (1.05, GateOutcome.REGRESSION),
        (0.8, GateOutcome.NO_REGRESSION),
        (1.0, GateOutcome.NO_REGRESSION),
        (1.02, GateOutcome.NO_REGRESSION),
    ],
)
def test_time_and_rate_are_judged_by_what_is_better(ratio: float, outcome: GateOutcome) -> None:
    time, rate = of_ratio(ratio), of_ratio(1 / ratio, RATE)
    assert time.outcome is rate.outcome is outcome
    (of_time,), (of_rate,) = time.rows, rate.rows
    assert of_time.slowdown is not None
    assert of_rate.slowdown is not None
    assert of_time.slowdown.value == pytest.approx(ratio - 1, abs=2e-3)
    assert of_rate.slowdown.value == pytest.approx(of_time.slowdown.value, abs=2e-3)


def test_what_these_launches_could_have_shown_is_the_paired_t() -> None:
    """By hand: 3 pairs, log-ratios −s, 0, s: the error is s / √3; t(0.975, 2) 4.3027, t(0.8, 2)
    1.0607."""
    s = 0.01
    candidate = [float(np.exp(x)) for x in (-s, 0.0, s)]
    run = a_run((a_case(), candidate, [1.0] * 3))
    (row,) = gate(run, 0.03).rows
    wanted = np.expm1((4.30265 + 1.06066) * s / np.sqrt(3))
    assert row.smallest_ratio == pytest.approx(wanted, rel=1e-4)
    assert row.outcome is GateOutcome.NO_REGRESSION
    assert row.launches_needed == 5
    (compared,) = arms_compared(run)
    assert compared.comparison is not None
    assert smallest_ratio(compared.comparison) == row.smallest_ratio


def reasons(run: RunSummary) -> list[str]:
    found = gate(run, 0.03)
    assert found.outcome is GateOutcome.CANNOT_TELL
    return [row.reason for row in found.rows] or [found.reason]


SLOWER = [1.5 * value for value in EXACT]
"""Half as much again: only something that forbids a verdict keeps the gate from seeing it."""


def test_two_launches_tell_nothing() -> None:
    (reason,) = reasons(a_run((a_case(), SLOWER[:2], EXACT[:2])))
    assert reason.startswith("2 interleaved pairs")


def test_one_order_tells_nothing() -> None:
    (reason,) = reasons(a_run((a_case(), SLOWER, EXACT), orders="A"))
    assert reason.startswith("one side always ran first")


def test_a_pair_that_was_torn_apart_by_a_resume_is_none() -> None:
    """All five blocks were ended between the two sides and resumed an hour later."""
    hour = dict.fromkeys(range(5), 3600.0)
    (reason,) = reasons(a_run((a_case(), SLOWER, EXACT), pause_s=hour))
    assert reason.startswith("no interleaved pair")
    (row,) = gate(a_run((a_case(), SLOWER, EXACT), pause_s={0: 3600.0}), 0.03).rows
    assert row.slowdown is not None
    assert row.slowdown.launches == 4
    assert row.note == "1 of 5 blocks left out: the run was interrupted in between"
    assert row.outcome is GateOutcome.REGRESSION


def with_failures(run: RunSummary, arm: str, blocks: int, status: Status) -> RunSummary:
    """The same run where this arm's trials of the first so many blocks failed."""
    keys = {each.case.key for each in run.cases if each.case.arm == arm}
    records = [
        record.model_copy(update={"status": status, "metrics": {}})
        if record.case_key in keys and record.block < blocks
        else record
        for record in run.records
    ]
    return summarise_run(
        folder=run.folder, plan=run.plan, records=records, experiment_yaml="", environments={}
    )


@pytest.mark.parametrize(("candidate", "baseline"), [(EXACT, EXACT), (SLOWER, EXACT)])
def test_a_candidate_that_crashes_is_never_passed(candidate: Values, baseline: Values) -> None:
    """6 of 10 launches crashed: what is left is no fair sample, whatever it says."""
    run = a_run((a_case(), candidate * 2, baseline * 2))
    crashed = with_failures(run, "candidate", 6, Status.FAILED)
    (reason,) = reasons(crashed)
    assert reason == "the candidate failed in 6 of 10 launches (6 failed), the baseline in none"
    (row,) = gate(crashed, 0.03).rows
    assert row.slowdown is not None
    assert row.launches_needed is None


@pytest.mark.parametrize(
    ("status", "word"), [(Status.TIMEOUT, "timed out"), (Status.SKIPPED, "skipped")]
)
def test_failures_of_either_side_tell_nothing(status: Status, word: str) -> None:
    run = a_run((a_case(), EXACT * 2, EXACT * 2))
    (reason,) = reasons(with_failures(run, "baseline", 1, status))
    assert reason == f"the baseline failed in 1 of 10 launches (1 {word}), the candidate in none"
    both = with_failures(with_failures(run, "baseline", 1, status), "candidate", 2, status)
    (reason,) = reasons(both)
    assert reason == (
        f"the candidate failed in 2 of 10 launches (2 {word}), "
        f"the baseline in 1 of 10 launches (1 {word})"
    )


def test_cases_of_one_arm_are_counted_and_named() -> None:
    """A slow case without a partner must not hide behind a good one."""
    run = a_run((a_case("good"), EXACT, EXACT), (a_case("alone"), SLOWER, EXACT))
    assert run.plan.baseline is not None
    alone = [s for s in run.cases if (s.case.workload.name, s.case.arm) != ("alone", "baseline")]
    beside = run.plan.baseline.model_copy(update={"only_there": ("gone 2x1 slow",)})
    plan = run.plan.model_copy(update={"baseline": beside})
    found = gate(replace(run, plan=plan, cases=tuple(alone)), 0.03)
    assert found.outcome is GateOutcome.NO_REGRESSION
    assert found.reason == (
        "1 of 1 cases; not gated: 1 that only the experiment has, 1 that only the baseline has"
    )
    assert found.unmatched == (
        "alone 2x1 slow: only the experiment has it, not gated",
        "gone 2x1 slow: only the baseline has it, not gated",
    )


def test_every_headline_metric_is_gated() -> None:
    """Step time is as it was, the second metric is half as good."""
    case = a_case()
    assert isinstance(case.workload, CommandWorkload)
    workload = case.workload.model_copy(update={"metrics": (STEP, RATE)})
    case = case.model_copy(update={"workload": workload})
    run = a_run((case, EXACT, [1.0] * 5))
    rate = {"candidate": 5.0, "baseline": 10.0}
    records = [
        record.model_copy(
            update={
                "metrics": {**record.metrics, RATE.name: rate[run.plan.case(record.case_key).arm]}
            }
        )
        for record in run.records
    ]
    with_rate = summarise_run(
        folder=run.folder, plan=run.plan, records=records, experiment_yaml="", environments={}
    )
    found = gate(with_rate, 0.03)
    assert [(row.metric, row.outcome) for row in found.rows] == [
        (STEP.name, GateOutcome.NO_REGRESSION),
        (RATE.name, GateOutcome.REGRESSION),
    ]
    assert found.reason == "1 of 1 cases"
    assert [row.metric for row in gate(run, 0.03).rows] == [STEP.name], "nobody gave the rate"


def test_sides_without_a_common_block_tell_nothing() -> None:
    none: Values = [None] * 5
    run = a_run((a_case(), [*SLOWER, *none], [*none, *EXACT]))
    assert reasons(run) == ["no interleaved pair of launches gave a ratio"]
    empty = a_run((a_case(), SLOWER, none))
    assert reasons(empty) == ["no interleaved pair of launches gave a ratio"]


def test_two_runs_are_never_gated() -> None:
    run = a_run((a_case(), SLOWER, EXACT))
    other = a_run((a_case(), EXACT, EXACT))
    found = gate_across_runs(compare_runs(other, run), 0.03)
    assert found.outcome is GateOutcome.CANNOT_TELL
    assert "not interleaved" in found.reason


def test_a_run_without_a_baseline_tells_nothing() -> None:
    run = of_arm(a_run((a_case(), SLOWER, EXACT)), "candidate")
    assert reasons(run) == ["no case is in both arms"]


def test_an_unfinished_run_tells_nothing() -> None:
    from broadgauge.specs.plan import PlannedLaunch, PlannedTrial

    run = a_run((a_case(), SLOWER, EXACT))
    trial = PlannedTrial(trial_id="b9.l0.t0", case_key=run.cases[0].case.key, trial=0)
    launch = PlannedLaunch(launch_id="b9.l0", block=9, trials=(trial,), expected_s=1.0)
    unfinished = replace(run, plan=run.plan.model_copy(update={"launches": (launch,)}))
    assert "not finished" in reasons(unfinished)[0]


def test_one_regression_is_the_runs_and_an_unclear_case_is_not_hidden() -> None:
    noisy = [1.0, 1.2, 0.8, 1.1, 0.9]
    slow, same, unclear = a_case("slow"), a_case("same"), a_case("unclear")
    of_slow, of_same = (slow, SLOWER, EXACT), (same, EXACT, [1.0] * 5)
    of_unclear = (unclear, noisy, [1.0] * 5)
    for cases, outcome in (
        ((of_slow, of_same, of_unclear), GateOutcome.REGRESSION),
        ((of_same, of_unclear), GateOutcome.CANNOT_TELL),
        ((of_same,), GateOutcome.NO_REGRESSION),
    ):
        assert gate(a_run(*cases), 0.03).outcome is outcome


@pytest.mark.parametrize("text", ["3%", "3 %", "0.03", " 3.0% ", ".03"])
def test_limits_that_are_understood(text: str) -> None:
    assert parse_limit(text) == pytest.approx(0.03)


@pytest.mark.parametrize(
    "text", ["", "3", "0", "0%", "-3%", "3%%", "3 percent", "1e-2", "nan", "inf", "%", "1000%"]
)
def test_nonsense_is_refused_in_one_message(text: str) -> None:
    with pytest.raises(InputError, match=r"--fail-above: a slowdown is a share above 0") as caught:
        parse_limit(text)
    assert caught.value.hint == "`--fail-above 3%`, or `--fail-above 0.03`"


def test_the_exit_codes_are_their_own() -> None:
    assert [outcome.exit_code for outcome in GateOutcome] == [0, 6, 7]
