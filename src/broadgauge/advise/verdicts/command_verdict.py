"""What does a user's own command wait for most? By the link's counters while its steps run.

A command has no step with communication off. Where the same command ran on a faster network, what
it loses against that decides (advise/verdicts/step_verdict.py). Where that leaves it open:

1. The link was full (80 % of its line rate, over all of its steps, pauses included): no step can
   take less than its bytes take on this link, so the network is what it waits for, unless the host
   is the limit of that link.
2. It was not: a faster link saves at most the share of the time that it was full, and what latency
   costs is not known. An unshaped network beside it would tell.
"""

from dataclasses import replace

from broadgauge.advise.limits import LINE_SHARE
from broadgauge.advise.verdicts.evidence import evidence_of
from broadgauge.advise.verdicts.link_use import LinkUse, host_limit, link_use_of
from broadgauge.advise.verdicts.share_threshold import few_launches
from broadgauge.advise.verdicts.step_verdict import share_against_fastest, verdict_of_steps
from broadgauge.advise.verdicts.verdict import Bound, Verdict, verdict_that
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.units import show_rate, show_ratio, show_size, show_time

ADD_REFERENCE = "an unshaped network beside it would tell (`run --add-reference`)"


def verdict_of_command(summary: CaseSummary, run: RunSummary) -> Verdict:
    """What does it wait for most?"""
    found = verdict_of_steps(summary, run)
    if summary.case.link is None or found.bound is not Bound.UNKNOWN:
        return found
    use = summary.estimates.get("line_share_ratio")
    if use is None:
        return _reference(found) if _is_reference(summary, run) else _open(found, summary, run)
    words = _use_words(summary, use)
    link = replace(link_use_of(summary, run, None), full_ratio=use.value, words=(words,))
    evidence = evidence_of(summary, link)
    few = few_launches(use)
    if use.value < LINE_SHARE:
        saved = "so that a faster link saves at most that, and what latency costs is not known"
        why = [_of_networks(found, summary, run), f"{words}, {saved}", _hint(summary, run), few]
        return verdict_that(Bound.UNKNOWN, "; ".join(filter(None, why)), evidence)
    against = share_against_fastest(summary, run)
    words = words if against is None else f"{words}; {against[1]}"
    return _of_full_link(words, link, few, evidence)


def _of_full_link(words: str, link: LinkUse, few: str, evidence: tuple[str, ...]) -> Verdict:
    host = host_limit(link)
    bound = Bound.NETWORK if host is None else Bound.HOST
    why = "; ".join(part for part in (words, host, few) if part)
    return verdict_that(bound, why, evidence)


def _use_words(summary: CaseSummary, use: Estimate) -> str:
    """`the link is 97 % full while the steps run (2.4 MB in 99 ms at 200 Mbit/s)`."""
    full = f"the link is {show_ratio(use.value, 2)} full while the steps run"
    rate, num_bytes = summary.value("link_rate_gbps"), summary.value("wire_bytes")
    line_gbps = None if summary.case.link is None else summary.case.link.node_rate_gbps
    if rate is None or not num_bytes or line_gbps is None:
        return full
    wire_s = num_bytes * 8e-9 / line_gbps
    return (
        f"{full}: from line to line of its metric it carries {show_size(round(num_bytes))}, which "
        f"take {show_time(wire_s)} at {show_rate(line_gbps)}"
    )


def _of_networks(found: Verdict, summary: CaseSummary, run: RunSummary) -> str:
    """What was lost against the fastest network, where there is one."""
    if run.fastest_of(summary) in (None, summary):
        return ""
    return found.sentence.removeprefix(f"{found.bound.value}: ")


def _is_reference(summary: CaseSummary, run: RunSummary) -> bool:
    """Are other networks held against this one?"""
    return run.fastest_of(summary) is summary and len(run.same_work(summary)) > 1


def _reference(found: Verdict) -> Verdict:
    why = "the other networks are held against this one, and nothing faster is here"
    return replace(found, sentence=f"{found.bound.value}: {why}")


def _open(found: Verdict, summary: CaseSummary, run: RunSummary) -> Verdict:
    hint = _hint(summary, run)
    return found if not hint else replace(found, sentence=f"{found.sentence}; {hint}")


def _hint(summary: CaseSummary, run: RunSummary) -> str:
    """What would tell; empty where the run has it already."""
    networks = [each.case.link for each in run.same_work(summary)]
    has_reference = any(link is not None and link.node_rate_gbps is None for link in networks)
    return "" if has_reference else ADD_REFERENCE
