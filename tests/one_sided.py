"""What does a series of times say of the platform, where noise only ever makes a time longer?

A median of three launches is off once two of them were disturbed for a moment. Of all their steps,
the lower quartile is one that nothing disturbed as long as a quarter was left alone; and it is no
fluke, as the shortest may be.
"""

from collections.abc import Sequence
from statistics import quantiles


def lower_quartile(times_s: Sequence[float]) -> float:
    """Of two or more."""
    return quantiles(times_s, n=4, method="inclusive")[0]
