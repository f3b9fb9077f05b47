"""Are a run's figures those of its good trials, by launches, and scaling that of pairs?"""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_case, summarise_run
from broadgauge.specs.case import Case
from broadgauge.specs.networks.network import Network
from broadgauge.specs.plan import Plan, PlannedLaunch, PlannedTrial
from broadgauge.specs.records.op_rows import CollectiveRow
from broadgauge.specs.records.record import LinkFacts, Record, Status
from broadgauge.specs.workloads.workload import TrainWorkload

SLOW = Network(name="slow", rate_gbps=0.2)


def a_case(network: Network | None = SLOW, ranks_per_node: int = 1) -> Case:
    return Case(
        workload=TrainWorkload(kind="train"),
        network=network,
        nodes=1 if network is None else 2,
        ranks_per_node=ranks_per_node,
        device="cpu",
        backend="gloo",
        environment={},
    )


def a_record(case: Case, block: int = 0, trial: int = 0, position: int = 0, **more) -> Record:
    facts = {
        "record_id": f"b{block}.{case.key}.t{trial}",
        "case_key": case.key,
        "workload": "train",
        "network": case.network_name,
        "shape": case.shape,
        "launch_id": f"b{block}.{case.key}",
        "block": block,
        "trial": trial,
        "position": position,
        "started_unix_s": 1.0,
        "ended_unix_s": 2.0,
        "status": Status.OK,
    }
    return Record(**(facts | more))


def a_run(cases: tuple[Case, ...], records: list[Record], *, planned: int = 0) -> RunSummary:
    trials = tuple(
        PlannedTrial(trial_id=f"extra.t{index}", case_key=cases[0].key, trial=index)
        for index in range(planned)
    )
    launch = PlannedLaunch(launch_id="extra", block=0, trials=trials, expected_s=1)
    plan = Plan(experiment_name="x", seed=0, cases=cases, launches=(launch,), expected_s=1)
    return summarise_run(
        folder=Path("nowhere"), plan=plan, records=records, experiment_yaml="", environments={}
    )


def test_trials_of_one_launch_count_as_one() -> None:
    case = a_case()
    values = {(0, 0): 1.0, (0, 1): 3.0, (1, 0): 4.0}
    records = [a_record(case, b, t, metrics={"step_time_s": v}) for (b, t), v in values.items()]
    estimate = summarise_case(case, tuple(records)).estimates["step_time_s"]
    assert estimate.value == 3.0
    assert (estimate.launches, estimate.trials) == (2, 3)


def test_failed_trials_are_counted_and_left_out() -> None:
    case = a_case()
    good = a_record(case, metrics={"step_time_s": 1.0})
    bad = a_record(case, 1, status=Status.FAILED, metrics={"step_time_s": 99.0})
    late = a_record(case, 2, status=Status.TIMEOUT)
    skipped = a_record(case, 3, status=Status.SKIPPED)
    summary = summarise_case(case, (good, bad, late, skipped))
    assert (summary.num_ok, summary.num_failed) == (1, 2)
    assert summary.value("step_time_s") == 1.0
    assert summary.good == (good,)


def test_a_reason_stands_only_where_no_trial_has_the_metric() -> None:
    case = a_case()
    missing = {"mfu_ratio": "a CPU", "loss": "not finite"}
    first = a_record(case, 0, metrics={"mfu_ratio": None, "loss": None}, missing=missing)
    second = a_record(case, 1, metrics={"mfu_ratio": None, "loss": 2.0})
    summary = summarise_case(case, (first, second))
    assert summary.missing == {"mfu_ratio": "a CPU"}
    assert summary.estimates["loss"].launches == 1
    assert "mfu_ratio" not in summary.estimates


def a_row(size_bytes: int, time_s: float, *, is_correct: bool | None = True) -> CollectiveRow:
    return CollectiveRow(
        op="all_reduce",
        dtype="float32",
        size_bytes=size_bytes,
        iterations=5,
        time_s=time_s,
        time_min_s=time_s,
        time_median_s=time_s,
        time_max_s=time_s,
        algbw_gbyte_per_s=size_bytes / time_s / 1e9,
        busbw_gbyte_per_s=size_bytes / time_s / 1e9,
        is_correct=is_correct,
    )


def test_collectives_are_put_together_by_op_type_and_size() -> None:
    case = a_case()
    records = (
        a_record(case, 0, collectives=(a_row(2048, 2.0), a_row(1024, 1.0))),
        a_record(case, 1, collectives=(a_row(1024, 3.0, is_correct=False), a_row(2048, 4.0))),
    )
    rows = summarise_case(case, records).collectives
    assert [(row.size_bytes, row.time_s.value) for row in rows] == [(1024, 2.0), (2048, 3.0)]
    assert [row.is_correct for row in rows] == [False, True]
    assert rows[0].link_rate_gbps is None


def test_the_link_is_summarised() -> None:
    case = a_case()
    links = [LinkFacts(ceiling_gbps=c, round_trip_s=1e-4) for c in (10.0, 12.0)]
    records = tuple(a_record(case, block, link=link) for block, link in enumerate(links))
    ceiling = summarise_case(case, records).ceiling_gbps
    assert ceiling is not None
    assert ceiling.value == 11.0


def tokens(case: Case, values: list[float], *, position: int = 0) -> list[Record]:
    return [
        a_record(case, block, position=(position + block) % 2, metrics={"tokens_per_s": value})
        for block, value in enumerate(values)
    ]


def test_scaling_is_paired_so_what_both_share_cancels() -> None:
    """Blocks differ by a factor of two, pairs by 1 %: the interval is that of the pairs."""
    alone, together = a_case(None), a_case()
    weather = [100.0, 200.0, 130.0, 90.0, 160.0]
    ratios = [1.5, 1.51, 1.49, 1.5, 1.505]
    records = [
        *tokens(alone, weather),
        *tokens(together, [w * r for w, r in zip(weather, ratios, strict=True)], position=1),
    ]
    run = a_run((alone, together), records)
    assert run.cases[0].scaling is None
    scaling = run.cases[1].scaling
    assert scaling is not None
    assert scaling.reference == alone
    assert scaling.speedup.value == pytest.approx(1.5, rel=0.01)
    assert scaling.efficiency.value == pytest.approx(0.75, rel=0.01)
    assert scaling.efficiency.low is not None
    assert scaling.efficiency.high is not None
    assert 0.73 < scaling.efficiency.low < 0.75 < scaling.efficiency.high < 0.77
    assert "less linear drift" in scaling.efficiency.method


def test_scaling_without_common_blocks_says_so() -> None:
    alone, together = a_case(None), a_case()
    records = tokens(alone, [100.0, 101.0, 102.0])
    records += [a_record(together, block, metrics={"tokens_per_s": 150.0}) for block in (7, 8, 9)]
    scaling = a_run((alone, together), records).cases[1].scaling
    assert scaling is not None
    assert "not paired" in scaling.efficiency.method


def test_no_scaling_without_a_smaller_shape_that_ran() -> None:
    alone, together = a_case(None), a_case()
    run = a_run((alone, together), tokens(together, [1.0, 2.0, 3.0]))
    assert run.cases[1].scaling is None


def test_notes_name_what_is_missing() -> None:
    case = a_case()
    records = [
        a_record(case, 0, environment="aa", status=Status.FAILED),
        a_record(case, 1, environment="bb"),
    ]
    notes = a_run((case,), records, planned=3).notes
    assert "3 of 3 planned trials have not run: --resume runs them" in notes
    assert "1 of 2 trials failed; no figure counts them" in notes
    assert "the environment changed between the trials of 1 cases" in notes


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=8), st.randoms())
def test_the_order_of_the_lines_does_not_matter(values: list[float], dice: random.Random) -> None:
    case = a_case()
    records = [
        a_record(case, index // 2, index % 2, metrics={"step_time_s": value})
        for index, value in enumerate(values)
    ]
    shuffled = records.copy()
    dice.shuffle(shuffled)
    one, other = (summarise_case(case, tuple(r)).estimates for r in (records, shuffled))
    assert one == other
