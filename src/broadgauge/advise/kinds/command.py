"""How is a user's own command judged? By what its steps lose against the fastest network."""

from broadgauge.advise.kinds.kind import KindInAdvise
from broadgauge.advise.model import Verdict
from broadgauge.results.model import CaseSummary, RunSummary


class CommandInAdvise(KindInAdvise):
    """A command as it is judged."""

    def verdict(self, summary: CaseSummary, run: RunSummary) -> Verdict:
        from broadgauge.advise.step_verdict import verdict_of_steps

        return verdict_of_steps(summary, run)
