"""On which side of the threshold does the network's share of a step lie, and how is it worded?"""

from broadgauge.advise.limits import FEWEST_LAUNCHES, NETWORK_SHARE
from broadgauge.specs.estimate import Estimate


def side_of(share: Estimate) -> str | None:
    """`above` or `below`; None: on both sides."""
    low, high = share.low, share.high
    if low is None or high is None or share.launches < FEWEST_LAUNCHES:
        low = high = share.value
    if low >= NETWORK_SHARE:
        return "above"
    return "below" if high < NETWORK_SHARE else None


def percent(share: Estimate) -> str:
    """`81 %`, or with its interval where that is wider than one point: `40 % (36 to 44 %)`."""
    if share.value < 0.005:
        return "less than 1 %"
    text = f"{100 * share.value:.0f}"
    if share.low is None or share.high is None or share.high - share.low < 0.02:
        return f"{text} %"
    return f"{text} % ({100 * share.low:.0f} to {100 * share.high:.0f} %)"


def few_launches(estimate: Estimate | None) -> str:
    """What a sentence ends with where the point estimate decided."""
    if estimate is None or estimate.launches >= FEWEST_LAUNCHES:
        return ""
    return f"from only {estimate.launches} launch{'' if estimate.launches == 1 else 'es'}"
