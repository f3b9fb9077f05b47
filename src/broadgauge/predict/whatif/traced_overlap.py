"""What do a run's traced steps say of the same training on another network?

A step alone can't tell short communication that nothing hides from long communication that is half
hidden. Its trace can: it shows what was exposed and what was hidden, so

    computes       = step - exposed
    communication  = exposed + hidden                  on the run's own network
    step elsewhere = computes + C - min(hidden, C x s)

C is the communication there, by the model's ratio of the two networks. What hid it in seconds, the
rest of the backward pass, hides as many there; but no more than the share s of it that the trace or
the timeline finds can be hidden at all, since the last gradients are ready when nothing is left to
compute. One trace can't tell whether the window or that share was what ended the overlap, so the
bounds hold both. A traced step is slower than a timed one, so its parts count as shares of it.
"""

from dataclasses import dataclass

import numpy as np

from broadgauge.predict.facts.arrays import Times
from broadgauge.results.traced_cases import TracedCase


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedOverlap:
    """Of a run's step, by one of its traces. Seconds of a timed step."""

    trial: str
    """Whose trace."""
    exposed_s: float
    """Communication that nothing hides, and waiting for late ranks."""
    hidden_s: float
    """Communication behind compute."""

    @property
    def communication_s(self) -> float:
        return self.exposed_s + self.hidden_s

    def exposed_there_s(self, communication_s: Times, hideable_ratio: float) -> Times:
        """Of so much communication on another network, what nothing hides: never less for more of
        it. `hideable_ratio`: at most this share is hidden on any, by the timeline."""
        most_s = communication_s * max(self._own_ratio, hideable_ratio)
        return np.asarray(communication_s - np.minimum(self.hidden_s, most_s))

    def most_exposed_s(self, communication_s: Times) -> Times:
        """The most: neither more seconds are hidden than in the run, nor a larger share."""
        most_s = np.minimum(self.hidden_s, self._own_ratio * communication_s)
        return np.asarray(communication_s - most_s)

    def least_exposed_s(self, communication_s: Times) -> Times:
        """The least: as many seconds, and as large a share."""
        hidden_s = np.maximum(self.hidden_s, self._own_ratio * communication_s)
        return np.asarray(communication_s - np.minimum(hidden_s, communication_s))

    @property
    def _own_ratio(self) -> float:
        return self.hidden_s / self.communication_s if self.communication_s else 0.0


def traced_overlap(
    case: TracedCase | None, step_s: float, without_s: float | None
) -> TracedOverlap | None:
    """None: no trace, or one that can't tell. `without_s`: the timed step with communication off,
    which says better than any trace what is exposed; None: not measured."""
    if case is None or case.step_time_s <= 0:
        return None
    exposed_s = case.traced.parts_s.get("exposed_communication")
    hidden_s = case.traced.overlapped_communication_s
    if exposed_s is None or hidden_s is None:
        return None
    waited_s = case.traced.parts_s.get("straggler_wait") or 0.0
    shorter = step_s / case.step_time_s
    traced_s = min(step_s, (exposed_s + waited_s) * shorter)
    return TracedOverlap(
        trial=case.record.record_id,
        exposed_s=traced_s if without_s is None else max(0.0, step_s - without_s),
        hidden_s=hidden_s * shorter,
    )
