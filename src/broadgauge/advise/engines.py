"""Do torch and nccl-tests find the same collectives equally fast? Of one run that has both.

They measure the same library between the same ranks, and not the same thing: torch's engine times
each call alone after a barrier, nccl-tests all its calls one after the other. So where messages
are long both say the network's rate, and where they are short nccl-tests' calls overlap. A large
difference in long messages is not of the network: it is of what torch adds, or of another NCCL.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from broadgauge.advise.limits import LONG_MESSAGE_BYTES, SAME_ENGINE_RATIO
from broadgauge.results.comparing.blocks import ValueOf
from broadgauge.results.comparing.compare_cases import compare_in_blocks
from broadgauge.results.model import CaseSummary, CollectiveSummary, RunSummary
from broadgauge.specs.case import Case
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.records.op_rows import MessageRow, OpRow
from broadgauge.specs.records.record import Record
from broadgauge.specs.units import show_size

Key = tuple[str, str, int]
"""Collective, data type, size in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRatio:
    """One collective at one size by both engines."""

    case: Case
    """torch's."""
    op: str
    dtype: str
    size_bytes: int
    torch_gbyte_per_s: Estimate
    """busbw."""
    nccl_tests_gbyte_per_s: Estimate
    ratio: Estimate | None
    """nccl-tests over torch, paired by block where both are in one; None: a value is zero."""


def engine_ratios(run: RunSummary) -> tuple[EngineRatio, ...]:
    """Every size that both engines measured in cases which agree in all else."""
    return tuple(
        ratio
        for case in run.candidates
        if case.case.workload.measured_by == "torch"
        for other in run.candidates
        if other.case.workload.measured_by == "nccl-tests"
        and _same_but_engine(case.case, other.case)
        for ratio in _ratios(case, other)
    )


def engine_notes(run: RunSummary) -> tuple[str, ...]:
    """A sentence for each pair of cases: how much faster nccl-tests finds their longest message."""
    longest: dict[tuple[str, str], EngineRatio] = {}
    for row in engine_ratios(run):
        key = (row.case.key, row.op)
        if key not in longest or row.size_bytes > longest[key].size_bytes:
            longest[key] = row
    return tuple(_sentence(row) for row in longest.values() if row.ratio is not None)


def _sentence(row: EngineRatio) -> str:
    ratio = row.ratio
    assert ratio is not None
    interval = "" if ratio.low is None else f" ({ratio.low:.2f} to {ratio.high:.2f})"
    what = f"{row.op} {row.dtype} of {show_size(row.size_bytes)}, {row.case.shape}"
    facts = f"{what} on {row.case.network_name}: {ratio.value:.2f}{interval} times torch's busbw"
    few = "" if ratio.low is not None else f"; from only {ratio.launches} launches"
    match _is_same(ratio):
        case True:
            return f"nccl-tests confirms torch: {facts}{few}"
        case None:
            return f"whether nccl-tests confirms torch can't be told: {facts}"
    if row.size_bytes < LONG_MESSAGE_BYTES:
        why = "its calls follow each other without a barrier, which short messages show"
    else:
        why = "not the network's: compare the versions of NCCL in both logs, and repeat"
    return f"nccl-tests and torch differ: {facts}; {why}{few}"


def _is_same(ratio: Estimate) -> bool | None:
    """Within a tenth, by the whole interval where there is one? None: it lies on both sides."""
    low, high = ratio.low, ratio.high
    if low is None or high is None:
        low = high = ratio.value
    if low >= 1 - SAME_ENGINE_RATIO and high <= 1 + SAME_ENGINE_RATIO:
        return True
    return False if high < 1 - SAME_ENGINE_RATIO or low > 1 + SAME_ENGINE_RATIO else None


def _same_but_engine(a: Case, b: Case) -> bool:
    """Keys leave labels out, so that a workload's name may say its engine."""
    workload = b.workload.model_copy(update={"engine": "torch"})
    return a.key == b.model_copy(update={"workload": workload}).key


def _ratios(torch: CaseSummary, nccl_tests: CaseSummary) -> Iterator[EngineRatio]:
    theirs = {_key(row): row for row in nccl_tests.collectives}
    for row in torch.collectives:
        other = theirs.get(_key(row))
        if other is None:
            continue
        comparison, _ = compare_in_blocks(torch, nccl_tests, _busbw(_key(row)))
        yield EngineRatio(
            case=torch.case,
            op=row.op,
            dtype=row.dtype,
            size_bytes=row.size_bytes,
            torch_gbyte_per_s=row.busbw_gbyte_per_s,
            nccl_tests_gbyte_per_s=other.busbw_gbyte_per_s,
            ratio=None if comparison is None else comparison.ratio,
        )


def _key(row: CollectiveSummary | OpRow) -> Key:
    return row.op, row.dtype, row.size_bytes


def _busbw(key: Key) -> ValueOf:
    """Reads this row's busbw of a record."""

    def value_of(record: Record) -> float | None:
        for row in record.collectives:
            if _key(row) == key and not isinstance(row, MessageRow):
                return row.busbw_gbyte_per_s
        return None

    return value_of
