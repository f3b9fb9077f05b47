"""How are collectives judged? They do nothing but wait: only what fills the link is asked."""

from typing import ClassVar

from broadgauge.advise.findings.link_bytes import amplification_by_op, link_not_filled, wrong_result
from broadgauge.advise.findings.node_paths import path_expectation
from broadgauge.advise.kinds.kind import KindInAdvise, TrialRule
from broadgauge.advise.pairs.slow_pairs import slow_pair
from broadgauge.advise.verdicts.verdict import Verdict
from broadgauge.results.model import CaseSummary, RunSummary


class CollectivesInAdvise(KindInAdvise):
    """Collectives as they are judged."""

    rules: ClassVar[tuple[TrialRule, ...]] = (
        wrong_result,
        amplification_by_op,
        link_not_filled,
        path_expectation,
        slow_pair,
    )

    def verdict(self, summary: CaseSummary, run: RunSummary) -> Verdict:
        from broadgauge.advise.verdicts.collectives_verdict import verdict_of_collectives

        return verdict_of_collectives(summary, run)
