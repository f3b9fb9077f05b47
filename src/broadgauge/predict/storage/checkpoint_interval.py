"""How often should a training save, and what share of its time do saves and failures take?"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LostShare:
    """What saving at this interval costs."""

    interval_s: float
    """From the begin of a save to the begin of the next."""
    saving_ratio: float
    """Of all time: training stands still while it saves."""
    failing_ratio: float | None
    """Of all time: work that is done again after failures, and loading; None: their rate is not
    told."""

    @property
    def ratio(self) -> float:
        """Where both take all of the time nothing is left, and no more can be lost."""
        return min(1.0, self.saving_ratio + (self.failing_ratio or 0.0))


def best_interval_s(stall_s: float, mean_time_between_failures_s: float) -> float:
    """Where saving and doing work again take least together.

    Source: J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17
    (1974): sqrt(2 × stall × mean time between failures); it holds while a save is short beside the
    time between failures. J. T. Daly (2006) has the next orders.
    """
    return math.sqrt(2 * stall_s * mean_time_between_failures_s)


def lost_share(
    interval_s: float,
    *,
    stall_s: float,
    durable_s: float | None = None,
    load_s: float | None = None,
    mean_time_between_failures_s: float | None = None,
) -> LostShare:
    """A save that takes longer than the interval takes all of it.

    Source: first order, as Young's: a failure loses half an interval, the time in which the newest
    save was not durable yet, and the loading. `durable_s` None: the stall.
    """
    failing_ratio = None
    if mean_time_between_failures_s is not None:
        again_s = interval_s / 2 + (stall_s if durable_s is None else durable_s) + (load_s or 0.0)
        failing_ratio = min(1.0, again_s / mean_time_between_failures_s)
    return LostShare(
        interval_s=interval_s,
        saving_ratio=min(1.0, stall_s / interval_s),
        failing_ratio=failing_ratio,
    )


def is_first_order(stall_s: float, mean_time_between_failures_s: float) -> bool:
    """Is a save short enough beside the time between failures for the formula?"""
    return stall_s < mean_time_between_failures_s / 10
