"""What does a run say before its first launch, beside all that the engine says of the rest?"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from broadgauge.engine.events import Event
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.machines.machine import MachineFacts
from broadgauge.specs.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRead:
    """This machine was looked at."""

    machine: MachineFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesRefused:
    """Nodes can't be emulated here: what needs no second node runs on the local platform."""

    machine: MachineFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMade:
    experiment: Experiment
    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareStepBegins:
    """A command's `prepare`, once on this host before any launch."""

    workload: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderOpened:
    """From here on the run can be resumed."""

    folder: Path


RunEvent = MachineRead | NodesRefused | PlanMade | PrepareStepBegins | FolderOpened | Event


class RunObserver(Protocol):
    """Told what happens, as it happens; must return quickly."""

    def __call__(self, event: RunEvent) -> None: ...
