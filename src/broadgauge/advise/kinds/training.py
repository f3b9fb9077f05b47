"""How is a training judged? By what the network costs each step."""

from typing import ClassVar

from broadgauge.advise.findings.link_bytes import amplification_of_step
from broadgauge.advise.kinds.kind import KindInAdvise, TrialRule
from broadgauge.advise.storage.training_checkpoints import (
    checkpoint_share,
    last_durable_checkpoint,
    straggling_checkpoint,
)
from broadgauge.advise.verdicts.verdict import Verdict
from broadgauge.results.model import CaseSummary, RunSummary


class TrainingInAdvise(KindInAdvise):
    """A training as it is judged."""

    rules: ClassVar[tuple[TrialRule, ...]] = (
        amplification_of_step,
        straggling_checkpoint,
        checkpoint_share,
    )
    rules_of_failed: ClassVar[tuple[TrialRule, ...]] = (last_durable_checkpoint,)

    def verdict(self, summary: CaseSummary, run: RunSummary) -> Verdict:
        from broadgauge.advise.verdicts.step_verdict import verdict_of_steps

        return verdict_of_steps(summary, run)
