"""Did other programs use the cores while it was measured, and how many of them?"""

from collections.abc import Iterable, Sequence

from broadgauge.advise.judge import FOREIGN_RATIO
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.record import Record, Status
from broadgauge.specs.units import show_ratio

RULE = "foreign-load"
"""As advise/judge.py names its findings."""


def foreign_load(run: RunSummary) -> str | None:
    """One line for the run, where any good trial shared its cores; else None."""
    good = [record for record in run.records if record.status is Status.OK]
    words = _words(good)
    return words and f"{words}: run again on a quiet machine"


def foreign_load_of(summary: CaseSummary) -> str | None:
    """The same of a case, where most of its good trials shared their cores; else None."""
    if 2 * len(_loaded(summary.good)) <= summary.num_ok:
        return None
    return _words(summary.good)


def _loaded(good: Iterable[Record]) -> list[Record]:
    return [record for record in good if any(f.rule == RULE for f in record.findings)]


def _words(good: Sequence[Record]) -> str | None:
    loaded = _loaded(good)
    if not loaded:
        return None
    used = [
        node.foreign_busy_ratio
        for record in loaded
        for node in record.nodes
        if node.foreign_busy_ratio is not None and node.foreign_busy_ratio > FOREIGN_RATIO
    ]
    ends = dict.fromkeys(show_ratio(ratio, 2) for ratio in (min(used), max(used))) if used else {}
    share = " to ".join(end.removesuffix(" %") for end in ends)
    some = f"{share} % of the cores" if used else "some of the cores"
    return f"other programs used {some} in {len(loaded)} of {len(good)} trials"
