"""How is a storage judged? By what its phase waits for, and by whether its reads came from where
they were meant to."""

from dataclasses import dataclass
from typing import ClassVar

from broadgauge.advise.findings.compressed_files import compressed_files
from broadgauge.advise.findings.file_cache import other_cache_than_asked
from broadgauge.advise.findings.throttle_burst import faster_than_throttle
from broadgauge.advise.kinds.kind import KindInAdvise, TrialRule
from broadgauge.advise.verdicts.verdict import Verdict
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.workloads.workload import BatchesWorkload


class StorageInAdvise(KindInAdvise):
    """Any phase as it is judged."""

    rules: ClassVar[tuple[TrialRule, ...]] = (
        other_cache_than_asked,
        faster_than_throttle,
        compressed_files,
    )


class RawFilesInAdvise(StorageInAdvise):
    def verdict(self, summary: CaseSummary, run: RunSummary) -> Verdict:
        del run
        from broadgauge.advise.verdicts.storage_verdict import verdict_of_storage

        return verdict_of_storage(summary)


class ModelLoadInAdvise(StorageInAdvise):
    def verdict(self, summary: CaseSummary, run: RunSummary) -> Verdict:
        from broadgauge.advise.verdicts.model_load_verdict import verdict_of_model_load

        return verdict_of_model_load(summary, run)


@dataclass(frozen=True, slots=True)
class BatchesInAdvise(StorageInAdvise):
    workload: BatchesWorkload

    def verdict(self, summary: CaseSummary, run: RunSummary) -> Verdict:
        from broadgauge.advise.verdicts.batches_verdict import verdict_of_batches

        return verdict_of_batches(summary, self.workload, run)


class CheckpointInAdvise(StorageInAdvise):
    def verdict(self, summary: CaseSummary, run: RunSummary) -> Verdict:
        from broadgauge.advise.verdicts.checkpoint_verdict import verdict_of_checkpoint

        return verdict_of_checkpoint(summary, run)
