"""How is a figure over trials stated? Never as a bare float."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure over trials, with its 95 % interval and how it was obtained.

    `low` and `high` are None where no interval can be given: with a single launch the steps of
    that launch are correlated, and nothing is known of the spread between launches.
    """

    value: float
    low: float | None
    high: float | None
    launches: int
    """Starts of the ranks: the repeat unit, and the only one that intervals count."""
    trials: int
    method: str
    """In words: `mean of launches, t interval`, `mean log-ratio of pairs, t interval`, …"""

    @property
    def half_width_ratio(self) -> float | None:
        """Half the interval's width over the value: 0.03 reads as ± 3 %."""
        if self.low is None or self.high is None or self.value == 0:
            return None
        return (self.high - self.low) / 2 / abs(self.value)
