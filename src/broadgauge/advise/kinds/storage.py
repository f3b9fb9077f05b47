"""How is a storage judged? It is what the phase waits for; asked is whether its reads came from
where they were meant to."""

from dataclasses import dataclass
from typing import ClassVar

from broadgauge.advise.findings.file_cache import other_cache_than_asked
from broadgauge.advise.kinds.kind import KindInAdvise, TrialRule
from broadgauge.advise.verdicts.verdict import Verdict
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.workloads.workload import StorageWorkload


@dataclass(frozen=True, slots=True)
class StorageInAdvise(KindInAdvise):
    """A phase as it is judged."""

    storage: StorageWorkload

    rules: ClassVar[tuple[TrialRule, ...]] = (other_cache_than_asked,)

    def verdict(self, summary: CaseSummary, run: RunSummary) -> Verdict:
        if self.storage.saved_model is not None:
            from broadgauge.advise.verdicts.checkpoint_verdict import verdict_of_checkpoint

            return verdict_of_checkpoint(summary, run)
        from broadgauge.advise.verdicts.storage_verdict import verdict_of_storage

        return verdict_of_storage(summary)
