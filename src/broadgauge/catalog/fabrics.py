"""What does a cloud's fabric ask of a pod, beside its NICs? `networks[].kubernetes.profile`."""

import functools
from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import Field

from broadgauge.catalog.entries import Entry, Part
from broadgauge.catalog.loading import shipped_entries
from broadgauge.specs.attached import Attached
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError
from broadgauge.specs.network import AnyNetwork, Network
from broadgauge.specs.transports import Transport
from broadgauge.specs.twins import twins_of


class HostPath(Part):
    """A folder of the node that a container sees."""

    name: str
    path: str
    mount: str


class Daemon(Part):
    """What runs beside the ranks, in their pod."""

    name: str
    image: str
    command: tuple[str, ...]
    capabilities: tuple[str, ...] = ()
    """It runs as its image's user, with no other."""
    environment: Mapping[str, str] = Field(default_factory=dict)
    devices: tuple[str, ...] = ()
    """Of the node, which GKE's device injector gives to it."""
    host_paths: tuple[HostPath, ...] = ()


class FabricProfile(Entry):
    """One entry of fabrics.yaml."""

    transport: Transport
    resource: str | None = None
    """Of each NIC; None: the cluster's administrator chose its name."""
    pod_resources: Mapping[str, str] = Field(default_factory=dict)
    environment: Mapping[str, str] = Field(default_factory=dict)
    attaches: Literal["multus", "gke"] = "multus"
    host_paths: tuple[HostPath, ...] = ()
    daemon: Daemon | None = None
    needs: tuple[str, ...] = ()


@functools.cache
def known_fabrics() -> tuple[FabricProfile, ...]:
    """Every entry that is shipped."""
    return shipped_entries("fabrics", FabricProfile)


def find_fabric(name: str) -> FabricProfile:
    """By name or alias. Raises InputError."""
    for fabric in known_fabrics():
        if name in fabric.names():
            return fabric
    names = [fabric.name for fabric in known_fabrics()]
    raise InputError(
        f"the catalog has no fabric `{name}`",
        hint=did_you_mean(name, names) or f"one of {', '.join(names)}",
    )


def fabric_of(network: Network) -> FabricProfile | None:
    """None: it names no profile. Raises InputError."""
    attached = network.kubernetes
    if attached is None or attached.profile is None:
        return None
    return find_fabric(attached.profile)


def with_profile(network: Network) -> Network:
    """With what its profile says and the experiment does not. Raises InputError."""
    fabric, attached = fabric_of(network), network.kubernetes
    if fabric is None or attached is None:
        return network
    if attached.transport not in (None, fabric.transport):
        raise InputError(
            f"networks.{network.name}.kubernetes.transport: `{attached.transport}`, and the "
            f"profile {fabric.name} is {fabric.transport}",
            hint="leave `transport` out, or take another profile",
        )
    face: Attached = attached.model_copy(update=_additions(attached, fabric))
    environment = {**fabric.environment, **network.environment}
    changed: Network = network.model_copy(update={"kubernetes": face, "environment": environment})
    return changed


def _additions(attached: Attached, fabric: FabricProfile) -> dict[str, object]:
    has_own = attached.resources or fabric.resource is None
    resources = attached.resources if has_own else (fabric.resource,)
    return {"transport": fabric.transport, "resources": resources}


def pod_networks(networks: Iterable[AnyNetwork]) -> tuple[Network, ...]:
    """Every entry that has a face of Kubernetes, as its profile completes it, each followed by its
    twins. Raises InputError.

    A twin over TCP is without the profile's variables, which are its plugin's.
    """
    found: list[Network] = []
    for network in networks:
        if not isinstance(network, Network) or network.kubernetes is None:
            continue
        complete = with_profile(network)
        found.append(complete)
        for twin in _twins(complete):
            is_plain = twin.kubernetes is not None and twin.kubernetes.transport == "tcp"
            own = {"environment": network.environment} if is_plain else {}
            found.append(twin.model_copy(update=own))
    return tuple(found)


def _twins(network: Network) -> tuple[Network, ...]:
    """None on GKE's own networks: which interfaces are whose is not told to a pod there.

    Raises InputError where they are asked for.
    """
    fabric, attached = fabric_of(network), network.kubernetes
    if fabric is None or attached is None or fabric.attaches == "multus":
        return twins_of(network)
    if attached.twins:
        raise InputError(
            f"networks.{network.name}.kubernetes.twins: the profile {fabric.name} has none",
            hint="`twins: []`, and a network of its own for TCP",
        )
    return ()
