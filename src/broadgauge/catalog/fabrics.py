"""What does a cloud's fabric ask of a pod, beside its NICs? `networks[].kubernetes.profile`."""

import functools
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from broadgauge.catalog.entries import Entry, Part, find_entry
from broadgauge.catalog.loading import shipped_entries
from broadgauge.messages.vocabulary import Transport
from broadgauge.specs.kubernetes.names import (
    ImageName,
    LabelKey,
    LabelName,
    MountPath,
    ResourceName,
)
from broadgauge.specs.networks.pod_networks import SecondaryKind
from broadgauge.specs.secrets.variables import VARIABLE_PATTERN

VariableName = Annotated[str, StringConstraints(pattern=VARIABLE_PATTERN)]
Capability = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z_]*$")]
"""Of Linux, without `CAP_`, as Kubernetes writes it."""


class HostPath(Part):
    """A folder of the node that a container sees."""

    name: LabelName
    path: MountPath
    """On the node."""
    mount: MountPath
    """In the container."""


class Daemon(Part):
    """What runs beside the ranks, in their pod: as root, and with no more than is said here."""

    name: LabelName
    image: ImageName
    command: tuple[str, ...] = Field(min_length=1)
    capabilities: tuple[Capability, ...] = ()
    environment: Mapping[VariableName, str] = Field(default_factory=dict)
    devices: tuple[MountPath, ...] = ()
    """Of the node, which GKE's device injector gives to it."""
    host_paths: tuple[HostPath, ...] = ()


class FabricProfile(Entry):
    """One entry of fabrics.yaml."""

    transport: Transport
    nominal_gbps: float | None = Field(default=None, gt=0)
    """Of one NIC, one direction; None: it depends on the node."""
    nics_per_node: int | None = Field(default=None, ge=1)
    """As many as its variables and its source speak of; None: it depends on the node."""
    mtu_bytes: int | None = Field(default=None, ge=68, le=65535)
    """None: nobody who sells the fabric states one."""
    attaches: Literal["multus", "gke", "resource"] = "multus"
    """Who gives a pod its NICs: Multus or GKE, by annotations; or a device plugin with the resource
    alone, and then a pod gets no interface."""
    attachments: tuple[SecondaryKind, ...] = ()
    """Those that work there; empty: any that carry its transport."""
    is_source_checked: bool = False
    """A packet whose source address is not the NIC's own is dropped: a pod must have the node's."""
    resource: ResourceName | None = None
    """Of each NIC; None: there is none, or the cluster's administrator chose its name."""
    pod_resources: Mapping[LabelKey, str] = Field(default_factory=dict)
    """Further ones of each pod, whatever its NICs."""
    environment: Mapping[VariableName, str] = Field(default_factory=dict)
    """Of ranks on this network; the experiment's own win."""
    host_paths: tuple[HostPath, ...] = ()
    """That ranks see."""
    daemon: Daemon | None = None
    needs: tuple[str, ...] = ()
    """What an administrator must have prepared, and what the image must have."""


@functools.cache
def known_fabrics() -> tuple[FabricProfile, ...]:
    """Every entry that is shipped."""
    return shipped_entries("fabrics", FabricProfile)


def find_fabric(name: str) -> FabricProfile:
    """By name or alias. Raises InputError with what was meant."""
    return find_entry(name, known_fabrics(), "fabric")
