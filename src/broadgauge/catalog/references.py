"""Is my number normal? What others measured and published: collectives, and storage."""

import functools
from typing import Literal, Self

from pydantic import Field, model_validator

from broadgauge.catalog.entries import Entry
from broadgauge.catalog.loading import shipped_entries
from broadgauge.specs.workload import CollectiveOp


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
    """What one storage reads and writes: an entry of storage.yaml, or of a user's file."""

    read_gbyte_per_s: float | None = Field(default=None, gt=0)
    """Of one node, by as many streams as it takes; None: nobody says."""
    write_gbyte_per_s: float | None = Field(default=None, gt=0)
    """The same of writes, as the writer waits for them."""
    is_durable: bool
    """Does it outlive the node?"""
    is_lower_bound: bool = False
    """The source says "at least"."""
    is_single_stream: bool = False
    """The rates are of one stream: several carry more, and the source does not say how much."""
    read_stream_gbyte_per_s: float | None = Field(default=None, gt=0)
    """Of one stream; None: as much as the node."""
    write_stream_gbyte_per_s: float | None = Field(default=None, gt=0)
    request_latency_s: float | None = Field(default=None, ge=0)
    """Until the first byte of a request; None: nobody says."""
    requests_at_once: int | None = Field(default=None, ge=1)
    """Of one stream; None: one."""
    request_bytes: int | None = Field(default=None, gt=0)
    """Of one request; None: a whole file."""
    is_write_back: bool = False
    """Writes end in a cache of the node, and reach the store later."""
    upload_gbyte_per_s: float | None = Field(default=None, gt=0)
    """How fast they reach it then; None: nobody says."""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.upload_gbyte_per_s is not None and not self.is_write_back:
            raise ValueError(f"`{self.name}`: `upload_gbyte_per_s` is of an `is_write_back` one")
        for what in ("read", "write"):
            node = getattr(self, f"{what}_gbyte_per_s")
            stream = getattr(self, f"{what}_stream_gbyte_per_s")
            if stream is not None and (node is None or self.is_single_stream):
                raise ValueError(
                    f"`{self.name}`: `{what}_stream_gbyte_per_s` stands beside the node's rate"
                )
            if stream is not None and stream > node:
                raise ValueError(
                    f"`{self.name}`: one stream does not {what} {stream:g} where the node's limit "
                    f"is {node:g}"
                )
        return self


@functools.cache
def known_busbw() -> tuple[BusbwFigure, ...]:
    """Every figure that is shipped."""
    return shipped_entries("busbw", BusbwFigure)


@functools.cache
def known_storage() -> tuple[StorageEntry, ...]:
    """Every storage that is shipped."""
    return shipped_entries("storage", StorageEntry)
