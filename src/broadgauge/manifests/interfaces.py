"""Which interfaces does a pod get beside its own, and which networks send by each of them?

Networks share NICs: one with one NIC and one with eight over the same devices, or one meant as RDMA
and one as TCP. Each definition is attached as often as the network that uses it most needs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from broadgauge.agent.pod.address_map import MappedNic
from broadgauge.catalog.fabrics import FabricProfile
from broadgauge.catalog.profiled import check_nics, fabric_of
from broadgauge.manifests.cni import configuration
from broadgauge.manifests.definitions import Definitions, Interface, PodNic
from broadgauge.manifests.fabric_parts import GKE_INTERFACE
from broadgauge.manifests.shared_adapters import refuse_mixed_adapters
from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.network import Network
from broadgauge.specs.networks.pod_networks import POD_INTERFACE, SecondaryNetwork


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachments:
    """What the pods of one job are given for their networks."""

    interfaces: tuple[Interface, ...] = ()
    names_of: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By network, the interfaces that its ranks' sockets use, in the order of its NICs. NCCL needs
    them for RDMA, too: ranks find each other over TCP."""
    nics_of: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By network, its NICs' interfaces, be they with or without an address."""
    resources: dict[str, int] = field(default_factory=dict)
    """Extended resources of each pod, without GPUs."""
    fabrics: tuple[FabricProfile, ...] = ()
    """Profiles of the catalog that these networks name, each once."""
    gke_networks: tuple[str, ...] = ()
    """Names of GKE's Network objects, one a NIC, which GKE attaches by its own annotation."""


def attach(
    networks: Sequence[Network], definitions: Definitions, address_map: Sequence[MappedNic]
) -> Attachments:
    """To the pods of one job; each network as it is with the job's number of pods.

    `address_map`: its lines; empty where no network has one. Raises InputError where the map does
    not say how a NIC is called.
    """
    refuse_mixed_adapters(networks)
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
                planned[place],
                networks=(*planned[place].networks, network.name),
                resource=planned[place].resource or nic.resource,
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
            each.name: _socket_names(each, [interfaces[place] for place in used_by[each.name]])
            for each in networks
        },
        nics_of={
            network: tuple(interfaces[place].name for place in taken)
            for network, taken in used_by.items()
        },
        resources=_resources(networks, interfaces),
        fabrics=tuple(fabrics.values()),
        gke_networks=_gke_networks(networks),
    )


def _socket_names(network: Network, nics: Sequence[Interface]) -> tuple[str, ...]:
    """The pod's own interface, where its NICs have no address."""
    if _is_attached_by_gke(network):
        return tuple(f"{GKE_INTERFACE}{number}" for number in range(1, network.num_nics + 1))
    if not nics or not all(each.has_address for each in nics):
        return (POD_INTERFACE,)
    return tuple(each.name for each in nics)


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


def _nics(network: Network) -> Iterator[PodNic]:
    """Those with an interface of their own."""
    attached = network.kubernetes
    if not isinstance(attached, SecondaryNetwork) or attached.attachment == "device-plugin":
        return
    if _is_attached_by_gke(network):
        return
    for number in range(network.num_nics):
        is_there = attached.attachment == "existing"
        config = None if is_there else configuration(attached, number)
        yield PodNic(network=network.name, attached=attached, number=number, config=config)


def _interface(nic: PodNic, definition: str, address_map: Sequence[MappedNic]) -> Interface:
    ipam = nic.attached.ipam
    is_mapped = ipam is not None and ipam.kind == "address-map"
    return Interface(
        name=_mapped_name(nic, address_map) if is_mapped else "",
        definition=definition,
        config=nic.config,
        device=nic.device,
        resource=nic.resource,
        is_chosen_by_resource=nic.attached.is_chosen_by_resource,
        has_address=nic.attached.has_address,
        address_range=nic.address_range,
        left_out=() if ipam is None else ipam.exclude,
        gateway=None if ipam is None else ipam.gateway,
        is_numbered=ipam is not None and ipam.kind == "static",
        is_mapped=is_mapped,
    )


def _mapped_name(nic: PodNic, rows: Sequence[MappedNic]) -> str:
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
    """One for each NIC, however many networks use it."""
    found = Counter(each.resource for each in interfaces if each.resource is not None)
    for network in networks:
        attached = network.kubernetes
        if isinstance(attached, SecondaryNetwork) and attached.attachment == "device-plugin":
            own = Counter(filter(None, map(attached.resource_of, range(network.num_nics))))
            for name, number in own.items():
                found[name] = max(found[name], number)
    return dict(found)
