"""Which interfaces does a pod get, and which networks use each of them?

Networks share NICs: a network with one NIC and one with eight over the same devices, or an RDMA
network and its twins. Each definition is attached as often as the network that uses it most needs.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from broadgauge.agent.pod.address_map import AddressMapError, MappedNic, parse_map
from broadgauge.manifests.cni import Config, configuration
from broadgauge.manifests.profiles import attaches_by_gke
from broadgauge.specs.attached import MORE_NICS, Attached
from broadgauge.specs.errors import InputError
from broadgauge.specs.network import Network

_MAX_NAME = 253


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """One interface of a pod beside the pod network's."""

    name: str
    """In the pod: `net1`, or what the address map calls it."""
    definition: str
    """Name of its NetworkAttachmentDefinition, `namespace/name` where it is elsewhere."""
    config: Config | None
    """Of a definition that is rendered; None: it is there."""
    device: str | None
    """On the node."""
    resource: str | None
    """Extended resource that is asked for with it."""
    is_chosen_by_resource: bool
    """A device plugin says which device it is, and Multus must be told by which resource."""
    is_mapped: bool
    """The address map gives its address."""
    networks: tuple[str, ...] = ()
    """That use it."""


@dataclass(slots=True)
class Interfaces:
    """All of a pod's, and which are each network's."""

    found: list[Interface] = field(default_factory=list)
    of_network: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of definitions, one a NIC in order, by the network's name; empty: the pod network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nic:
    """What one NIC of a network asks for."""

    network: str
    attached: Attached
    number: int
    definition: str | None
    config: Config | None

    @property
    def identity(self) -> str:
        """Equal for NICs that one definition serves."""
        if self.config is None:
            return f"existing {self.definition}"
        parts = [self.definition, self.config, self.resource if self.by_resource else None]
        return json.dumps(parts, sort_keys=True)

    @property
    def resource(self) -> str | None:
        return self.attached.resource(self.number)

    @property
    def device(self) -> str | None:
        return self.attached.device(self.number)

    @property
    def by_resource(self) -> bool:
        kind = self.attached.attachment
        return kind == "sriov" or (kind == "host-device" and self.device is None)

    @property
    def is_mapped(self) -> bool:
        ipam = self.attached.ipam
        return ipam is not None and ipam.kind == "address-map"


def plan_interfaces(
    networks: Sequence[Network], *, num_pods: int, prefix: str, address_map: str | None
) -> Interfaces:
    """`prefix` of the definitions that are rendered. Raises InputError where devices exclude each
    other, or where the address map lacks one."""
    plan = Interfaces()
    rows = _rows(address_map)
    names: dict[str, str] = {}
    taken: dict[tuple[str, int], int] = {}
    for network in networks:
        used: dict[str, int] = {}
        definitions = []
        for nic in _nics(network, num_pods):
            definition = names.setdefault(nic.identity, "") or _name(nic, prefix, names)
            names[nic.identity] = definition
            definitions.append(definition)
            use = used.get(definition, 0)
            used[definition] = use + 1
            place = taken.get((definition, use))
            if place is None:
                taken[definition, use] = len(plan.found)
                plan.found.append(_interface(nic, definition, rows))
            plan.found[taken[definition, use]] = _also(plan.found[taken[definition, use]], network)
        plan.of_network[network.name] = tuple(definitions)
    _name_interfaces(plan)
    _refuse_shared_devices(plan.found)
    return plan


def _nics(network: Network, num_pods: int) -> Iterator[_Nic]:
    attached = network.kubernetes
    assert attached is not None, network.name
    if attached.is_pod_network or attaches_by_gke(network):
        return
    num_nics = network.on_nodes(num_pods).num_nics
    trouble = attached.why_not_with(num_nics)
    if trouble is not None:
        raise InputError(f"networks.{network.name}.nics_per_node: {trouble}", hint=MORE_NICS)
    for number in range(num_nics):
        is_there = attached.attachment == "existing"
        yield _Nic(
            network=network.name,
            attached=attached,
            number=number,
            definition=attached.definition(number),
            config=None if is_there else configuration(attached, number, network=network.name),
        )


def _name(nic: _Nic, prefix: str, names: dict[str, str]) -> str:
    """The experiment's own, or of job and device; numbered where another has it."""
    if nic.definition is not None:
        if nic.definition in names.values():
            raise InputError(
                f"networks.{nic.network}.kubernetes.definitions: `{nic.definition}` would be "
                "written twice, each time otherwise",
                hint="give each its own name, or leave `definitions` out",
            )
        return nic.definition
    what = nic.device or (nic.resource or nic.attached.attachment).rpartition("/")[2]
    stem = f"{prefix}-{_slug(what)}"[: _MAX_NAME - 4].rstrip("-")
    name, number = stem, 1
    while name in names.values():
        number += 1
        name = f"{stem}-{number}"
    return name


def _slug(text: str) -> str:
    kept = "".join(each if each.isascii() and each.isalnum() else "-" for each in text.lower())
    return kept.strip("-") or "nic"


def _interface(nic: _Nic, definition: str, rows: Sequence[MappedNic]) -> Interface:
    return Interface(
        name=_mapped_name(nic, rows) if nic.is_mapped else "",
        definition=definition,
        config=nic.config,
        device=nic.device,
        resource=nic.resource,
        is_chosen_by_resource=nic.by_resource,
        is_mapped=nic.is_mapped,
    )


def _also(interface: Interface, network: Network) -> Interface:
    return replace(interface, networks=(*interface.networks, network.name))


def _rows(address_map: str | None) -> tuple[MappedNic, ...]:
    if address_map is None:
        return ()
    try:
        return parse_map(address_map)
    except AddressMapError as error:
        raise InputError(error.message, hint=error.hint) from error


def _mapped_name(nic: _Nic, rows: Sequence[MappedNic]) -> str:
    """What the map calls this device in a pod, on all nodes alike. Raises InputError."""
    of_device = [row for row in rows if nic.device is None or row.device == nic.device]
    found = sorted({row.interface for row in of_device})
    if len(found) == 1:
        return found[0]
    place = f"networks.{nic.network}.kubernetes"
    if nic.device is None:
        raise InputError(f"{place}: an address map needs `devices`, by which it names NICs")
    if not found:
        has = ", ".join(sorted({row.device for row in rows})) or "no device"
        raise InputError(
            f"{place}.devices: `{nic.device}` is not in the address map, which has {has}"
        )
    raise InputError(
        f"{place}.devices: the address map calls `{nic.device}` {' and '.join(found)}",
        hint="one interface name for a device on all nodes: all pods have one template",
    )


def _name_interfaces(plan: Interfaces) -> None:
    """The map's names first; the others get the next `net1`, `net2`, … Raises InputError."""
    taken: dict[str, Interface] = {}
    for interface in plan.found:
        if interface.name and interface.name in taken:
            raise InputError(
                f"the address map calls {taken[interface.name].device} and {interface.device} "
                f"`{interface.name}`, and both are attached to a pod",
                hint="another interface name in the map, or `allocation: per_case`",
            )
        if interface.name:
            taken[interface.name] = interface
    free = (name for i in range(1, 1000) if (name := f"net{i}") not in taken)
    plan.found = [each if each.name else replace(each, name=next(free)) for each in plan.found]


def _refuse_shared_devices(interfaces: Sequence[Interface]) -> None:
    """A device that is moved into the pod can't lie under another one's interface."""
    moved = {
        each.device: each
        for each in interfaces
        if each.device and each.config is not None and _kind(each.config) == "host-device"
    }
    for each in interfaces:
        other = None if each.device is None else moved.get(each.device)
        if other is None or other is each:
            continue
        raise InputError(
            f"networks {other.networks[0]} and {each.networks[0]} both take the device "
            f"{each.device}, one of them as a whole (host-device): one pod can't have both",
            hint="`allocation: per_case`: a job for each case, which is not paired with others",
        )


def _kind(config: Config) -> str:
    plugins = config.get("plugins") or [config]
    return str(plugins[0]["type"])
