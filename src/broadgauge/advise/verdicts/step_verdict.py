"""What does a job with steps wait for most: the network, this host, or its own arithmetic?

A training with several nodes is judged by its network share, the mean network_cost_s over the mean
step_time_s (results/network_share.py):

1. Unknown share, an interval across 30 %, or launches of which some say that the network costs time
   and others that it saves some, by more than 4 % of a step: unknown. So is a share below −4 % from
   fewer than three launches, or with an interval of 30 points or more: no network saves time.
2. Share below 30 %: compute-bound. A network of infinite speed would make the step 1 / (1 - share)
   times as fast, so below 30 % no network at all gives 1.43 times.
3. Share above, and the host is the limit: host-bound. That is an unshaped link (what it carries is
   this host), a ceiling below twice the shaped rate, or nodes without a core left for the network
   stack (limits.is_host_saturated, in the job or in the collectives on that network). On CPUs the
   cores count only where the link is not full: they compute and wait, too, and a full link proves
   that they kept up. That a network was found, with no rate of ours, is no limit of the host's:
   there the cores alone are asked.
4. Share above, and the link is full: network-bound. Full is when the step's bytes at line rate
   take 80 % of the time that the network costs, and the largest collective on the same network
   reached 80 % of the line rate by counters; where one is not known, the other alone. A found
   network's line rate is what one or eight plain TCP streams carried in the same launches.
5. Share above, link not full, host idle: unknown. Latency or the library's settings are left.
   Where other programs used the cores in most trials, rule 3 does not ask how busy they were, and
   the sentence names those programs instead.

A command of the user's has no step with communication off. What its time loses against the fastest
network of the same run is a lower bound of the share: only the network differs. Above 30 % it is
network-bound without a look at bytes; below, it is unknown, for both networks may cost much.

Ranks that are all on one node: advise/verdicts/one_node_verdict.py.

With three launches or more the whole interval has to lie on one side of 30 %; with fewer the point
estimate decides, and the sentence says so. Nothing here compares runs.
"""

from broadgauge.advise.limits import FEWEST_LAUNCHES
from broadgauge.advise.verdicts.evidence import QUIET, evidence_of, how_full
from broadgauge.advise.verdicts.link_use import LinkUse, host_limit, link_use_of
from broadgauge.advise.verdicts.one_node_verdict import verdict_on_one_node
from broadgauge.advise.verdicts.share_threshold import (
    across_words,
    few_launches,
    impossible_words,
    is_impossible,
    percent,
    side_of,
    sign_disagreement,
)
from broadgauge.advise.verdicts.verdict import Bound, Verdict, verdict_that
from broadgauge.results.comparing.compare_cases import compare_cases, fastest_peer, headline_metrics
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.units import show_count


def verdict_of_steps(summary: CaseSummary, run: RunSummary) -> Verdict:
    """What does each step wait for most?"""
    if summary.case.link is None:
        return verdict_on_one_node(summary, run)
    share, words = _network_share(summary)
    against = None if share is not None else share_against_fastest(summary, run)
    link = link_use_of(summary, run, _cost_s(summary, share))
    is_slower, slower_words = _slower_than_one_node(summary)
    if against is not None:
        bound, why = _bound_against_fastest(against)
        few = few_launches(against[0])
    else:
        bound, why = _bound(share, words, link)
        few = few_launches(share)
    noise = sign_disagreement(summary)
    if noise is None and share is not None and is_impossible(share):
        noise, few = impossible_words(share), ""
    if noise is not None:
        bound, why = Bound.UNKNOWN, noise
    sentence = "; ".join(part for part in (why, slower_words, few) if part)
    return verdict_that(bound, sentence, evidence_of(summary, link, share), is_slower=is_slower)


def _bound(share: Estimate | None, words: str, link: LinkUse) -> tuple[Bound, str]:
    """The rules of the module's docstring, in their order."""
    if share is None:
        return Bound.UNKNOWN, words
    side = side_of(share)
    if side is None:
        return Bound.UNKNOWN, f"{words}{across_words(share)}"
    if side == "below":
        return Bound.COMPUTE, words
    host = host_limit(link)
    if host is not None:
        return Bound.HOST, f"{words}; {host}"
    if link.is_full:
        return Bound.NETWORK, f"{words}; {how_full(link)}"
    left = (
        "and the host is not at its limit: latency or the library's settings are left"
        if link.foreign is None
        else f"but {link.foreign}: {QUIET}"
    )
    return Bound.UNKNOWN, f"{words}; {how_full(link)}, {left}"


def _bound_against_fastest(against: tuple[Estimate, str]) -> tuple[Bound, str]:
    """A lower bound of the network's share proves much when it is large, and nothing below."""
    share, words = against
    return (Bound.NETWORK if side_of(share) == "above" else Bound.UNKNOWN), words


def _network_share(summary: CaseSummary) -> tuple[Estimate | None, str]:
    """Which share of a step does the network cost, and how was that had?

    Without a measurement with communication off, what is lost against the smallest shape at equal
    work per rank stands in for it: 1 - scaling efficiency.
    """
    share = summary.estimates.get("network_share_ratio")
    if share is not None:
        return share, f"{percent(share)} of each step waits for the network"
    if summary.scaling is None:
        reason = summary.missing.get("network_share_ratio", "not measured with communication off")
        return None, f"the network's share of a step is not known ({reason})"
    kept = summary.scaling.efficiency
    lost = Estimate(
        value=1 - kept.value,
        low=None if kept.high is None else 1 - kept.high,
        high=None if kept.low is None else 1 - kept.low,
        launches=kept.launches,
        trials=kept.trials,
        method=f"1 - scaling efficiency; {kept.method}",
    )
    reference = summary.scaling.reference.shape
    return lost, f"a rank gives {percent(lost)} less than at {reference}"


def _cost_s(summary: CaseSummary, share: Estimate | None) -> float | None:
    """What does the network cost a step: measured, or else by what scaling loses?"""
    step_s = summary.value("step_time_s")
    if "network_cost_s" in summary.estimates or step_s is None or share is None:
        return summary.value("network_cost_s")
    return share.value * step_s


def share_against_fastest(summary: CaseSummary, run: RunSummary) -> tuple[Estimate, str] | None:
    """What does a time lose against the same case on the fastest network? None: can't be said."""
    metric = next(iter(headline_metrics(summary)), None)
    if metric is None or not metric.endswith("_s"):
        return None
    reference = fastest_peer(summary, run)
    if reference is None:
        return None
    row = compare_cases(reference, summary, metric)
    if row is None or row.comparison is None or row.direction != "lower":
        return None
    times = row.comparison.ratio
    share = Estimate(
        value=1 - 1 / times.value,
        low=None if times.low is None else max(0.0, 1 - 1 / times.low),
        high=None if times.high is None else 1 - 1 / times.high,
        launches=times.launches,
        trials=times.trials,
        method=f"1 - 1 / ratio to {reference.case.network_name}; {times.method}",
    )
    what = metric.removesuffix("_s").replace("_", " ")
    name = reference.case.network_name
    if side_of(share) == "above":
        at_least = f"at least {percent(share)} of it waits for this network"
    else:
        at_least = f"this network costs {percent(share)} more, and what both cost is unknown"
    return share, f"its {what} is {show_count(times.value)} times that on {name}: {at_least}"


def _slower_than_one_node(summary: CaseSummary) -> tuple[bool | None, str]:
    """Do these nodes together give less than the one? Only where the interval tells."""
    scaling = summary.scaling
    if scaling is None or scaling.reference.nodes != 1 or summary.case.nodes == 1:
        return None, ""
    low, high = scaling.speedup.low, scaling.speedup.high
    if low is None or high is None or scaling.speedup.launches < FEWEST_LAUNCHES:
        return None, ""
    if high >= 1:
        return (False if low >= 1 else None), ""
    one = "one" if scaling.reference.world_size == 1 else f"one of {scaling.reference.shape}"
    nodes = {2: "two", 3: "three", 4: "four"}.get(summary.case.nodes, str(summary.case.nodes))
    return True, f"{nodes} nodes are slower than {one}: {scaling.speedup.value:.2f} times as fast"
