"""What did a storage do in a trial? Each phase of all ranks, the slowest one deciding.

Ranks wait for each other before and after each phase, outside of its time, so that no straggler
reaches into the next one.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from broadgauge.merging.counters import intervals_by_label
from broadgauge.merging.metrics import MeasurementBuilder, put_nodes
from broadgauge.merging.rank_blocks import RankBlocks
from broadgauge.merging.storage_metrics import put_storage_metrics
from broadgauge.messages.storage import (
    ELSEWHERE,
    CacheState,
    StorageBlock,
    StoragePhaseWord,
    StorageProblem,
)
from broadgauge.specs.case import Case
from broadgauge.specs.launching import Mark
from broadgauge.specs.record import ErrorKind, Phase, TrialError
from broadgauge.specs.storage_rows import StorageRow

FEWEST_FOR_P99 = 500
"""Fewer operations have no hundredth part that is more than a handful."""
MOST_WORDS = 200
"""Characters of an evidence or a problem: of a record's 64 KiB each row has its share."""
_SAVE = re.compile(r", save \d+$")
"""Saves of one format, one after the other, are one row."""
WAIT_SERIES, OPERATION_SERIES = "storage_wait_s", "storage_operation_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowKey:
    """What is one row of the record."""

    phase: StoragePhaseWord
    variant: str
    asked_cache: Literal["cold", "warm"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What one rank said of one row: as many blocks as it was measured times."""

    rank: int
    blocks: tuple[StorageBlock, ...]

    @property
    def wait_s(self) -> float:
        """Mean of its times."""
        return sum(block.stall_s for block in self.blocks) / len(self.blocks)


def merge_storage(
    case: Case, ranks: Sequence[RankBlocks], marks: Sequence[Mark]
) -> MeasurementBuilder:
    """A phase that failed leaves a row with its problem, and the trial is good as long as one was
    measured."""
    found = MeasurementBuilder()
    rows: list[StorageRow] = []
    waits: list[tuple[float, ...]] = []
    operations: list[tuple[float, ...]] = []
    problems = _problems(ranks)
    for key, said in _by_row(ranks).items():
        if len(said) < case.world_size:
            problem = problems.pop((key.phase, key.variant), None)
            why = _silent(said, case.world_size) if problem is None else problem.message
            rows.append(_unmeasured(key, why))
            continue
        row = float(len(rows))
        rows.append(_row(said, case.ranks_per_node))
        waits += [(row, wait_s) for wait_s in _each_wait_s(said)]
        every = (block for each in said for block in each.blocks)
        operations += [(row, time_s) for block in every for time_s in block.operation_s]
    rows += [
        _unmeasured(_RowKey(phase=each.phase, variant=each.variant, asked_cache=None), each.message)
        for each in problems.values()
    ]
    found.storage = tuple(rows)
    found.series[WAIT_SERIES], found.series[OPERATION_SERIES] = tuple(waits), tuple(operations)
    put_storage_metrics(found, case)
    put_nodes(found, case, list(intervals_by_label(marks).values()))
    if rows and all(row.problem for row in rows):
        found.error = TrialError(
            kind=ErrorKind.REFUSED,
            message=f"no phase was measured: {rows[0].phase}: {rows[0].problem}",
            phase=Phase.MEASURE,
        )
    return found


def _problems(ranks: Sequence[RankBlocks]) -> dict[tuple[str, str], StorageProblem]:
    """By phase and variant what the first rank said that had one of its own."""
    said = [each for rank in ranks for each in rank.of(StorageProblem)]
    found: dict[tuple[str, str], StorageProblem] = {}
    for each in sorted(said, key=lambda each: each.message == ELSEWHERE):
        found.setdefault((each.phase, each.variant), each)
    return found


def _by_row(ranks: Sequence[RankBlocks]) -> dict[_RowKey, list[_Said]]:
    """In the order measured."""
    found: dict[_RowKey, list[_Said]] = {}
    for rank in ranks:
        of_rank: dict[_RowKey, list[StorageBlock]] = {}
        for block in rank.of(StorageBlock):
            key = _RowKey(
                phase=block.phase,
                variant=_SAVE.sub("", block.variant),
                asked_cache=block.asked_cache,
            )
            of_rank.setdefault(key, []).append(block)
        for key, blocks in of_rank.items():
            found.setdefault(key, []).append(_Said(rank=rank.rank, blocks=tuple(blocks)))
    return found


def _silent(said: Sequence[_Said], world_size: int) -> str:
    told = {each.rank for each in said}
    silent = next(rank for rank in range(world_size) if rank not in told)
    return f"rank {silent} told nothing of it"


def _unmeasured(key: _RowKey, why: str) -> StorageRow:
    return StorageRow(
        phase=key.phase,
        variant=key.variant,
        asked_cache=key.asked_cache,
        problem=_cut(why) or "not measured",
    )


def _row(said: Sequence[_Said], ranks_per_node: int) -> StorageRow:
    slowest = max(said, key=lambda each: each.wait_s)
    first = slowest.blocks[0]
    every = [block for each in said for block in each.blocks]
    times = min(len(each.blocks) for each in said)
    cache, evidence = _cache(said)
    moments = [[each.blocks[i] for each in said] for i in range(times)]
    durable_s = _mean([_most([block.durable_s for block in moment]) for moment in moments])
    spans_s = [_span_s(moment, ranks_per_node) for moment in moments]
    num_bytes = sum(block.num_bytes for block in moments[0])
    span_s = _mean(spans_s)
    operation_s = sorted(time_s for block in every for time_s in block.operation_s)
    operations = sum(block.operations for block in every)
    is_p99_known = operations >= FEWEST_FOR_P99 and bool(operation_s)
    return StorageRow(
        phase=first.phase,
        variant=_SAVE.sub("", first.variant),
        asked_cache=first.asked_cache,
        cache=cache,
        cache_evidence=evidence,
        num_bytes=num_bytes,
        wait_s=_mean([max(block.stall_s for block in moment) for moment in moments]),
        durable_s=durable_s,
        durable_evidence=_cut(_durable_evidence(every)),
        gbyte_per_s=num_bytes / span_s / 1e9 if span_s and num_bytes else None,
        operations=operations,
        operation_p50_s=_percentile(operation_s, 0.5) if operation_s else None,
        operation_p99_s=_percentile(operation_s, 0.99) if is_p99_known else None,
        cpu_s=sum(block.cpu_s for block in every) / times,
        read_bytes=_read_bytes(moments[0]),
        parts_s=_parts_s(slowest.blocks),
        samples=sum(block.samples for block in moments[0]),
    )


def _each_wait_s(said: Sequence[_Said]) -> Iterator[float]:
    """Slowest rank at each batch; of a phase without batches each time that it was measured."""
    for moment in zip(*(each.blocks for each in said), strict=False):
        if all(block.step_stalls_s for block in moment):
            yield from map(max, zip(*(block.step_stalls_s for block in moment), strict=False))
        else:
            yield max(block.stall_s for block in moment)


def _span_s(moment: Sequence[StorageBlock], ranks_per_node: int) -> float | None:
    """From the first rank's begin to the last one's end. Clocks agree inside a node only; nodes
    begin together, so the longest of theirs counts."""
    spans_s = []
    for i in range(0, len(moment), ranks_per_node):
        node = moment[i : i + ranks_per_node]
        ends_s = [block.began_s + max(block.busy_s, block.durable_s or 0.0) for block in node]
        spans_s.append(max(ends_s) - min(block.began_s for block in node))
    return max(spans_s) or None


def _cache(said: Sequence[_Said]) -> tuple[CacheState | None, str]:
    """Cold where it is proven of all ranks; ranks that differ prove nothing."""
    proofs = [(each.rank, block.cache) for each in said for block in each.blocks]
    known = [(rank, proof) for rank, proof in proofs if proof is not None]
    if not known:
        return None, ""
    states = {proof.state for _, proof in known}
    if len(states) == 1 and len(known) == len(proofs):
        return known[0][1].state, _cut(known[0][1].evidence)
    told = "; ".join(f"rank {rank} {proof.state}: {proof.evidence}" for rank, proof in known)
    return "unknown", _cut(f"ranks differ: {told}")


def _durable_evidence(blocks: Iterable[StorageBlock]) -> str:
    """Of a rank that does not know when, if there is one."""
    told = sorted(blocks, key=lambda block: block.durable_s is not None)
    return next((block.durable_evidence for block in told if block.durable_evidence), "")


def _read_bytes(moment: Sequence[StorageBlock]) -> int | None:
    known = [block.read_bytes for block in moment if block.read_bytes is not None]
    return sum(known) if len(known) == len(moment) else None


def _parts_s(blocks: Sequence[StorageBlock]) -> dict[str, float]:
    """Mean of each, in the order told."""
    names = dict.fromkeys(name for block in blocks for name in block.parts_s)
    return {
        name: sum(block.parts_s.get(name, 0.0) for block in blocks) / len(blocks) for name in names
    }


def _percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest that at least this share is not above. Source: nearest-rank definition."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _most(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else None


def _cut(words: str) -> str:
    return words if len(words) <= MOST_WORDS else f"{words[: MOST_WORDS - 1]}…"
