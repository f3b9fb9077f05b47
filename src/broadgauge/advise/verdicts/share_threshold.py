"""On which side of the threshold does the network's share of a step lie, and how is it worded?

Its definition: results/network_share.py.
"""

from broadgauge.advise.limits import FEWEST_LAUNCHES, NETWORK_SHARE
from broadgauge.results.model import CaseSummary
from broadgauge.results.network_share import AGREEING_RATIO, share_of_launches
from broadgauge.results.resolution import launches_to_tell
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.units import show_ratio

MORE = "run 5 launches or more, on a quiet machine"


def side_of(share: Estimate) -> str | None:
    """`above` or `below`; None: on both sides.

    The interval of few launches is wide: their value decides, unless it includes no share at all.
    """
    low, high = share.low, share.high
    if low is not None and low <= 0 and share.value >= NETWORK_SHARE:
        return None
    if low is None or high is None or share.launches < FEWEST_LAUNCHES:
        low = high = share.value
    if low >= NETWORK_SHARE:
        return "above"
    return "below" if high < NETWORK_SHARE else None


def percent(share: Estimate) -> str:
    """`81 %`, or with its interval where that is wider than one point: `40 % (36 to 44 %)`."""
    if share.value < 0.005 and (share.high is None or share.high < 0.015):
        return "less than 1 %"
    text = f"{100 * share.value:.0f}".replace("-", "−")
    if share.low is None or share.high is None or share.high - share.low < 0.02:
        return f"{text} %"
    return f"{text} % ({ends(share.low, share.high)})"


def ends(low: float, high: float) -> str:
    """`36 to 44 %`; `57 to 100 %, cut at 100 %` where nothing above is possible."""
    low_text, high_text = (f"{100 * end:.0f}".replace("-", "−") for end in (low, high))
    return f"{low_text} to {high_text} %" + ", cut at 100 %" * (high >= 1)


def sign_disagreement(summary: CaseSummary) -> str | None:
    """Why can nothing be said where the network costs time in one launch and saves it in another?
    None: launches agree."""
    share = share_of_launches(summary.good)
    if share is None or not share.disagrees_in_sign:
        return None
    between = ends(min(share.ratios), max(share.ratios))
    return f"launches disagree whether the network costs anything, {between} of a step: {MORE}"


def is_impossible(share: Estimate) -> bool:
    """Would communication save more of a step than launches agree within, and is that not sure?

    No network does, so that nothing was measured but noise; of an interval that is narrower than
    the threshold the verdict stands.
    """
    if share.value >= -AGREEING_RATIO:
        return False
    if share.low is None or share.high is None or share.launches < FEWEST_LAUNCHES:
        return True
    return share.high - share.low >= NETWORK_SHARE


def impossible_words(share: Estimate) -> str:
    """`what the network costs is not known from 2 launches: they say −40 % of a step; run …`."""
    launches = f"{share.launches} launch{'' if share.launches == 1 else 'es'}"
    they = "it says" if share.launches == 1 else "they say"
    cost = f"{100 * share.value:.0f}".replace("-", "−")
    return (
        f"what the network costs is not known from {launches}: {they} {cost} % of a step, and no "
        f"network saves time; {MORE}"
    )


def across_words(share: Estimate) -> str:
    """`, on both sides of 30 %: about 12 launches would tell`."""
    more = launches_to_tell(share, NETWORK_SHARE) or f": {MORE}"
    return f", on both sides of {show_ratio(NETWORK_SHARE)}{more}"


def few_launches(estimate: Estimate | None) -> str:
    """What a sentence ends with where the point estimate decided."""
    if estimate is None or estimate.launches >= FEWEST_LAUNCHES:
        return ""
    return f"from only {estimate.launches} launch{'' if estimate.launches == 1 else 'es'}"
