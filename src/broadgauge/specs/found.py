"""By what does a node reach the others over a network that was there before us?"""

import ipaddress
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints, field_validator, model_validator

from broadgauge.specs.base import Spec, placed_error
from broadgauge.specs.transports import NAMES, RDMA, Transport
from broadgauge.specs.units import RateGbps, show_rate

InterfaceName = Annotated[str, StringConstraints(pattern=r"^[^\s/,=]{1,15}$")]
"""As the kernel allows it, less what would mean two to Gloo or NCCL."""


def _as_list(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class Found(Spec):
    """Where a network is found on each node. Exactly one of `interface` and `subnet`; on Kubernetes
    neither, since `networks[].kubernetes` says what is attached."""

    interface: Annotated[tuple[InterfaceName, ...], BeforeValidator(_as_list)] | None = Field(
        default=None, min_length=1, max_length=64
    )
    """Its name, or several that are used together."""
    subnet: str | None = None
    """The addresses on it, `10.0.1.0/24`: each node's interface that has one of them."""
    attachment: str | None = Field(default=None, pattern=r"^[a-z-]{1,16}$")
    """Of a pod: by what it gets the network. Broadgauge writes this, from
    `networks[].kubernetes`."""
    network_tier: Literal["standard", "best"] | None = None
    """Of a cluster of SkyPilot: which tier of the cloud's network it was given. Broadgauge writes
    this, from `networks[].skypilot`."""
    over: tuple[str, ...] = Field(default=(), max_length=64)
    """Of a pod: which devices, definitions or resources these are, so that two networks of one
    kind are two. Broadgauge writes this, as the next two."""
    mode: str | None = None
    """Of a pod's macvlan or ipvlan."""
    mtu_bytes: int | None = None
    """Of a pod's NICs, where the experiment sets it."""
    nominal_gbps: RateGbps | None = None
    """Line rate of each NIC by its data sheet or the catalog. null: not known. It labels; what the
    network carries is measured in each launch."""
    transport: Transport | None = None
    """What NCCL is to send by: RDMA (`roce`, `infiniband`, `efa`, …) or sockets (`tcp`, …). A case
    that went another way fails. null: whatever NCCL chooses."""
    gpudirect: bool | None = None
    """Does the NIC read and write the GPUs' memory? A case in which it is otherwise fails; `false`
    keeps NCCL from it. Of RDMA only. null: as it comes."""

    @field_validator("subnet")
    @classmethod
    def _is_a_subnet(cls, subnet: str | None) -> str | None:
        if subnet is not None:
            try:
                ipaddress.ip_network(subnet)
            except ValueError as error:
                raise ValueError(f"no subnet: {error}") from error
        return subnet

    @model_validator(mode="after")
    def _one_way(self) -> "Found":
        ways = (self.interface, self.subnet, self.attachment)
        if sum(way is not None for way in ways) != 1:
            raise ValueError("exactly one of `interface` and `subnet`")
        return self

    @model_validator(mode="after")
    def _gpudirect_is_of_rdma(self) -> "Found":
        if self.gpudirect is not None and not self.is_rdma:
            raise placed_error(
                "`gpudirect` needs a `transport` of RDMA beside it",
                ("gpudirect",),
                f"`transport: {'`, `'.join(RDMA)}`",
            )
        return self

    @property
    def is_rdma(self) -> bool:
        """Is it meant to send by RDMA?"""
        return self.transport in RDMA

    @property
    def is_sockets(self) -> bool:
        """Is it meant to send by TCP, whatever else the machines have?"""
        return self.transport is not None and not self.is_rdma

    @property
    def transport_words(self) -> str | None:
        """`RoCE with GPUDirect`; None: nothing is said of it."""
        if self.transport is None:
            return None
        gpudirect = {None: "", True: " with GPUDirect", False: " without GPUDirect"}
        return NAMES[self.transport] + gpudirect[self.gpudirect]

    @property
    def label(self) -> str:
        """In words."""
        words = [f"found at {self.subnet or ' and '.join(self.interface or ())}"]
        if self.attachment is not None:
            words = ["pod network" if self.attachment == "pod" else f"{self.attachment} NIC"]
        if self.network_tier is not None:
            words = [f"cloud network, tier {self.network_tier}"]
        words += [] if self.nominal_gbps is None else [show_rate(self.nominal_gbps)]
        words += [] if self.mtu_bytes is None else [f"MTU {self.mtu_bytes}"]
        words += [] if self.transport_words is None else [self.transport_words]
        return ", ".join(words)
