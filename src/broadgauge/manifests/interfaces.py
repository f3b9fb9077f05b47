"""Which interfaces does a pod get beside its own, and which networks send by each of them?

Networks share NICs: one with one NIC and one with eight over the same devices, or one meant as RDMA
and one as TCP. Each definition is attached as often as the network that uses it most needs.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from broadgauge.agent.pod.address_map import MappedNic
from broadgauge.catalog.fabrics import FabricProfile
from broadgauge.catalog.profiled import check_nics, fabric_of
from broadgauge.manifests.cni import CniConfig, configuration
from broadgauge.specs.errors import InputError
from broadgauge.specs.network import Network
from broadgauge.specs.pod_networks import POD_INTERFACE, SecondaryNetwork

_MOST_STEM_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """One interface of a pod beside the pod network's."""

    name: str
    """In the pod: `net1`, or what the address map calls it."""
    definition: str
    """Name of its NetworkAttachmentDefinition, `namespace/name` where it is elsewhere."""
    config: CniConfig | None
    """Of a definition that is rendered; None: it is there."""
    device: str | None
    """On the node."""
    resource: str | None
    """Extended resource that is asked for with it; None: none, or one for several NICs."""
    address_range: str | None
    """Out of which it gets its address, as far as the experiment says it."""
    left_out: tuple[str, ...]
    """Of that range, and the gateway within it."""
    gateway: str | None
    is_numbered: bool
    """We say which address of the range each pod has (`static`)."""
    is_mapped: bool
    """The address map gives its address."""
    networks: tuple[str, ...] = ()
    """That use it."""

    @property
    def network(self) -> str:
        """The first of them, for messages."""
        return self.networks[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachments:
    """What the pods of one job are given for their networks."""

    interfaces: tuple[Interface, ...] = ()
    names_of: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By network, the interfaces that its ranks send by, in the order of its NICs."""
    resources: dict[str, int] = field(default_factory=dict)
    """Extended resources of each pod, without GPUs."""
    fabrics: tuple[FabricProfile, ...] = ()
    """Profiles of the catalog that these networks name, each once."""
    gke_networks: tuple[str, ...] = ()
    """Names of GKE's Network objects, one a NIC, which GKE attaches by its own annotation."""


class Definitions:
    """Which definitions does an experiment have? One for all NICs that it serves alike, in every
    job."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._names: dict[str, str] = {}
        self.rendered: dict[str, Interface] = {}
        """By name, in the order in which they are first used."""

    def name_of(self, nic: "_Nic") -> str:
        """Raises InputError for a name that the experiment gives to two that differ."""
        known = self._names.get(nic.identity)
        if known is None:
            known = self._names[nic.identity] = self._new_name(nic)
        return known

    def _new_name(self, nic: "_Nic") -> str:
        taken = set(self._names.values())
        if nic.definition is not None:
            if nic.definition in taken and nic.config is not None:
                raise InputError(
                    f"networks.{nic.network}.kubernetes.definitions: `{nic.definition}` would be "
                    "written twice, each time otherwise",
                    hint="give each its own name, or leave `definitions` out",
                )
            return nic.definition
        what = nic.device or (nic.resource or nic.attached.attachment).rpartition("/")[2]
        stem = f"{self._prefix}-{_slug(what)}"[:_MOST_STEM_CHARACTERS].rstrip("-.")
        numbered = (f"{stem}-{number}" for number in range(2, len(taken) + 3))
        return next(name for name in (stem, *numbered) if name not in taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nic:
    """What one NIC of a network asks for."""

    network: str
    attached: SecondaryNetwork
    number: int
    config: CniConfig | None

    @property
    def identity(self) -> str:
        """Equal for NICs that one definition serves."""
        if self.config is None:
            return f"existing {self.definition}"
        resource = self.resource if self.attached.is_chosen_by_resource else None
        return json.dumps([self.definition, self.config, resource], sort_keys=True)

    @property
    def definition(self) -> str | None:
        names = self.attached.definitions
        return names[self.number] if names else None

    @property
    def device(self) -> str | None:
        names = self.attached.devices
        return names[self.number] if names else None

    @property
    def resource(self) -> str | None:
        return self.attached.resource_of(self.number)

    @property
    def address_range(self) -> str | None:
        ipam = self.attached.ipam
        return ipam.ranges[self.number] if ipam is not None and ipam.ranges else None


def attach(
    networks: Sequence[Network], definitions: Definitions, address_map: Sequence[MappedNic]
) -> Attachments:
    """To the pods of one job; each network as it is with the job's number of pods.

    `address_map`: its lines; empty where no network has one. Raises InputError where the map does
    not say how a NIC is called.
    """
    planned: list[Interface] = []
    places: dict[tuple[str, int], int] = {}
    used_by: dict[str, list[int]] = {}
    for network in networks:
        attached = network.kubernetes
        assert attached is not None, "the plan leaves out networks without this face"
        used_by[network.name] = []
        used: Counter[str] = Counter()
        for nic in _nics(network):
            definition = definitions.name_of(nic)
            place = places.get((definition, used[definition]))
            if place is None:
                place = places[definition, used[definition]] = len(planned)
                planned.append(_interface(nic, definition, address_map))
            used[definition] += 1
            planned[place] = replace(
                planned[place], networks=(*planned[place].networks, network.name)
            )
            used_by[network.name].append(place)
    fabrics = {each.name: each for each in map(fabric_of, networks) if each is not None}
    interfaces = _with_names(planned)
    for each in interfaces:
        if each.config is not None:
            definitions.rendered.setdefault(each.definition, each)
    return Attachments(
        interfaces=interfaces,
        names_of={
            network: tuple(interfaces[place].name for place in taken) or (POD_INTERFACE,)
            for network, taken in used_by.items()
        },
        resources=_resources(networks, interfaces),
        fabrics=tuple(fabrics.values()),
        gke_networks=_gke_networks(networks),
    )


def _gke_networks(networks: Iterable[Network]) -> tuple[str, ...]:
    """Raises InputError for two networks of which each has its own."""
    found: dict[tuple[str, ...], str] = {}
    for network in networks:
        face = network.kubernetes
        if isinstance(face, SecondaryNetwork) and _is_attached_by_gke(network):
            check_nics(network)
            found.setdefault(face.definitions, network.name)
    if len(found) > 1:
        (_, one), (names, other) = list(found.items())[:2]
        raise InputError(
            f"networks.{other}.kubernetes.definitions: {names[0]}, …, and {one} has others: GKE "
            "attaches one set of NICs to a pod",
            hint="`kubernetes.allocation: per_case`",
        )
    return next(iter(found), ())


def _is_attached_by_gke(network: Network) -> bool:
    fabric = fabric_of(network)
    return fabric is not None and fabric.attaches == "gke"


def _nics(network: Network) -> Iterator[_Nic]:
    """Those with an interface of their own."""
    attached = network.kubernetes
    if not isinstance(attached, SecondaryNetwork) or attached.attachment == "device-plugin":
        return
    if _is_attached_by_gke(network):
        return
    for number in range(network.num_nics):
        is_there = attached.attachment == "existing"
        config = None if is_there else configuration(attached, number)
        yield _Nic(network=network.name, attached=attached, number=number, config=config)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "nic"


def _interface(nic: _Nic, definition: str, address_map: Sequence[MappedNic]) -> Interface:
    ipam, is_chosen = nic.attached.ipam, nic.attached.is_chosen_by_resource
    is_mapped = ipam is not None and ipam.kind == "address-map"
    return Interface(
        name=_mapped_name(nic, address_map) if is_mapped else "",
        definition=definition,
        config=nic.config,
        device=nic.device,
        resource=nic.resource if is_chosen else None,
        address_range=nic.address_range,
        left_out=() if ipam is None else ipam.exclude,
        gateway=None if ipam is None else ipam.gateway,
        is_numbered=ipam is not None and ipam.kind == "static",
        is_mapped=is_mapped,
    )


def _mapped_name(nic: _Nic, rows: Sequence[MappedNic]) -> str:
    """What the map calls this device in a pod, on all nodes alike. Raises InputError."""
    place = f"networks.{nic.network}.kubernetes"
    names = {row.interface for row in rows if row.device == nic.device}
    if nic.device is None:
        raise InputError(
            f"{place}: an address map names NICs by the node's devices",
            hint="`devices: …`, one a NIC in the order of `definitions`",
        )
    if not names:
        has = ", ".join(sorted({row.device for row in rows})) or "no device"
        raise InputError(
            f"{place}.devices: `{nic.device}` is not in the address map, which has {has}",
            hint="a line `host:device:interface:ip` for each node",
        )
    if len(names) > 1:
        raise InputError(
            f"{place}.devices: the address map calls `{nic.device}` {' and '.join(sorted(names))}",
            hint="one interface name for a device on all nodes: all pods have one template",
        )
    return names.pop()


def _with_names(planned: Sequence[Interface]) -> tuple[Interface, ...]:
    """The map's names first; the others get the next `net1`, `net2`, … Raises InputError."""
    taken: dict[str, Interface] = {}
    for interface in planned:
        if interface.name and interface.name in taken:
            raise InputError(
                f"networks.{interface.network}.kubernetes.devices: the address map calls "
                f"{taken[interface.name].device} and {interface.device} `{interface.name}`, and "
                "both are attached to a pod",
                hint="another interface name in the map, or `kubernetes.allocation: per_case`",
            )
        if interface.name:
            taken[interface.name] = interface
    free = (name for number in range(1, 1000) if (name := f"net{number}") not in taken)
    return tuple(each if each.name else replace(each, name=next(free)) for each in planned)


def _resources(networks: Iterable[Network], interfaces: Sequence[Interface]) -> dict[str, int]:
    """Those that are NICs once for each; others, which all NICs share, once."""
    found = Counter(each.resource for each in interfaces if each.resource is not None)
    for network in networks:
        attached = network.kubernetes
        if not isinstance(attached, SecondaryNetwork):
            continue
        if attached.attachment == "device-plugin":
            numbers = range(network.num_nics)
            own = Counter(filter(None, (attached.resource_of(number) for number in numbers)))
        elif attached.is_chosen_by_resource:
            continue
        else:
            own = Counter(set(attached.resources))
        for name, number in own.items():
            found[name] = max(found[name], number)
    return dict(found)
