"""What is a ladder of link rates, and what is said of it?"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from broadgauge.predict.sensitivity.curve import Form, LadderCurve
from broadgauge.specs.estimate import Estimate

RATE_ERROR_RATIO = 0.005
"""How far an emulated link is off its payload rate, by itself: 98.8 to 100 % of it was measured, a
standard deviation of 0.5 %. Source: docs/measurements.md, "A shaped link carries its payload rate".
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One link rate and the steps measured on it."""

    rate_gbps: float
    """Line rate of a node, all NICs, in its slower direction."""
    payload_gbps: float
    """What of it is payload."""
    step_s_by_block: Mapping[int, float]
    """Mean step time of each block of the schedule, positive."""
    is_unshaped: bool = False
    """No rate was set: the rates are the most that this host carries."""
    rate_error_ratio: float = RATE_ERROR_RATIO
    """How far the rates may be off, as a standard error over the rate."""
    name: str = ""
    """The network's, where it was found and its rate measured; empty: the rate says it."""


class Lack(StrEnum):
    """What would give an answer that there is not yet?"""

    FASTER_RATES = "faster rates"
    SLOWER_RATES = "slower rates"
    LAUNCHES = "launches"


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderAnswer:
    """A figure with its interval, or what is known instead."""

    estimate: Estimate | None
    at_least: float | None = None
    at_most: float | None = None
    """Between which ends it lies, at 95 %, where no figure is stated: in the estimate's unit."""
    why: str = ""
    """Why there is no estimate."""
    lack: Lack | None = None
    """None: there is an estimate, or nothing would give one."""
    launches: int | None = None
    """About how many launches would, where it is those that lack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedRung:
    """One rung beside the curve."""

    rate_gbps: float
    payload_gbps: float
    step_s: Estimate
    """Typical of the launches, disturbed ones counting less."""
    fitted_s: float
    """By the curve."""
    is_unshaped: bool = False
    rate_error_ratio: float = 0.0
    """How far the rates may be off, as a standard error over the rate."""
    name: str = ""
    """The network's, where it was found and its rate measured."""

    @property
    def off_ratio(self) -> float:
        """How far the measured step is above the curve."""
        return self.step_s.value / self.fitted_s - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """What a ladder says."""

    curve: LadderCurve
    rungs: tuple[FittedRung, ...]
    """From the slowest rate to the fastest."""
    critical_bytes: LadderAnswer
    """Payload a step waits for at the slowest rates measured, one after the other."""
    fast_bytes: LadderAnswer
    """The same at the fastest rates: what is exposed even there."""
    base_s: LadderAnswer
    """The floor: the time that no network can remove. Stated where two rungs lie beyond the knee,
    or an unshaped one; else only between which ends it lies."""
    curve_base_s: Estimate
    """Where the curve meets 1/rate = 0, whether or not that may be stated as the floor."""
    enough_gbps: LadderAnswer
    """Line rate from which on a step is within `gain_ratio` of `base_s`."""
    knee_gbps: LadderAnswer
    """The knee: line rate below which more bytes are waited for. Stated under the same condition.
    """
    gain_ratio: float
    is_extrapolated: bool
    """Even at the fastest rate measured a step is not within `gain_ratio` of `base_s`."""
    possible_forms: tuple[Form, ...]
    """Forms that the data can't tell from the curve's, that one first."""
