"""Which figures lead to a verdict, in lines of words?"""

from broadgauge.advise.findings.shared_cores import foreign_words
from broadgauge.advise.verdicts.link_use import LinkUse
from broadgauge.results.model import CaseSummary
from broadgauge.results.network_share import CUT
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.units import show_rate, show_ratio, show_time

QUIET = "run again on a quiet machine"


def how_full(link: LinkUse) -> str:
    """The best that is known of it."""
    if link.words:
        return link.words[0]
    if link.is_found and link.ceiling_gbps is None and link.eight_streams_gbps is None:
        return "what plain streams carry over this network was not measured"
    return "the link's bytes were not counted"


def _streams(one_gbps: float, link: LinkUse) -> str:
    """What plain streams carried at least, and which share that is of a rate on paper."""
    how = "over this network" if link.is_found else "unshaped"
    words = f"{how}, one TCP stream carries at least {show_rate(one_gbps)}"
    if link.eight_streams_gbps is not None:
        words += f", eight at least {show_rate(link.eight_streams_gbps)}"
    if link.nominal_gbps is None:
        return words
    most_gbps = max(one_gbps, link.eight_streams_gbps or 0.0)
    share = show_ratio(most_gbps / link.nominal_gbps, 2)
    return f"{words}: at least {share} of the {show_rate(link.nominal_gbps)} of its data sheet"


def evidence_of(
    summary: CaseSummary, link: LinkUse, share: Estimate | None = None
) -> tuple[str, ...]:
    """Figures that lead to the sentence."""
    lines = []
    step, off = summary.value("step_time_s"), summary.value("step_without_communication_s")
    if step is not None and off is not None:
        lines.append(f"a step takes {show_time(step)}, without communication {show_time(off)}")
    if share is not None and share.low is not None and share.high is not None:
        low, high = show_ratio(share.low), show_ratio(share.high)
        cut = f", {CUT}" if share.high >= 1 else ""
        lines.append(f"network share {show_ratio(share.value)}, 95 % interval {low} to {high}{cut}")
    lines.extend(link.words)
    if link.ceiling_gbps is not None:
        lines.append(_streams(link.ceiling_gbps, link))
    elif link.rate_gbps is not None:
        lines.append("what this host carries unshaped was not measured")
    busy = summary.value("cpu_busy_ratio")
    if busy is not None:
        lines.append(f"{show_ratio(busy)} of the busiest node's cores were busy")
    if summary.scaling is not None:
        efficiency = show_ratio(summary.scaling.efficiency.value)
        lines.append(
            f"scaling efficiency per rank {efficiency} of {summary.scaling.reference.shape}"
        )
    return (*lines, *foreign_words(summary))
