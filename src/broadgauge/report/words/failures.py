"""Did every trial fail? What a reader must know before any verdict."""

from collections.abc import Iterable

from broadgauge.report.words.printable import printable
from broadgauge.results.model import CaseSummary
from broadgauge.specs.records.record import Status


def has_failed_whole(summary: CaseSummary) -> bool:
    """Trials failed, and none succeeded."""
    return summary.num_failed > 0 and summary.num_ok == 0


def all_failed(cases: Iterable[CaseSummary]) -> str | None:
    """`every trial failed: no such file: train.py`; None: a case has another story."""
    cases = tuple(cases)
    if not cases or not all(map(has_failed_whole, cases)):
        return None
    messages = reasons(cases)
    more = f" (and {len(messages) - 1} other reasons)" if len(messages) > 2 else ""
    more = " (and another reason)" if len(messages) == 2 else more
    return f"every trial failed: {messages[0]}{more}"


def reasons(cases: Iterable[CaseSummary]) -> tuple[str, ...]:
    """Why trials of these failed: the headline of each case's first failure, each once."""
    found: dict[str, None] = {}
    for case in cases:
        errors = [r.error for r in case.records if r.status in (Status.FAILED, Status.TIMEOUT)]
        first = next((error for error in errors if error is not None), None)
        if first is not None:
            found[printable(first.headline)] = None
    return tuple(found) or ("the reason is unknown",)
