"""What was conspicuous, said once for all trials that it was seen in?"""

import re
from collections.abc import Sequence

from broadgauge.analysis.model import FindingGroup
from broadgauge.results.model import RunSummary
from broadgauge.specs.records.record import Finding

_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?!\w)")
"""`91.4` of `91.4 % of node 0's cores`; none of `mlx5_0` or `1x2`."""


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
        rule=first.rule,
        severity=first.severity,
        symptom=_ranged(symptoms),
        evidence=() if has_range else first.evidence,
        cause=first.cause,
        fix=first.fix,
        confidence=first.confidence,
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
        return " and ".join(ordered)
    return " to ".join(dict.fromkeys((ordered[0], ordered[-1])))
