"""When are a command's counters read, so that its steps are told from its start and its end?

At the first sample that counts, and again as more come: soon at first, and then each time that a
tenth of the time since the first has passed. So few readings reach nearly to the last step, however
many there will be. Only as one comes: later, time would count in which nothing was sent.
"""

from dataclasses import dataclass

SHORTEST_S = 0.5
"""Between two readings: /proc/stat counts in ticks of 10 ms."""
RATIO = 0.1


@dataclass(slots=True)
class StepCounts:
    """What was read up to now. Times of one monotonic clock.

    Asked each time that samples may have come.
    """

    first_s: float | None = None
    last_s: float = 0.0
    num_samples: int = 0
    """When it was asked last."""

    def is_due(self, num_samples: int, now_s: float) -> bool:
        """Is it time, with so many samples by now?"""
        if num_samples <= self.num_samples:
            return False
        self.num_samples = num_samples
        if self.first_s is not None:
            if now_s - self.last_s < max(SHORTEST_S, RATIO * (now_s - self.first_s)):
                return False
        else:
            self.first_s = now_s
        self.last_s = now_s
        return True
