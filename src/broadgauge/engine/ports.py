"""What does a run need from outside? The command line puts these together and hands them in.

The engine knows neither the run folder nor the probes: what is stored, merged and judged are the
affairs of results, probes and advise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from broadgauge.engine.clock import Clock, SystemClock
from broadgauge.engine.events import Event
from broadgauge.engine.growing import Grower, nothing_more
from broadgauge.engine.interrupts import Interrupts
from broadgauge.messages.rank import Artifact
from broadgauge.specs.case import Case
from broadgauge.specs.launching import TrialOutcome
from broadgauge.specs.plan import Plan
from broadgauge.specs.records.record import Environment, Finding, Measurement, Record, TrialError

Series = Mapping[str, Sequence[float | None] | Sequence[Sequence[float]]]
"""Name → one value a step or iteration (None where there is none), or rows of them."""


class Store(Protocol):
    """Where records go, and which are there already. Raises RunFolderError."""

    @property
    def location(self) -> str:
        """As the user would type it."""
        ...

    @property
    def records(self) -> Sequence[Record]:
        """All of them, in the order written."""
        ...

    @property
    def environments(self) -> Mapping[str, Environment]:
        """By hash."""
        ...

    def add_environment(self, environment: Environment) -> str:
        """Keeps it, once, and returns its hash."""
        ...

    def keep_growth(self, plan: Plan) -> None:
        """Stores what the plan has grown by, for good, before any of it runs."""
        ...

    def append(self, record: Record, series: Series, left: Sequence[Artifact] = ()) -> Record:
        """Stores a trial for good, or raises and leaves no part of it. Returns what is stored.

        `left`: files of its ranks; they are copied.
        """
        ...


class Merged(Protocol):
    """What all ranks of a trial measured together."""

    @property
    def measurement(self) -> Measurement: ...
    @property
    def series(self) -> Series: ...
    @property
    def error(self) -> TrialError | None:
        """What only the merged view shows, such as a wrong result. None: nothing is wrong."""
        ...


class Merger(Protocol):
    """What did the ranks measure? `peak_flops` is FLOP/s of one GPU, None where unknown."""

    def __call__(self, case: Case, outcome: TrialOutcome, peak_flops: float | None) -> Merged: ...


class Judge(Protocol):
    """What should a reader know of this record, its series at hand?"""

    def __call__(self, case: Case, record: Record, series: Series) -> tuple[Finding, ...]: ...


class PeakFlops(Protocol):
    """What can one GPU of this environment compute at most for this case? None: unknown."""

    def __call__(self, case: Case, environment: Environment) -> float | None: ...


class Observer(Protocol):
    """Told what happens, as it happens; must return quickly."""

    def __call__(self, event: Event) -> None: ...


class Mask(Protocol):
    """The text without the values of secrets that it holds."""

    def __call__(self, text: str) -> str: ...


def no_findings(case: Case, record: Record, series: Series) -> tuple[Finding, ...]:
    """The judge that says nothing."""
    del case, record, series
    return ()


def unknown_peak(case: Case, environment: Environment) -> float | None:
    """The peak where there is no catalog."""
    del case, environment
    return None


def unmasked(text: str) -> str:
    """The mask where there is no secret."""
    return text


def unobserved(event: object) -> None:
    """The observer that looks away."""
    del event


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What is injected into a run."""

    merger: Merger
    judge: Judge = no_findings
    peak_flops: PeakFlops = unknown_peak
    observer: Observer = unobserved
    mask: Mask = unmasked
    grower: Grower = nothing_more
    clock: Clock = field(default_factory=SystemClock)
    interrupts: Interrupts = field(default_factory=Interrupts)
