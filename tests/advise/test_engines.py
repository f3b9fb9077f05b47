"""Are torch and nccl-tests compared where they measured the same, and only there?"""

from pathlib import Path

import pytest

from broadgauge.advise.engines import engine_notes, engine_ratios
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.case import Case
from broadgauge.specs.networks.network import Network
from broadgauge.specs.plan import Plan
from broadgauge.specs.records.op_rows import AnyOpRow, CollectiveRow, NcclTestsRow
from broadgauge.specs.records.record import Record, Status
from broadgauge.specs.workloads.workload import CollectivesWorkload

SLOW, FAST = Network(name="slow", rate_gbps=10), Network(name="fast", rate_gbps=100)
LARGE, SMALL = 2**26, 2**10


def a_case(engine: str, network: Network = SLOW, **changes: object) -> Case:
    workload = CollectivesWorkload(kind="collectives", name=engine, engine=engine)
    return Case(
        workload=workload.model_copy(update=changes),
        network=network,
        nodes=2,
        ranks_per_node=1,
        device="cuda",
        backend="nccl",
        environment={},
    )


def records_of(case: Case, busbw: list[float], sizes: tuple[int, ...] = (LARGE,)) -> list[Record]:
    """One launch a block; every size has the same busbw."""
    return [
        Record(
            record_id=f"b{block}.{case.key}",
            case_key=case.key,
            workload=case.workload.name,
            network=case.network_name,
            shape=case.shape,
            launch_id=f"b{block}.{case.key}",
            block=block,
            trial=0,
            position=0,
            started_unix_s=block,
            ended_unix_s=block + 1,
            status=Status.OK,
            metrics={"busbw_gbyte_per_s": value},
            collectives=tuple(a_row(case, size, value) for size in sizes),
        )
        for block, value in enumerate(busbw)
    ]


def a_row(case: Case, size_bytes: int, busbw: float) -> AnyOpRow:
    time_s = size_bytes / busbw / 1e9
    kind = NcclTestsRow if case.workload.engine == "nccl-tests" else CollectiveRow
    return kind(
        op="all_reduce",
        dtype="float32",
        size_bytes=size_bytes,
        iterations=10,
        time_s=time_s,
        time_min_s=time_s,
        time_median_s=time_s,
        time_max_s=time_s,
        algbw_gbyte_per_s=busbw,
        busbw_gbyte_per_s=busbw,
    )


def a_run(*parts: tuple[Case, list[Record]]) -> RunSummary:
    plan = Plan(
        experiment_name="made-up",
        seed=0,
        cases=tuple(case for case, _ in parts),
        launches=(),
        expected_s=0,
    )
    return summarise_run(
        folder=Path("nowhere"),
        plan=plan,
        records=[record for _, records in parts for record in records],
        experiment_yaml="",
        environments={},
    )


def both(torch: list[float], nccl_tests: list[float], sizes: tuple[int, ...]) -> RunSummary:
    ours, theirs = a_case("torch"), a_case("nccl-tests")
    return a_run(
        (ours, records_of(ours, torch, sizes)), (theirs, records_of(theirs, nccl_tests, sizes))
    )


def test_the_ratio_is_of_pairs_in_a_block():
    """The link is three times as fast in the last blocks: the pairs do not see it."""
    torch = [1.0, 1.02, 3.0, 3.03, 3.1]
    run = both(torch, [1.2 * value for value in torch], (SMALL, LARGE))
    small, large = engine_ratios(run)
    assert (small.size_bytes, large.size_bytes) == (SMALL, LARGE)
    for row in (small, large):
        assert row.ratio.value == pytest.approx(1.2)
        assert row.ratio.high - row.ratio.low < 0.01


@pytest.mark.parametrize(
    ("factor", "spread", "size", "words"),
    [
        (1.03, 0.0, LARGE, "nccl-tests confirms torch: all_reduce float32 of 64 MiB, 2x1 on slow"),
        (1.5, 0.0, LARGE, "differ: all_reduce float32 of 64 MiB, 2x1 on slow: 1.50"),
        (0.7, 0.0, LARGE, "not the network's: compare the versions of NCCL"),
        (1.5, 0.0, SMALL, "without a barrier, which short messages show"),
        (1.1, 0.1, LARGE, "whether nccl-tests confirms torch can't be told"),
    ],
)
def test_the_sentence_follows_the_interval(factor, spread, size, words):
    torch = [1.0, 1.01, 0.99, 1.0, 1.0]
    factors = [factor + spread * sign for sign in (-1, 1, -1, 1, 0)]
    run = both(torch, [t * f for t, f in zip(torch, factors, strict=True)], (size,))
    (note,) = engine_notes(run)
    assert words in note


def test_the_longest_message_speaks_for_all():
    (note,) = engine_notes(both([1.0] * 3, [1.0] * 3, (SMALL, LARGE)))
    assert "64 MiB" in note


def test_one_launch_says_so():
    (note,) = engine_notes(both([1.0], [1.01], (LARGE,)))
    assert note.endswith("from only 1 launches")


def test_cases_that_differ_in_anything_else_are_not_compared():
    torch = a_case("torch")
    others = (
        a_case("nccl-tests", FAST),
        a_case("nccl-tests", check=False),
        a_case("nccl-tests").model_copy(update={"nodes": 4}),
        a_case("nccl-tests").model_copy(update={"environment": {"NCCL_ALGO": "Tree"}}),
    )
    parts = [(case, records_of(case, [1.0, 1.0])) for case in (torch, *others)]
    assert engine_ratios(a_run(*parts)) == ()
    assert engine_notes(a_run(*parts)) == ()


def test_a_run_of_one_engine_says_nothing():
    torch = a_case("torch")
    assert engine_notes(a_run((torch, records_of(torch, [1.0, 1.0])))) == ()
