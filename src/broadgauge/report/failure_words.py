"""Did nothing end well? What a reader must know before any verdict."""

from collections.abc import Iterable

from broadgauge.report.words import printable
from broadgauge.results.model import CaseSummary


def has_failed_whole(summary: CaseSummary) -> bool:
    """Trials failed, and none ended well."""
    return summary.num_failed > 0 and summary.num_ok == 0


def all_failed(cases: Iterable[CaseSummary]) -> str | None:
    """`every trial failed: no such file: train.py`; None: a case has another story."""
    cases = tuple(cases)
    if not cases or not all(map(has_failed_whole, cases)):
        return None
    errors = (record.error for case in cases for record in case.records)
    messages = dict.fromkeys(error.message for error in errors if error is not None)
    first = next(iter(messages), "the reason is unknown")
    more = f" (and {len(messages) - 1} other reasons)" if len(messages) > 2 else ""
    more = " (and another reason)" if len(messages) == 2 else more
    return f"every trial failed: {printable(first)}{more}"
