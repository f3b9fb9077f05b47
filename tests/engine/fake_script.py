"""What will happen on the fake platform, and when?"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from broadgauge.specs.case import Case
from broadgauge.specs.errors import PlatformError
from broadgauge.specs.launching import LaunchRequest
from broadgauge.specs.records.record import Environment, ErrorKind, GpuUse, Phase

EPOCH_UNIX_S = 1_800_000_000.0
COMPUTE_S = 0.05
LATENCY_S = 0.001
START_S = 2.0


class FakeClock:
    """Time passes when it is told to."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def unix_s(self) -> float:
        return EPOCH_UNIX_S + self.now_s

    def monotonic_s(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One step or iteration."""

    case: Case
    trial_id: str
    label: str
    """`on.0`, `off.0`, `all_reduce/float32/4096`, or a command's metric."""
    index: int
    rank: int
    ideal_s: float
    """Compute plus the bytes at the line rate."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """How a trial fails: after `num_blocks` measured blocks, in `phase`."""

    kind: ErrorKind
    message: str = "as scripted"
    phase: Phase = Phase.MEASURE
    rank: int | None = 0
    frame: str | None = None
    num_blocks: int = 0
    last_lines: tuple[str, ...] = ("Traceback (most recent call last):", "RuntimeError: scripted")
    takes_s: float = 1.0
    keeps_ranks: bool = False
    """The ranks live on, as after a REFUSED that a rank could still tell."""


def ideal(moment: Moment) -> float:
    return moment.ideal_s


def an_environment(**changes: Any) -> Environment:
    """This project's fake machine."""
    known: dict[str, Any] = {
        "broadgauge": "0.1.0",
        "platform": "fake",
        "python": "3.11.2",
        "torch": "2.11.0",
        "kernel": "6.1.0",
        "cores": 2,
        "memory_bytes": 8 * 2**30,
    }
    return Environment.model_validate({**known, **changes})


@dataclass(kw_only=True)
class Script:
    """What will happen. Trials and launches that are not named go well."""

    time_s: Callable[[Moment], float] = ideal
    failures: Mapping[str, Failure] = field(default_factory=dict)
    """By trial id."""
    launch_errors: Mapping[str, PlatformError] = field(default_factory=dict)
    """By launch id: LaunchError, or PlatformError. `b0.l0r1` is the second life of `b0.l0`."""
    dying_after: frozenset[str] = frozenset()
    """Trials that go well, after which the ranks end."""
    environment: Callable[[LaunchRequest], Environment] = lambda _: an_environment()
    gpus: tuple[GpuUse, ...] = ()
    on_step: Callable[[str], None] = lambda _: None
