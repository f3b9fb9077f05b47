"""What is a ladder of link rates, and what is said of it?"""

from collections.abc import Mapping
from dataclasses import dataclass

from broadgauge.predict.sensitivity.curve import Curve, Form
from broadgauge.specs.estimate import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One link rate and the steps measured on it."""

    rate_gbps: float
    """Line rate of a node, all NICs, in its slower direction."""
    payload_gbps: float
    """What of it is payload."""
    step_s_by_block: Mapping[int, float]
    """Mean step time of each block of the schedule, positive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A figure with its interval, or what is known instead."""

    estimate: Estimate | None
    at_least: float | None = None
    at_most: float | None = None
    """What the measurements allow whatever the form of the curve: in the estimate's unit."""
    why: str = ""
    """Where there is no estimate, or no end of its interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedRung:
    """One rung beside the curve."""

    rate_gbps: float
    payload_gbps: float
    step_s: Estimate
    """Typical of the launches, disturbed ones counting less."""
    fitted_s: float
    """By the curve."""

    @property
    def off_ratio(self) -> float:
        """How far the measured step is above the curve."""
        return self.step_s.value / self.fitted_s - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """What a ladder says."""

    curve: Curve
    rungs: tuple[FittedRung, ...]
    """From the slowest rate to the fastest."""
    critical_bytes: Answer
    """Payload a step waits for at the slowest rates measured, one after the other."""
    fast_bytes: Answer
    """The same at the fastest rates: what is exposed even there."""
    base_s: Answer
    """The time that no network can remove."""
    enough_gbps: Answer
    """Line rate from which on a step is within `gain_ratio` of `base_s`."""
    knee_gbps: Answer
    """Line rate below which more bytes are waited for."""
    gain_ratio: float
    is_extrapolated: bool
    """Even at the fastest rate measured a step is not within `gain_ratio` of `base_s`."""
    possible_forms: tuple[Form, ...]
    """Forms that the data can't tell from the curve's, that one first."""
