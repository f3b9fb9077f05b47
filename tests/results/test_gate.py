"""Does the gate find a slowdown, leave what did not change alone, and know what it can't tell?

Error rates are counted over simulated runs whose truth is known.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from broadgauge.results.arms import arms_compared, of_arm
from broadgauge.results.compare import compare_runs
from broadgauge.results.gate import Gate, GateOutcome, gate, gate_across_runs, parse_limit
from broadgauge.results.model import RunSummary
from broadgauge.results.resolution import smallest_ratio
from broadgauge.results.summary import summarise_run
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.network import Network
from broadgauge.specs.plan import BaselineRun, Plan
from broadgauge.specs.record import Record, Status
from broadgauge.specs.workload import CommandMetric, CommandWorkload, Workload

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
    assert row.outcome is GateOutcome.REGRESSION


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
