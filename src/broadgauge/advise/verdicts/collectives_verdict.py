"""What do collectives wait for: the network, or this host? They do nothing but wait.

Only what fills the link is asked; of messages between pairs of nodes, whether one is slow
(results/pair_summaries.py). Ranks that are all on one node: advise/verdicts/one_node_verdict.py.
"""

from broadgauge.advise.pairs.slow_pairs_over_launches import judged_pairs
from broadgauge.advise.verdicts.evidence import QUIET, evidence_of, how_full
from broadgauge.advise.verdicts.link_use import host_limit, link_use_of
from broadgauge.advise.verdicts.one_node_verdict import verdict_on_one_node
from broadgauge.advise.verdicts.share_threshold import few_launches
from broadgauge.advise.verdicts.verdict import Bound, Verdict, verdict_that
from broadgauge.results.model import CaseSummary, RunSummary


def verdict_of_collectives(summary: CaseSummary, run: RunSummary) -> Verdict:
    """Which link do they wait for, and is it the network's or this host's?"""
    if summary.case.link is None:
        return verdict_on_one_node(summary, run)
    link = link_use_of(summary, run, cost_s=None)
    host = host_limit(link)
    judged = judged_pairs(summary)
    pairs = "" if judged is None else judged.words
    has_slow_pair = judged is not None and bool(judged.slow)
    bound = Bound.NETWORK if link.is_full or has_slow_pair else Bound.UNKNOWN
    why = host or ("" if pairs and not link.words else how_full(link))
    few = few_launches(next(iter(summary.estimates.values()), None))
    others = "" if link.is_full or link.foreign is None else f"{link.foreign}: {QUIET}"
    sentence = "; ".join(part for part in (pairs, why, others, few) if part)
    return verdict_that(
        Bound.HOST if host is not None else bound, sentence, evidence_of(summary, link)
    )
