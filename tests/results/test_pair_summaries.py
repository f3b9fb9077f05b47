"""Is each way's rate that of its rows, over the median of its own trial?"""

import itertools
from collections.abc import Sequence

import pytest
from tests.results import simulated_experiments as made

from broadgauge.results.pair_summaries import PairMatrix, pair_matrix
from broadgauge.results.summary import summarise_case
from broadgauge.specs.case import Case
from broadgauge.specs.records.op_rows import AnyOpRow, CollectiveRow, MessageRow
from broadgauge.specs.workloads.workload import CollectivesWorkload

PAIRS = CollectivesWorkload(kind="collectives", name="pairs", pairwise=True)


def a_case(nodes: int, ranks_per_node: int = 1) -> Case:
    return made.network_case("slow", nodes=nodes).model_copy(
        update={"workload": PAIRS, "ranks_per_node": ranks_per_node}
    )


def a_row(way: tuple[int, int], time_s: float, size_bytes: int = 10**9) -> MessageRow:
    rate = size_bytes / time_s / 1e9
    return MessageRow(
        op="send_recv",
        dtype="float32",
        size_bytes=size_bytes,
        iterations=5,
        time_s=2 * time_s,
        time_min_s=time_s,
        time_median_s=time_s,
        time_max_s=6 * time_s,
        algbw_gbyte_per_s=rate,
        busbw_gbyte_per_s=rate,
        from_rank=way[0],
        to_rank=way[1],
    )


def matrix_of(case: Case, trials: Sequence[Sequence[AnyOpRow]]) -> PairMatrix | None:
    records = made.run_of([case], [[1.0] * len(trials)]).records
    return pair_matrix(
        summarise_case(
            case,
            tuple(
                record.model_copy(update={"collectives": tuple(rows)})
                for record, rows in zip(records, trials, strict=True)
            ),
        )
    )


def test_a_rate_is_the_largest_message_over_its_median_time() -> None:
    ways = list(itertools.permutations(range(3), 2))
    rows = [a_row(way, 2.5 if way == (0, 2) else 1.0) for way in ways]
    small = [a_row(way, 0.9, 10**6) for way in ways]
    matrix = matrix_of(a_case(3), [[*small, *rows]] * 3)
    assert matrix is not None
    assert (matrix.place, matrix.places, matrix.size_bytes) == ("node", (0, 1, 2), 10**9)
    assert set(matrix.cells) == set(ways)
    slowest = matrix.slowest
    assert (slowest.origin, slowest.target) == (0, 2)
    assert slowest.rate_gbyte_per_s.value == pytest.approx(0.4)
    assert slowest.over_median.value == pytest.approx(0.4)
    assert matrix.cells[2, 0].over_median.value == pytest.approx(1.0)


def test_what_slows_a_whole_trial_cancels() -> None:
    ways = list(itertools.permutations(range(3), 2))
    trials = [
        [a_row(way, weather * (2.0 if way == (1, 2) else 1.0)) for way in ways]
        for weather in (1.0, 3.0, 0.5)
    ]
    matrix = matrix_of(a_case(3), trials)
    assert matrix is not None
    part = matrix.cells[1, 2].over_median
    assert (part.low, part.value, part.high) == pytest.approx((0.5, 0.5, 0.5))


def test_ranks_are_numbered_by_their_node() -> None:
    ways = list(itertools.permutations((0, 4, 8), 2))
    matrix = matrix_of(a_case(3, 4), [[a_row(way, 1.0) for way in ways]])
    assert matrix is not None
    assert matrix.places == (0, 1, 2)
    assert matrix.cells[2, 1].ranks == (8, 4)
    inside = made.network_case("x", nodes=1).model_copy(
        update={"workload": PAIRS, "ranks_per_node": 2}
    )
    one_node = matrix_of(inside, [[a_row((0, 1), 1.0), a_row((1, 0), 1.0)]])
    assert one_node is not None
    assert (one_node.place, one_node.places) == ("rank", (0, 1))


def test_collectives_are_no_pairs_and_pairs_no_collectives() -> None:
    case = a_case(2)
    rows = [a_row((0, 1), 1.0), a_row((1, 0), 1.0)]
    records = made.run_of([case], [[1.0]]).records
    summary = summarise_case(
        case, tuple(r.model_copy(update={"collectives": tuple(rows)}) for r in records)
    )
    assert summary.collectives == ()
    assert len(summary.pairs) == 2
    alone = matrix_of(case, [[CollectiveRow(**rows[0].model_dump())]])
    assert alone is None
