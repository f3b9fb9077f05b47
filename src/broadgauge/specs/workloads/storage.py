"""Which phase of a training's input and output is measured, on which storages?

What all phases have; each has a module of its own.
"""

from abc import abstractmethod
from typing import Literal

from pydantic import Field

from broadgauge.specs.base import Name
from broadgauge.specs.workloads.common import WorkloadBase


class StorageWorkload(WorkloadBase):
    """How long does a training wait for its files? One phase, on every storage."""

    kind: Literal["storage"]
    """The kind of workload: says which keys the entry has."""
    name: Name = "storage"
    """Name in tables, labels and selectors."""
    storages: tuple[Name, ...] | None = Field(default=None, min_length=1)
    """Names of the storages that it runs on; null: all."""
    repetitions: int = Field(default=3, ge=1, le=100)
    """Of the phase, in a trial."""

    @property
    def named_storages(self) -> tuple[str, ...] | None:
        return self.storages

    @property
    @abstractmethod
    def writes(self) -> int:
        """How often are its files written in a trial?"""

    @property
    @abstractmethod
    def reads(self) -> int:
        """How often are they read?"""

    @abstractmethod
    def files_bytes(self, world_size: int) -> int:
        """Of the files that are on the storage at once, of all ranks."""

    def node_bytes(self, world_size: int, nodes: int) -> int:
        """Of them, what the busiest node reads or writes at a time."""
        return self.files_bytes(world_size) // nodes

    def written_bytes(self, world_size: int) -> int:
        """In a trial, by all ranks."""
        return self.files_bytes(world_size) * self.writes

    @property
    def model_bytes(self) -> int:
        """Of the model's state that ranks make and compare; 0: the files hold none."""
        return 0

    @property
    def samples_bytes(self) -> int:
        """Of the samples' content that one rank makes, one by one; 0: there are none."""
        return 0

    def idle_s(self, world_size: int) -> float:
        """In which each rank computes and reads nothing, in a trial."""
        del world_size
        return 0.0

    def why_not_split(self, world_size: int) -> str | None:
        """Why can so many ranks not share its files? In words; None: they can."""
        del world_size
        return None

    @property
    def moved_bytes(self) -> int:
        """Of it, between ranks in each repetition; 0: nothing is."""
        return 0
