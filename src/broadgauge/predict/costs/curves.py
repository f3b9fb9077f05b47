"""How long does a collective take, as it was measured? Curves by size, before any model.

Between two sizes the time is a straight line in logarithms; below the smallest it is the smallest's
(a message costs its latency), above the largest it grows with the bytes.
"""

from collections.abc import Sequence

import numpy as np

from broadgauge.predict.case import CollectiveCurve


def time_at(curve: CollectiveCurve, message_bytes: float) -> float:
    """Seconds at this size."""
    sizes, times_s = curve.message_bytes, curve.time_s
    if message_bytes > sizes[-1]:
        return times_s[-1] * message_bytes / sizes[-1]
    return float(np.exp(np.interp(np.log(max(message_bytes, 1.0)), np.log(sizes), np.log(times_s))))


def rising(times_s: Sequence[float]) -> tuple[float, ...]:
    """The same, no smaller message being slower than a larger one.

    What disturbs a measurement makes it longer, and weighs most on what is short.
    """
    return tuple(float(each) for each in np.minimum.accumulate(times_s[::-1])[::-1])
