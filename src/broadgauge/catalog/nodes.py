"""What is in a server or a cloud instance? GPUs, networks, processors, and what an hour costs."""

import functools
from typing import Literal

from pydantic import Field

from broadgauge.catalog.entries import Entry
from broadgauge.catalog.loading import shipped_entries


class NodeEntry(Entry):
    """One entry of nodes.yaml."""

    provider: str
    like: str | None = None
    """The entry that a user's own took the rest from."""
    gpu: str
    """A name of gpus.yaml."""
    gpus_per_node: int = Field(ge=1)
    nvlink_gpus: int | None = Field(default=None, ge=1)
    """How many GPUs one NVLink domain joins, where it is not the node's: 72 in a GB200 NVL72."""
    networks: tuple[str, ...] = ()
    """Names of networks.yaml, or `roce-400g*8`: what joins such nodes, the fastest first."""
    node_gbps: float | None = Field(default=None, gt=0)
    """Of the first network, all NICs of a node, as its source states it."""
    vcpus: int | None = Field(default=None, ge=1)
    ram_gib: int | None = Field(default=None, ge=1)

    @property
    def board_gpus(self) -> int:
        """How many GPUs NVLink joins at most."""
        return self.nvlink_gpus or self.gpus_per_node


class PriceEntry(Entry):
    """What one hour costs: an entry of prices.yaml. Prices age; `date` says how old one is."""

    node: str | None = None
    """A name of nodes.yaml: the price of the whole node."""
    gpu: str | None = None
    """A name of gpus.yaml: the price of one GPU with its share of the rest."""
    price_usd_per_hour: float = Field(gt=0)
    terms: Literal["on-demand", "spot", "reserved"] = "on-demand"
    region: str = ""


@functools.cache
def known_nodes() -> tuple[NodeEntry, ...]:
    """Every node that is shipped."""
    return shipped_entries("nodes", NodeEntry)


@functools.cache
def known_prices() -> tuple[PriceEntry, ...]:
    """Every price that is shipped."""
    return shipped_entries("prices", PriceEntry)
