"""Which CNI configuration gives a pod this NIC, and is it one that its plugin takes?

Schemas of Kubernetes do not look inside a NetworkAttachmentDefinition's `config`, and published
samples lack commas and hold keys that no plugin has, so each is checked before it is rendered.
Source: Container Network Interface Specification 1.0.0, "Section 1: Network configuration format";
containernetworking/plugins 1.9, sriov-cni 2.8, ib-sriov-cni 1.1, whereabouts 0.8, nvidia-k8s-ipam
0.3, k8snetworkplumbingwg/rdma-cni 1.2: the documented keys of each.
"""

import json
import re
from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any

from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.attachment_rules import MODES
from broadgauge.specs.networks.ipam import Ipam, overlap
from broadgauge.specs.networks.pod_networks import SecondaryNetwork

VERSION = "0.3.1"
"""Every cluster's Multus and plugins know it; 1.0.0 adds nothing to what is used here."""
VERSIONS = ("0.3.0", "0.3.1", "0.4.0", "1.0.0")
CniConfig = dict[str, Any]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""Of a network and of a plugin. Source: CNI 1.0.0, Section 1, `name`."""
_MTU_OF_ITS_OWN = ("macvlan", "ipvlan", "bridge")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_COMMON = _words("cniVersion name type ipam capabilities args ipMasq dns")
KNOWN_KEYS: dict[str, frozenset[str]] = {
    "host-device": _words("device hwaddr kernelpath pciBusID runtimeConfig"),
    "macvlan": _words("master mode mtu linkInContainer bcqueuelen runtimeConfig"),
    "ipvlan": _words("master mode mtu linkInContainer"),
    "bridge": _words(
        "bridge isGateway isDefaultGateway forceAddress ipMasq mtu hairpinMode promiscMode vlan "
        "vlanTrunk preserveDefaultVlan enabledad macspoofchk disableContainerInterface "
        "portIsolation"
    ),
    "sriov": _words(
        "deviceID vlan vlanQoS vlanProto mac spoofchk trust link_state min_tx_rate max_tx_rate "
        "logLevel logFile"
    ),
    "ib-sriov": _words("deviceID guid pkey link_state rdmaIsolation ibKubernetesEnabled"),
    "tuning": _words("sysctl mac mtu promisc allmulti txQLen dataDir"),
    "rdma": frozenset(),
}
NEEDED_KEYS = {"macvlan": ("master",), "ipvlan": ("master", "ipam"), "bridge": ("bridge",)}
KNOWN_IPAM_KEYS: dict[str, frozenset[str]] = {
    "whereabouts": _words(
        "range range_start range_end exclude gateway ipRanges network_name routes dns log_file "
        "log_level enable_overlapping_ranges node_slice_size kubernetes"
    ),
    "nv-ipam": _words("poolName poolType"),
    "host-local": _words("ranges routes resolvConf dataDir"),
    "static": _words("addresses routes dns"),
    "dhcp": _words("daemonSocketPath request provide priority"),
}
NEEDED_IPAM_KEYS = {"whereabouts": ("range",), "nv-ipam": ("poolName",), "host-local": ("ranges",)}


def configuration(attached: SecondaryNetwork, nic: int) -> CniConfig:
    """Of one NIC, from 0, without its `name`."""
    plugin = _plugin(attached, nic)
    chained: list[CniConfig] = []
    if attached.mtu_bytes is not None and attached.attachment not in _MTU_OF_ITS_OWN:
        chained.append({"type": "tuning", "mtu": attached.mtu_bytes})
    if attached.rdma_namespace == "exclusive":  # when the interface is in the pod
        chained.append({"type": "rdma"})
    if not chained:
        return {"cniVersion": VERSION, **plugin}
    return {"cniVersion": VERSION, "plugins": [plugin, *chained]}


def named(config: CniConfig, name: str) -> str:
    """The text of a definition's `config`. Raises InputError where a plugin would refuse it."""
    whole = {"cniVersion": config["cniVersion"], "name": name, **config}
    troubles = problems(whole)
    if troubles:
        raise InputError(f"the CNI configuration of {name}: {'; '.join(troubles)}")
    return json.dumps(whole, indent=2) + "\n"


def problems(config: object) -> list[str]:
    """What CNI or one of its plugins would refuse in this configuration; empty: nothing."""
    if not isinstance(config, dict):
        return ["it is no JSON object"]
    found = []
    if config.get("cniVersion") not in VERSIONS:
        found.append(f"`cniVersion` is none of {', '.join(VERSIONS)}")
    name = config.get("name")
    if not isinstance(name, str) or not name:
        found.append("`name` is missing")
    elif _NAME.fullmatch(name) is None:
        found.append(f"`{name}` is no `name` of a network")
    plugins = config.get("plugins")
    if plugins is None:
        return found + list(_plugin_problems(config))
    found += [f"unknown key `{key}`" for key in config if key not in _OF_A_LIST]
    if not isinstance(plugins, list) or not plugins:
        return [*found, "`plugins` is no list with a plugin"]
    for plugin in plugins:
        found += _plugin_problems(plugin)
    return found


_OF_A_LIST = ("cniVersion", "name", "plugins", "disableCheck")


def _plugin(attached: SecondaryNetwork, nic: int) -> CniConfig:
    """The plugin's own part, in the order of its documentation."""
    kind = attached.attachment
    device = attached.devices[nic] if attached.devices else None
    config: CniConfig = {"type": kind}
    match kind:
        case "host-device":
            config |= {} if device is None else {"device": device}
        case "macvlan" | "ipvlan":
            config |= {"master": device, "mode": attached.mode or MODES[kind][0]}
        case "bridge":
            config["bridge"] = device
        case "ib-sriov":
            config["link_state"] = "enable"
    if attached.mtu_bytes is not None and kind in _MTU_OF_ITS_OWN:
        config["mtu"] = attached.mtu_bytes
    ipam = {} if attached.ipam is None else _ipam(attached.ipam, nic)
    if ipam.get("type") == "static":
        config["capabilities"] = {"ips": True}
    return config | ({"ipam": ipam} if ipam else {})


def _ipam(ipam: Ipam, nic: int) -> CniConfig:
    """Empty where a plugin gives no address: the attachment's own, or the address map's. A gateway
    is left out of a range expressly: that whereabouts never gives it away is nowhere documented."""
    match ipam.kind:
        case "whereabouts":
            subnet = ipam.ranges[nic]
            left_out = [each for each in ipam.exclude if overlap(each, subnet)]
            gateway = {}
            if ipam.gateway is not None and ipam.is_routed_in(subnet):
                gateway = {"gateway": ipam.gateway}
                left_out.append(str(ip_network(ipam.gateway)))
            exclude = {"exclude": left_out} if left_out else {}
            return {"type": "whereabouts", "range": subnet, **exclude, **gateway}
        case "nv-ipam":
            pool = ipam.pools[min(nic, len(ipam.pools) - 1)]
            return {"type": "nv-ipam", "poolName": pool}
        case "static" | "dhcp":
            return {"type": ipam.kind}
        case "address-map" | "none":
            return {}


def _plugin_problems(plugin: object) -> Iterator[str]:
    if not isinstance(plugin, dict) or not isinstance(plugin.get("type"), str):
        yield "a plugin without `type`"
        return
    kind = plugin["type"]
    if kind not in KNOWN_KEYS:
        yield f"unknown plugin `{kind}`"
        return
    yield from _keys(plugin, f"`{kind}`", KNOWN_KEYS[kind] | _COMMON, NEEDED_KEYS.get(kind, ()))
    modes = MODES.get(kind)
    if modes is not None and plugin.get("mode", modes[0]) not in modes:
        yield f"`{plugin['mode']}` is no mode of `{kind}`"
    ipam = plugin.get("ipam")
    if ipam is None:
        return
    if not isinstance(ipam, dict) or ipam.get("type") not in KNOWN_IPAM_KEYS:
        yield f"`{kind}`: unknown `ipam`"
        return
    place = f"`ipam` of type `{ipam['type']}`"
    known = KNOWN_IPAM_KEYS[ipam["type"]] | {"type"}
    yield from _keys(ipam, place, known, NEEDED_IPAM_KEYS.get(ipam["type"], ()))


def _keys(
    config: CniConfig, place: str, known: frozenset[str], needed: tuple[str, ...]
) -> Iterator[str]:
    for key in config:
        if key not in known:
            yield f"{place} has no key `{key}`"
    for key in needed:
        if not config.get(key):
            yield f"{place} needs `{key}`"
