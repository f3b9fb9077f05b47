"""What was conspicuous, said once for all trials that it was seen in?"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.report.words import listed
from broadgauge.results.model import RunSummary
from broadgauge.specs.record import Finding, Severity

_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?!\w)")
"""`91.4` of `91.4 % of node 0's cores`; none of `mlx5_0` or `1x2`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingGroup:
    """The findings of one rule that differ in nothing but numbers."""

    severity: Severity
    symptom: str
    """With the range of each number."""
    evidence: tuple[str, ...]
    """Of the first, where the symptom holds no range."""
    advice: tuple[str, ...]
    """Cause and remedy, as the first has them."""
    cases: tuple[str, ...]
    num_trials: int

    @property
    def trials(self) -> str:
        """`14 trials`."""
        return "1 trial" if self.num_trials == 1 else f"{self.num_trials} trials"


def finding_groups(run: RunSummary) -> tuple[FindingGroup, ...]:
    """All findings of a run, in the order first seen."""
    seen: dict[tuple[str, str, str], list[tuple[Finding, str, str]]] = {}
    for summary in run.cases:
        for record in summary.records:
            for finding in record.findings:
                kind = (finding.rule, finding.severity.value, _NUMBER.sub("#", finding.symptom))
                place = (finding, summary.case.label, record.record_id)
                seen.setdefault(kind, []).append(place)
    return tuple(_group(places) for places in seen.values())


def _group(places: Sequence[tuple[Finding, str, str]]) -> FindingGroup:
    first = places[0][0]
    symptoms = tuple(dict.fromkeys(finding.symptom for finding, _, _ in places))
    has_range = len(symptoms) > 1 and " % " in symptoms[0]
    return FindingGroup(
        severity=first.severity,
        symptom=_ranged(symptoms),
        evidence=() if has_range else first.evidence,
        advice=tuple(words for words in (first.cause, first.fix) if words),
        cases=tuple(dict.fromkeys(label for _, label, _ in places)),
        num_trials=len({trial for _, _, trial in places}),
    )


def _ranged(symptoms: Sequence[str]) -> str:
    """`other programs used 73 to 100 % of node 0 and 1's cores`."""
    columns = zip(*map(_NUMBER.findall, symptoms), strict=True)
    ranges = iter([_range(column) for column in columns])
    return _NUMBER.sub(lambda _: next(ranges), symptoms[0])


def _range(numbers: Sequence[str]) -> str:
    """`0`, `0 and 1`, or `72.9 to 100`."""
    ordered = sorted(set(numbers), key=lambda number: float(number.replace(",", "")))
    if len(ordered) <= 2 and all(number.isdigit() and len(number) == 1 for number in ordered):
        return listed(ordered)
    return " to ".join(dict.fromkeys((ordered[0], ordered[-1])))
