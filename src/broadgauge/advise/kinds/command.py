"""How is a user's own command judged? By what its steps lose against the fastest network, and by
how full the link is while they run."""

from broadgauge.advise.kinds.kind import KindInAdvise
from broadgauge.advise.verdicts.verdict import Verdict
from broadgauge.results.model import CaseSummary, RunSummary


class CommandInAdvise(KindInAdvise):
    """A command as it is judged."""

    def verdict(self, summary: CaseSummary, run: RunSummary) -> Verdict:
        from broadgauge.advise.verdicts.command_verdict import verdict_of_command

        return verdict_of_command(summary, run)
