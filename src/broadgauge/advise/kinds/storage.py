"""How is a storage judged? It is what the phase waits for; asked is whether its reads came from
where they were meant to."""

from typing import ClassVar

from broadgauge.advise.findings.file_cache import other_cache_than_asked
from broadgauge.advise.kinds.kind import KindInAdvise, TrialRule
from broadgauge.advise.verdicts.verdict import Verdict
from broadgauge.results.model import CaseSummary, RunSummary


class StorageInAdvise(KindInAdvise):
    """A phase as it is judged."""

    rules: ClassVar[tuple[TrialRule, ...]] = (other_cache_than_asked,)

    def verdict(self, summary: CaseSummary, run: RunSummary) -> Verdict:
        del run
        from broadgauge.advise.verdicts.storage_verdict import verdict_of_storage

        return verdict_of_storage(summary)
