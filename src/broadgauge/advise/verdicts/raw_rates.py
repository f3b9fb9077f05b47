"""What do raw files reach on the storage of a case? What its own phase is held against."""

from broadgauge.messages.storage import Access, AskedCache
from broadgauge.results.model import CaseSummary, RunSummary


def raw_gbyte_per_s(
    summary: CaseSummary, run: RunSummary, access: Access, cache: AskedCache | None = None
) -> float | None:
    """The best that raw files reach through the page cache on the same storage with the same shape;
    None: not measured. `cache`: only where reads were to find this in memory."""
    case = summary.case
    rates = [
        rate
        for each in run.cases
        if (asked := each.case.workload.raw_files_cache) is not None
        and cache in (None, asked)
        and each.case.storage == case.storage
        and each.case.platform == case.platform
        and each.case.shape == case.shape
        and (rate := each.value(f"{access}_gbyte_per_s")) is not None
    ]
    return max(rates, default=None)
