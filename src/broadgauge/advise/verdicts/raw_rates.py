"""What do raw files reach on the storage of a case? What its own phase is held against."""

import math

from broadgauge.messages.storage import Access, AskedCache
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.case import Case


def raw_gbyte_per_s(
    summary: CaseSummary, run: RunSummary, access: Access, cache: AskedCache | None = None
) -> float | None:
    """The best that raw files reach through the page cache on the same storage with the same shape;
    None: not measured. `cache`: where this was asked of reads, and each is proven to be that."""
    case = summary.case
    rates = [
        rate
        for each in run.cases
        if (asked := each.case.workload.raw_files_cache) is not None
        and (cache is None or (cache == asked and _is_proven(each, cache)))
        and place_of(each.case) == place_of(case)
        and (rate := each.value(f"{access}_gbyte_per_s")) is not None
    ]
    return None if not rates else min(max(rates), _limit_gbyte_per_s(case, access))


def place_of(case: Case) -> tuple[object, ...]:
    """Where files are read and written, and by how many ranks."""
    return case.storage, case.platform, case.shape


def _limit_gbyte_per_s(case: Case, access: Access) -> float:
    """Of a throttled disk on each node: a short file passes before it is limited."""
    if case.storage is None or case.storage.emulated is None:
        return math.inf
    return case.storage.emulated.byte_per_s(access) * case.nodes / 1e9


def _is_proven(summary: CaseSummary, cache: AskedCache) -> bool:
    reads = [row for record in summary.good for row in record.file_accesses if row.access == "read"]
    return bool(reads) and all(row.cache == cache for row in reads)
