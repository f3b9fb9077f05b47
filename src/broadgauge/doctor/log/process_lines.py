"""What does a process tell of itself: network, interfaces, adapters, plugins, variables?"""

import re
from typing import TYPE_CHECKING

from broadgauge.doctor.log.facts import Adapter, ProcessFacts
from broadgauge.doctor.log.masking import masked, masked_variable

if TYPE_CHECKING:
    from broadgauge.doctor.log.gathering import Gatherer, Told

_ITEM = re.compile(r"\[\d+\](?P<name>[^\s:]+):(?P<rest>\S*)")
_DEFAULT_PLUGINS = ("libnccl-net.so", "librccl-net.so")
"""What NCCL and RCCL look for by themselves. Source: NVIDIA/nccl src/plugin/plugin_open.cc,
ROCm/rccl src/plugin/net.cc."""
_MOST_INTERFACES = 64
_RING = 4
"""Source: NVIDIA/nccl src/include/graph.h, NCCL_TOPO_PATTERN_RING."""
MOST_VARIABLES = 500
"""Of one process; NCCL knows about 200."""


def take_network(_: "Gatherer", told: "Told") -> None:
    told.process.network = told.fields["network"].strip()


def take_bootstrap(gatherer: "Gatherer", told: "Told") -> None:
    words = told.fields["interfaces"].strip()
    name, _colon, address = re.sub(r"^\[\d+\]", "", words).partition(":")
    told.process.bootstrap = name or None
    _address(gatherer, told.process, name, address)


def take_socket_interfaces(gatherer: "Gatherer", told: "Told") -> None:
    items = list(_ITEM.finditer(told.fields["interfaces"]))
    names = dict.fromkeys((*told.process.interfaces, *(match["name"] for match in items)))
    told.process.interfaces = tuple(names)[:_MOST_INTERFACES]
    for match in items:
        _address(gatherer, told.process, match["name"], match["rest"])


def _address(gatherer: "Gatherer", process: ProcessFacts, interface: str, text: str) -> None:
    """`192.0.2.1<0>`, or `2001:db8::1<0>`."""
    address = text.partition("<")[0].strip()
    if address:
        gatherer.room.put(process.addresses, interface, address)


def take_socket_threads(_: "Gatherer", told: "Told") -> None:
    told.process.socket_threads = told.number("threads")
    told.process.sockets_per_thread = told.number("sockets")


def take_default_speed(gatherer: "Gatherer", told: "Told") -> None:
    path = told.fields["interface"].strip().rstrip(".")
    name = path.removesuffix("/speed").rsplit("/", 1)[-1]
    gatherer.room.add(told.process.default_speed_interfaces, name)


def take_adapters(gatherer: "Gatherer", told: "Told") -> None:
    for match in _ITEM.finditer(told.fields["adapters"]):
        port, _slash, link = match["rest"].partition("/")
        name = f"{match['name']}:{port}"
        if name not in told.process.adapters:
            gatherer.room.put(told.process.adapters, name, Adapter(name, link or "unknown"))


def take_adapter(gatherer: "Gatherer", told: "Told") -> None:
    name = f"{told.fields['name']}:{told.fields['port']}"
    speed = told.fields.get("speed")
    adapter = Adapter(name, told.fields["link"], None if speed is None else int(speed))
    gatherer.room.put(told.process.adapters, name, adapter)


def take_merged_adapter(gatherer: "Gatherer", told: "Told") -> None:
    name = told.fields["name"]
    adapter = Adapter(name, "merged", told.number("speed"))
    gatherer.room.put(told.process.adapters, name, adapter)


def take_plugin_loaded(_: "Gatherer", told: "Told") -> None:
    told.process.plugin = told.fields["plugin"].strip()


def take_provider(_: "Gatherer", told: "Told") -> None:
    told.process.provider = told.fields["provider"].strip().rstrip(",")


def take_plugin_missing(gatherer: "Gatherer", told: "Told") -> None:
    plugin = told.fields["plugin"].strip().rstrip(".")
    gatherer.room.add(told.process.missing_plugins, plugin)
    if plugin not in _DEFAULT_PLUGINS:
        told.process.wanted_plugin = told.process.wanted_plugin or plugin
    reason = told.fields.get("reason", "")
    if reason and not _is_plain_absence(reason, plugin):
        gatherer.room.put(told.process.unloadable_plugins, plugin, masked(reason.strip()))


def _is_plain_absence(reason: str, plugin: str) -> bool:
    """`libnccl-net.so: cannot open shared object file: No such file or directory`: no plugin."""
    absent = ": cannot open shared object file: No such file"
    return reason.strip().startswith((f"{plugin}{absent}", f"libnccl-net-{plugin}.so{absent}"))


def take_plugin_failed(gatherer: "Gatherer", told: "Told") -> None:
    gatherer.room.add(told.process.failed_plugins, told.fields["plugin"].strip())


def take_plugin_named(_: "Gatherer", told: "Told") -> None:
    """Up to 2.20 NCCL prints this instead of the variable."""
    told.process.variables.setdefault("NCCL_NET_PLUGIN", told.fields["plugin"])


def take_plugin_assigned(_: "Gatherer", told: "Told") -> None:
    told.process.network = told.fields["plugin"].strip()


def take_gdr_adapter(gatherer: "Gatherer", told: "Told") -> None:
    is_on = told.fields["state"] == "Enabled"
    gatherer.room.put(told.process.gdr_by_adapter, told.fields["adapter"], is_on)


def take_gdr_pair(gatherer: "Gatherer", told: "Told") -> None:
    pair = (told.fields["gpu"], told.fields["adapter"])
    gatherer.room.put(told.process.gdr_by_pair, pair, told.fields["state"] == "Enabled")


def take_dma_buf(gatherer: "Gatherer", told: "Told") -> None:
    gatherer.room.add(told.process.dma_buf_devices, told.number("device"))


def take_multicast(_: "Gatherer", told: "Told") -> None:
    is_there = "not" not in told.fields["state"]
    told.process.has_multicast = bool(told.process.has_multicast) or is_there


def take_nvswitch(_: "Gatherer", told: "Told") -> None:
    told.process.has_nvswitch = True


def version_in(text: str) -> tuple[str, ...]:
    """`2.28.9+cuda13.0` → `2.28.9`; nothing where it is none."""
    match = re.match(r"\d{1,3}\.\d{1,3}(\.\d{1,4})?", text)
    return () if match is None else (match[0],)


def take_version(_: "Gatherer", told: "Told") -> None:
    told.process.version = next(iter(version_in(told.fields["version"])), told.process.version)


def take_variable(gatherer: "Gatherer", told: "Told") -> None:
    name, variables = told.fields["name"], told.process.variables
    if name in variables or len(variables) < MOST_VARIABLES:
        value = told.fields["value"].strip()
        gatherer.room.put(variables, name, masked_variable(name, value.removesuffix(".")))


def take_gid(gatherer: "Gatherer", told: "Told") -> None:
    gatherer.room.add(told.process.gid_indices, told.number("index"))


def take_nic_speed(_: "Gatherer", told: "Told") -> None:
    gbps = float(told.fields["speed"]) * 8
    told.process.seen_gbps = min(told.process.seen_gbps or gbps, gbps)


def take_ring_search(_: "Gatherer", told: "Told") -> None:
    if told.number("pattern") == _RING:
        told.process.ring_channels = told.number("channels")
