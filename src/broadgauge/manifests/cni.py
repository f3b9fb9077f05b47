"""Which CNI configuration gives a pod this NIC, and is it one that its plugin takes?

Schemas of Kubernetes do not look inside a NetworkAttachmentDefinition's `config`, and published
samples hold keys that no plugin has, so each is checked here before it is rendered.
Source: Container Network Interface Specification 1.0.0, "Section 1: Network configuration format";
containernetworking/plugins 1.5, sriov-cni 2.8, ib-sriov-cni 1.1, whereabouts 0.8, nvidia-k8s-ipam
0.3; k8snetworkplumbingwg/rdma-cni (chained): the documented keys of each.
"""

import json
from collections.abc import Iterator
from typing import Any

from broadgauge.specs.attached import Attached, Ipam
from broadgauge.specs.errors import InputError

VERSION = "0.3.1"
"""Every cluster's Multus and plugins know it; 1.0.0 adds nothing to what is used here."""
VERSIONS = ("0.3.0", "0.3.1", "0.4.0", "1.0.0")
Config = dict[str, Any]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_COMMON = _words("cniVersion name type ipam capabilities")
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
MODES = {"macvlan": ("bridge", "vepa", "private", "passthru"), "ipvlan": ("l2", "l3", "l3s")}
_MTU_OF_ITS_OWN = ("macvlan", "ipvlan", "bridge")


def configuration(attached: Attached, nic: int, *, network: str) -> Config:
    """Of one NIC, without its `name`. `network`: for messages. Raises InputError."""
    plugin = _plugin(attached, nic, network)
    chained: list[Config] = []
    if attached.mtu_bytes is not None and attached.attachment not in _MTU_OF_ITS_OWN:
        chained.append({"type": "tuning", "mtu": attached.mtu_bytes})
    if attached.rdma_namespace == "exclusive":  # after the interface is in the pod
        chained.append({"type": "rdma"})
    if not chained:
        return {"cniVersion": VERSION, **plugin}
    return {"cniVersion": VERSION, "plugins": [plugin, *chained]}


def named(config: Config, name: str) -> str:
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
    if not isinstance(config.get("name"), str) or not config["name"]:
        found.append("`name` is missing")
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


def _plugin(attached: Attached, nic: int, network: str) -> Config:
    """The plugin's own part, in the order of its documentation."""
    kind = attached.attachment
    config: Config = {"type": kind}
    match kind:
        case "host-device":
            config |= {} if attached.device(nic) is None else {"device": attached.device(nic)}
        case "macvlan" | "ipvlan":
            config |= {"master": attached.device(nic), "mode": _mode(attached, network)}
        case "bridge":
            config["bridge"] = attached.device(nic)
        case "sriov" if attached.transport == "infiniband":
            config = {"type": "ib-sriov", "link_state": "enable"}
    if attached.mtu_bytes is not None and kind in _MTU_OF_ITS_OWN:
        config["mtu"] = attached.mtu_bytes
    ipam = {} if attached.ipam is None else _ipam(attached, attached.ipam, nic)
    return config | ({"ipam": ipam} if ipam else {})


def _mode(attached: Attached, network: str) -> str:
    known = MODES[attached.attachment]
    mode = attached.mode or known[0]
    if mode not in known:
        raise InputError(
            f"networks.{network}.kubernetes.mode: `{mode}` is no mode of {attached.attachment}",
            hint=f"one of {', '.join(known)}",
        )
    return mode


def _ipam(attached: Attached, ipam: Ipam, nic: int) -> Config:
    """Empty where a plugin gives no address: the attachment's own, or the address map's."""
    gateway = {} if ipam.gateway is None else {"gateway": ipam.gateway}
    match ipam.kind:
        case "whereabouts":
            exclude = {"exclude": list(ipam.exclude)} if ipam.exclude else {}
            of_range = {"range": attached.address_range(nic)}
            return {"type": "whereabouts", **of_range, **exclude, **gateway}
        case "host-local":
            subnet = {"subnet": attached.address_range(nic), **gateway}
            return {"type": "host-local", "ranges": [[subnet]]}
        case "nv-ipam":
            return {"type": "nv-ipam", "poolName": attached.address_pool(nic)}
        case "dhcp":
            return {"type": "dhcp"}
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
    config: Config, place: str, known: frozenset[str], needed: tuple[str, ...]
) -> Iterator[str]:
    for key in config:
        if key not in known:
            yield f"{place} has no key `{key}`"
    for key in needed:
        if not config.get(key):
            yield f"{place} needs `{key}`"
