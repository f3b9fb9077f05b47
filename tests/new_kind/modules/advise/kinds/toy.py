"""How are naps judged?"""

from collections.abc import Iterator
from typing import ClassVar

from broadgauge.advise.kinds.kind import KindInAdvise, TrialRule
from broadgauge.advise.verdicts.verdict import Bound, Verdict, verdict_that
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.case import Case
from broadgauge.specs.records.record import Finding, Record, Severity


def _every_nap(case: Case, record: Record) -> Iterator[Finding]:
    yield Finding(rule="nap", severity=Severity.INFO, symptom="the ranks napped")


class ToyInAdvise(KindInAdvise):
    rules: ClassVar[tuple[TrialRule, ...]] = (_every_nap,)

    def verdict(self, summary: CaseSummary, run: RunSummary) -> Verdict:
        return verdict_that(Bound.TOY, "naps wait for the clock")
