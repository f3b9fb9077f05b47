"""Did others use the cores while it was measured, programs or machines, and how much of them?"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from broadgauge.advise.limits import (
    FOREIGN_CPU_S,
    FOREIGN_ELAPSED_S,
    FOREIGN_RATIO,
    STOLEN_RATIO,
)
from broadgauge.agent.taken_cores import TakenCores
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.records.record import NodeUse, Record, Status
from broadgauge.specs.units import show_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taker:
    """One of those who take cores away."""

    rule: str
    """As advise/trial_findings.py names its findings."""
    words: str
    ratio_of: Callable[[NodeUse], float | None]
    least_ratio: float


_TAKERS = (
    _Taker(
        rule="foreign-load",
        words="other programs used",
        ratio_of=lambda node: node.foreign_busy_ratio,
        least_ratio=FOREIGN_RATIO,
    ),
    _Taker(
        rule="stolen-cores",
        words="the hypervisor took",
        ratio_of=lambda node: node.stolen_ratio,
        least_ratio=STOLEN_RATIO,
    ),
)

SHARING_RULES = frozenset(taker.rule for taker in _TAKERS)
"""Of the findings that `foreign_load` puts into one line for the run."""


def foreign_load(run: RunSummary) -> str | None:
    """One line for the run, where any good trial shared its cores; else None."""
    good = [record for record in run.records if record.status is Status.OK]
    words = _words(good)
    return words and f"{words}: run again on a quiet machine"


def foreign_load_of(summary: CaseSummary) -> str | None:
    """The same of a case, where most of its good trials shared their cores; else None."""
    shared = [r for r in summary.good if any(_loaded([r], taker.rule) for taker in _TAKERS)]
    if 2 * len(shared) <= summary.num_ok:
        return None
    return _words(summary.good)


def _loaded(good: Iterable[Record], rule: str) -> list[Record]:
    return [record for record in good if any(f.rule == rule for f in record.findings)]


def _words(good: Sequence[Record]) -> str | None:
    return ", ".join(words for taker in _TAKERS if (words := _words_of(taker, good))) or None


def _words_of(taker: _Taker, good: Sequence[Record]) -> str | None:
    loaded = _loaded(good, taker.rule)
    if not loaded:
        return None
    ratios = [taker.ratio_of(node) for record in loaded for node in record.nodes]
    used = [ratio for ratio in ratios if ratio is not None and ratio > taker.least_ratio]
    ends = dict.fromkeys(show_ratio(ratio, 2) for ratio in (min(used), max(used))) if used else {}
    share = " to ".join(end.removesuffix(" %") for end in ends)
    some = f"{share} % of the cores" if used else "some of the cores"
    return f"{taker.words} {some} in {len(loaded)} of {len(good)} trials"


def foreign_words(summary: CaseSummary) -> tuple[str, ...]:
    """A line of evidence where other programs used the cores in most trials."""
    words = foreign_load_of(summary)
    return () if words is None else (words,)


def shared_now(taken: Mapping[str, TakenCores]) -> Iterator[str]:
    """Lines on each machine whose cores others use as a run begins, by its name; `""`: this one.

    The thresholds are those of trials, and so are the words: a trial would have this finding.
    """
    for name, each in taken.items():
        whose = f"{name}'s cores" if name else "the cores"
        for words in _words_now(each, whose):
            yield f"{words}: expect wide intervals"


def _words_now(taken: TakenCores, whose: str) -> Iterator[str]:
    if taken.elapsed_s < FOREIGN_ELAPSED_S:
        return
    foreign, stolen = taken.foreign_busy_ratio, taken.stolen_ratio
    foreign_s = foreign * taken.elapsed_s * taken.cores_count
    if foreign > FOREIGN_RATIO and foreign_s >= FOREIGN_CPU_S:
        yield f"other programs use {show_ratio(foreign, 2)} of {whose}"
    if stolen > STOLEN_RATIO:
        yield f"the hypervisor gives others {show_ratio(stolen, 2)} of {whose}"
