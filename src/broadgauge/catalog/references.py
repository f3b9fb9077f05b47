"""Is my number normal? What others measured and published: collectives, and storage."""

import functools
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from broadgauge.catalog.entries import Entry, find_entry
from broadgauge.catalog.loading import shipped_entries
from broadgauge.specs.workloads.workload import CollectiveOp


class BusbwFigure(Entry):
    """One published bus bandwidth, as nccl-tests defines it: an entry of busbw.yaml."""

    gpu: str
    """A name of gpus.yaml."""
    nodes: int = Field(ge=1)
    gpus_per_node: int = Field(ge=1)
    network: str | None = None
    """A name of networks.yaml, or `roce-200g*8`; None: one node."""
    op: CollectiveOp = "all_reduce"
    backend: Literal["nccl", "gloo"] = "nccl"
    message_bytes: int | None = Field(default=None, gt=0)
    """None: not said; a large one."""
    busbw_gbyte_per_s: float = Field(gt=0)
    is_nvls: bool = False
    """The NVLink switch added up and multiplied (NVLS)."""

    @model_validator(mode="after")
    def _is_somewhere(self) -> Self:
        if (self.nodes > 1) != (self.network is not None):
            raise ValueError(f"`{self.name}`: more than one node and a `network` go together")
        if self.nodes * self.gpus_per_node < 2:
            raise ValueError(f"`{self.name}`: a collective needs two GPUs")
        return self

    @property
    def ranks(self) -> int:
        return self.nodes * self.gpus_per_node


class StorageEntry(Entry):
    """What one storage reads and writes: an entry of storage.yaml."""

    read_gbyte_per_s: float = Field(gt=0)
    """Of one node."""
    write_gbyte_per_s: float = Field(gt=0)
    is_durable: bool
    """Does it outlive the node?"""
    is_lower_bound: bool = False
    """The source says "at least"."""


@functools.cache
def known_busbw() -> tuple[BusbwFigure, ...]:
    """Every figure that is shipped."""
    return shipped_entries("busbw", BusbwFigure)


@functools.cache
def known_storage() -> tuple[StorageEntry, ...]:
    """Every storage that is shipped."""
    return shipped_entries("storage", StorageEntry)


def said_of_storage(name: str) -> dict[str, Any]:
    """The keys of a storage in an experiment that is `like` this one. Raises InputError with what
    was meant."""
    entry = find_entry(name, known_storage(), "storage")
    keys = ("read_gbyte_per_s", "write_gbyte_per_s", "is_durable")
    return {"like": entry.name} | {key: getattr(entry, key) for key in keys}
