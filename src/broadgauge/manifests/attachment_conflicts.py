"""Can one pod have all of these interfaces, and so many pods an address each?

What a cluster would only show as a pod that waits for ever (`failed to move link`, `Could not
allocate IP in range`), or not at all, is refused here.
Source: containernetworking/plugins, host-device; Linux, drivers/net/{macvlan,ipvlan}.c: each takes
the device's receive handler, which only its own kind shares. ipvlan's mode is the device's: a
second one changes the first's, and nobody says so. A device moves into a pod with what lies over
it, so that host-device finds it after macvlan or ipvlan, and they don't find it after host-device.
tests/kubernetes/test_cni_plugins.py shows each of these.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

from broadgauge.agent.pod.address_map import PREFIX_LENGTH, MappedNic
from broadgauge.manifests.definitions import Interface
from broadgauge.manifests.interfaces import Attachments
from broadgauge.manifests.shared_adapters import PER_CASE
from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.ipam import has_addresses, overlap

_ONE_SUBNET = "and a pod would have two interfaces in one subnet: the kernel sends by either"
_MOST_NAMED = 4
_Nodes = Mapping[str, Mapping[str, MappedNic]]
"""What the address map says of a pod's interface, by its name, on each node."""


def refuse_conflicts(
    attachments: Attachments, num_pods: int, address_map: Sequence[MappedNic], *, is_each_told: bool
) -> None:
    """Raises InputError with place, value and what to do.

    `is_each_told`: has each pod a template of its own, and with it an address?
    """
    nodes = _by_node(attachments.interfaces, address_map)
    for one, other in combinations(attachments.interfaces, 2):
        _refuse_one_device(one, other)
        _refuse_overlap(one, other)
        _refuse_two_mapped(one, other, nodes)
        _refuse_mapped_in_range(one, other, nodes)
    for each in attachments.interfaces:
        _refuse_small_range(each, num_pods)
        if each.is_numbered and not is_each_told:
            raise InputError(
                f"networks.{each.network}.kubernetes.ipam.kind: `static` with {num_pods} pods, "
                "which share one template, and would have one address",
                hint="`whereabouts`, `nv-ipam`, or an `address-map`; `static` numbers one pod, or "
                "the two of a PyTorchJob",
            )
    mapped = [each for each in attachments.interfaces if each.is_mapped]
    _refuse_short_map(mapped, num_pods, nodes)


def _by_node(interfaces: Sequence[Interface], address_map: Sequence[MappedNic]) -> _Nodes:
    return {
        each.name: {row.host: row for row in address_map if row.device == each.device}
        for each in interfaces
        if each.is_mapped
    }


def _refuse_one_device(one: Interface, other: Interface) -> None:
    if one.device is None or one.device != other.device:
        return
    if one.config is None or other.config is None:
        return
    reason = why_not_shared(_plugin(one), _plugin(other))
    if reason is None:
        return
    kinds = f"{_kind(one)} and {_kind(other)}"
    if _kind(one) == _kind(other):
        kinds = f"{_kind(one)} in two ways"
    raise InputError(
        f"networks.{other.network}.kubernetes.devices: two networks on one interface: "
        f"`{other.device}` is {one.network}'s, too ({kinds}), and {reason}",
        hint=f"the same settings for both, or {PER_CASE}",
    )


def why_not_shared(one: Mapping[str, object], other: Mapping[str, object]) -> str | None:
    """Two plugins, as in a CNI configuration, over one device. None: one pod can have both."""
    plugins = (one, other)
    kinds = {str(each.get("type")) for each in plugins}
    modes = {each.get("mode") for each in plugins}
    if "host-device" in kinds:
        return "host-device takes it away from all others"
    if "bridge" in kinds:  # more ports of it, or interfaces over it
        return None
    if kinds == {"ipvlan", "macvlan"}:
        return "a device can't have both over it"
    if "passthru" in modes:
        return "`passthru` has its device alone"
    if kinds == {"ipvlan"} and len(modes) > 1:
        return "all over one device have the mode of the last"
    return None


def _plugin(interface: Interface) -> dict[str, object]:
    assert interface.config is not None, interface.definition
    first: dict[str, object] = (interface.config.get("plugins") or [interface.config])[0]
    return first


def _kind(interface: Interface) -> str:
    return str(_plugin(interface)["type"])


def _refuse_overlap(one: Interface, other: Interface) -> None:
    first, second = one.address_range, other.address_range
    if first is None or second is None or not overlap(first, second):
        return
    raise InputError(
        f"networks.{other.network}.kubernetes.ipam.ranges: {second} overlaps {one.network}'s "
        f"{first}, {_ONE_SUBNET}",
        hint=f"a subnet of its own for each NIC, or {PER_CASE}",
    )


def _refuse_two_mapped(one: Interface, other: Interface, nodes: _Nodes) -> None:
    """On one node: another has its own addresses."""
    if not (one.is_mapped and other.is_mapped):
        return
    for host, first in nodes[one.name].items():
        second = nodes[other.name].get(host)
        if second is not None and first.address.network.overlaps(second.address.network):
            raise InputError(
                f"networks.{other.network}.kubernetes.ipam.map: {second.address} of {host}'s "
                f"{other.device} overlaps its {one.device}'s {first.address}, {_ONE_SUBNET}",
                hint="a subnet of its own for each NIC of a node (an address without a length is "
                f"a /{PREFIX_LENGTH}){_or_per_case(one, other)}",
            )


def _refuse_mapped_in_range(one: Interface, other: Interface, nodes: _Nodes) -> None:
    mapped, ranged = (one, other) if one.is_mapped else (other, one)
    subnet = ranged.address_range
    if subnet is None or not mapped.is_mapped:
        return
    for host, row in nodes[mapped.name].items():
        if overlap(subnet, str(row.address.network)):
            raise InputError(
                f"networks.{ranged.network}.kubernetes.ipam.ranges: {subnet} overlaps "
                f"{row.address}, which the address map gives {host}'s {mapped.device}, "
                f"{_ONE_SUBNET}",
                hint=f"a subnet of its own for each NIC{_or_per_case(one, other)}",
            )


def _or_per_case(*interfaces: Interface) -> str:
    """Nothing where one network has them all."""
    shared = set.intersection(*(set(each.networks) for each in interfaces))
    return "" if shared else f", or {PER_CASE}"


def _refuse_small_range(interface: Interface, num_pods: int) -> None:
    subnet = interface.address_range
    if subnet is None:
        return
    has = has_addresses(subnet, interface.left_out, interface.gateway, num_pods)
    if has < num_pods:
        raise InputError(
            f"networks.{interface.network}.kubernetes.ipam.ranges: {subnet} has {has} "
            f"address{'es' * (has != 1)} to give, and {num_pods} pods need one each",
            hint="a larger subnet, or fewer addresses in `exclude`",
        )


def _refuse_short_map(mapped: Sequence[Interface], num_pods: int, nodes: _Nodes) -> None:
    """A pod comes to a node that has all of its devices."""
    has_all: list[str] = []
    for place, each in enumerate(mapped):
        own = nodes[each.name]
        has_all = [host for host in has_all if host in own] if place else list(own)
        if len(own) < num_pods:
            raise _short_map([each], list(own), num_pods)
        if len(has_all) < num_pods:
            raise _short_map(mapped[: place + 1], has_all, num_pods)


def _short_map(mapped: Sequence[Interface], hosts: Sequence[str], num_pods: int) -> InputError:
    devices = _shown([str(each.device) for each in mapped])
    listed, of_each = "is listed", ""
    if len(mapped) > 1:
        listed, of_each = "are listed together", f" and device{_or_per_case(*mapped)}"
    named = f" ({_shown(hosts)})" if hosts else ""
    return InputError(
        f"networks.{mapped[-1].network}.kubernetes.ipam.map: {devices} {listed} for "
        f"{len(hosts)} node{'s' * (len(hosts) != 1)}{named}, and {num_pods} pods need one each",
        hint=f"a line `host:device:interface:ip` for each node{of_each}",
    )


def _shown(words: Sequence[str]) -> str:
    return ", ".join(words[:_MOST_NAMED]) + (", …" if len(words) > _MOST_NAMED else "")
