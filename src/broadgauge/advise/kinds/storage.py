"""How are phases on a storage judged? By what plain reads and writes of it reach."""

from typing import ClassVar

from broadgauge.advise.findings.storage import (
    cache_not_as_asked,
    durable_after_return,
    phase_not_measured,
)
from broadgauge.advise.kinds.kind import KindInAdvise, TrialRule
from broadgauge.advise.verdicts.verdict import Verdict
from broadgauge.results.model import CaseSummary, RunSummary


class StorageInAdvise(KindInAdvise):
    """Phases on a storage as they are judged."""

    rules: ClassVar[tuple[TrialRule, ...]] = (
        phase_not_measured,
        cache_not_as_asked,
        durable_after_return,
    )

    def verdict(self, summary: CaseSummary, run: RunSummary) -> Verdict:
        from broadgauge.advise.verdicts.storage_verdict import verdict_of_storage

        del run
        return verdict_of_storage(summary)
