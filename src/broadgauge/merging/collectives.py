"""What do the ranks' times of each collective and size add up to?

The slowest rank counts in each iteration. Wire bytes are those of the busiest node in its busier
direction, without the bytes of the barriers between the iterations.
"""

import statistics
from collections.abc import Sequence

from broadgauge.catalog.traffic import ring_node_bytes
from broadgauge.merging.counters import (
    MarkedInterval,
    Traffic,
    busiest_bytes,
    intervals_by_label,
)
from broadgauge.merging.definitions import algbw_gbyte_per_s, busbw_gbyte_per_s
from broadgauge.merging.metrics import (
    ONE_RANK,
    MeasurementBuilder,
    put_link,
    put_nodes,
    why_no_traffic,
)
from broadgauge.merging.pairwise import put_pairs
from broadgauge.merging.rank_blocks import RankBlocks, same_of_all_ranks
from broadgauge.messages.rank import BARRIER, CollectiveBlock
from broadgauge.specs.case import Case
from broadgauge.specs.launching import Mark
from broadgauge.specs.records.op_rows import (
    AnyOpRow,
    CollectiveRow,
    MessageRow,
    NcclTestsRow,
    OpRow,
)
from broadgauge.specs.records.pair_rates import largest_of_pairs
from broadgauge.specs.records.record import ErrorKind, NodeUse, Phase, TrialError
from broadgauge.specs.units import show_size
from broadgauge.specs.workloads.workload import CollectiveOp

ONE_MEAN = "nccl-tests gives a mean of calls that overlap, which is no latency"
SameBlock = tuple[CollectiveBlock, ...]
"""The same collective at the same size, of every rank."""


def merge_collectives(
    case: Case, ranks: Sequence[RankBlocks], marks: Sequence[Mark]
) -> MeasurementBuilder:
    """Of a pairwise trial each message's times are its sender's: the others wait."""
    found = MeasurementBuilder()
    intervals = intervals_by_label(marks)
    blocks = same_of_all_ranks([rank.of(CollectiveBlock) for rank in ranks], case.world_size)
    barrier = _barrier_traffic(blocks, intervals)
    measured = [same for same in blocks if same[0].op != BARRIER]
    found.collectives = tuple(
        _row(case, same, intervals.get(same[0].label), barrier) for same in measured
    )
    found.series["iteration_time_s"] = tuple(
        (float(row), seconds)
        for row, same in enumerate(measured)
        if same[0].iterations is None  # a mean is no iteration
        for seconds in _times_s(same)
    )
    if largest_of_pairs(found.collectives):
        put_pairs(found, case)
    else:
        put_headline(found, case)
    used = [intervals[same[0].label] for same in measured if same[0].label in intervals]
    put_nodes(found, case, used)
    if any(same[0].engine != "torch" for same in measured):
        found.nodes = tuple(_without_ranks(node) for node in found.nodes)
    found.error = _wrong_result(measured)
    return found


def slowest_rank_s(seconds_by_rank: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """How long did each iteration take until the last rank was through?"""
    return tuple(max(iteration) for iteration in zip(*seconds_by_rank, strict=True))


def _times_s(same: SameBlock) -> tuple[float, ...]:
    """How long did each iteration take until the last rank was through? A message's times are said
    by its sender alone."""
    if same[0].from_rank is not None:
        return next((block.seconds for block in same if block.seconds), ())
    return slowest_rank_s([block.seconds for block in same])


def _barrier_traffic(
    blocks: Sequence[SameBlock], intervals: dict[str, MarkedInterval]
) -> tuple[Traffic, int] | None:
    """What did so many barriers cost on the wire? None: unknown, or nothing to subtract."""
    for same in blocks:
        if same[0].op == BARRIER and same[0].label in intervals:
            traffic = intervals[same[0].label].traffic
            return None if traffic is None else (traffic, len(same[0].seconds))
    return None


def _row(
    case: Case,
    same: SameBlock,
    interval: MarkedInterval | None,
    barrier: tuple[Traffic, int] | None,
) -> AnyOpRow:
    """What all kinds of rows have, then what this one is."""
    block = same[0]
    times_s = _times_s(same)
    common = _op_row(case, same, interval, barrier).model_dump()
    if block.iterations is not None:  # one mean, which is no minimum and no median
        return NcclTestsRow(**common, engine=block.engine)
    common |= {
        "time_min_s": min(times_s),
        "time_median_s": statistics.median(times_s),
        "time_max_s": max(times_s),
    }
    if block.from_rank is None or block.to_rank is None:
        return CollectiveRow(**common)
    return MessageRow(**common, from_rank=block.from_rank, to_rank=block.to_rank)


def _op_row(
    case: Case,
    same: SameBlock,
    interval: MarkedInterval | None,
    barrier: tuple[Traffic, int] | None,
) -> OpRow:
    block = same[0]
    op: CollectiveOp = block.op  # type: ignore[assignment]  # validated by the case
    ranks, times_s = case.world_size, _times_s(same)
    mean_s = statistics.fmean(times_s)
    traffic = interval.traffic if interval is not None and case.nodes > 1 else None
    iterations = block.iterations or len(times_s)
    wire_bytes = None if traffic is None else _wire_bytes(traffic, iterations, barrier)
    ring_bytes = ring_node_bytes(op, ranks, block.size_bytes, ranks_per_node=case.ranks_per_node)
    return OpRow(
        op=op,
        dtype=block.dtype,
        size_bytes=block.size_bytes,
        iterations=iterations,
        time_s=mean_s,
        algbw_gbyte_per_s=algbw_gbyte_per_s(block.size_bytes, mean_s),
        busbw_gbyte_per_s=busbw_gbyte_per_s(op, ranks, block.size_bytes, mean_s),
        wire_bytes=wire_bytes,
        amplification_ratio=wire_bytes / ring_bytes
        if wire_bytes is not None and ring_bytes
        else None,
        link_rate_gbps=wire_bytes * 8 / mean_s / 1e9 if wire_bytes is not None else None,
        is_correct=_all_correct(same),
    )


def _without_ranks(node: NodeUse) -> NodeUse:
    """Processes that a rank started and has not waited for are not in its count: others' use of
    the cores is not known then."""
    return node.model_copy(update={"ranks_cpu_s": None, "foreign_busy_ratio": None})


def _wire_bytes(traffic: Traffic, iterations: int, barrier: tuple[Traffic, int] | None) -> float:
    """How many bytes an iteration, without its barrier's?"""
    if barrier is None:
        return busiest_bytes(traffic) / iterations
    barrier_traffic, num_barriers = barrier
    return max(
        max(bytes_here / iterations - barrier_bytes / num_barriers, 0.0)
        for node, barrier_node in zip(traffic, barrier_traffic, strict=True)
        for bytes_here, barrier_bytes in zip(node, barrier_node, strict=True)
    )


def _all_correct(same: SameBlock) -> bool | None:
    verdicts = {block.is_correct for block in same}
    if same[0].from_rank is not None and len(verdicts) > 1:
        verdicts.discard(None)  # the receiver alone can tell
    if False in verdicts:
        return False
    return None if None in verdicts else True


def put_headline(found: MeasurementBuilder, case: Case) -> None:
    """The largest all_reduce, else the first collective's largest, in its first data type."""
    rows = found.collectives
    if not rows:
        for name in ("busbw_gbyte_per_s", "algbw_gbyte_per_s", "latency_s"):
            found.put(name, None, "no collective was measured by all ranks")
        put_link(found, case, None, None)
        found.put("amplification_ratio", None, why_no_traffic(case))
        return
    op = "all_reduce" if any(row.op == "all_reduce" for row in rows) else rows[0].op
    dtype = next(row.dtype for row in rows if row.op == op)
    same = [row for row in rows if (row.op, row.dtype) == (op, dtype)]
    largest = max(same, key=lambda row: row.size_bytes)
    smallest = min(same, key=lambda row: row.size_bytes)
    is_alone = case.world_size == 1
    found.put("busbw_gbyte_per_s", None if is_alone else largest.busbw_gbyte_per_s, ONE_RANK)
    found.put("algbw_gbyte_per_s", None if is_alone else largest.algbw_gbyte_per_s, ONE_RANK)
    is_each_timed = not isinstance(smallest, NcclTestsRow)
    found.put("latency_s", smallest.typical_s if is_each_timed else None, ONE_MEAN)
    if is_alone:
        found.put("latency_s", None, ONE_RANK)
    put_link(found, case, largest.wire_bytes, largest.time_s)
    found.put("amplification_ratio", largest.amplification_ratio, why_no_traffic(case))


def _wrong_result(measured: Sequence[SameBlock]) -> TrialError | None:
    for same in measured:
        for rank, block in enumerate(same):
            if block.is_correct is False:
                return TrialError(
                    kind=ErrorKind.WRONG_RESULT,
                    message=f"{block.op} {block.dtype} of {show_size(block.size_bytes)} gave a "
                    f"wrong result on rank {rank}",
                    phase=Phase.MEASURE,
                    rank=rank,
                )
    return None
