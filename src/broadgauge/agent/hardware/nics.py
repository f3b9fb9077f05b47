"""Which network interfaces are here, what are they, and what have they dropped?

Source: Linux, Documentation/ABI/testing/sysfs-class-net and -statistics; DEVTYPE of `uevent` is
the kind of a virtual interface (include/linux/netdevice.h, SET_NETDEV_DEVTYPE).
"""

from broadgauge.agent.hardware.pci import read_device
from broadgauge.agent.hardware.routes import Routes, read_routes
from broadgauge.agent.hardware.tree import Tree
from broadgauge.messages.hardware import NicFacts

_NET = "/sys/class/net"
COUNTERS = (
    *("rx_dropped", "tx_dropped", "rx_errors", "tx_errors", "rx_crc_errors", "rx_missed_errors"),
    *("rx_fifo_errors", "rx_over_errors", "tx_carrier_errors", "tx_fifo_errors"),
)
_DEVTYPES = ("bridge", "bond", "vlan", "vxlan", "geneve", "macvlan", "ipvlan", "dummy")
_CLOUD = ("ena", "gve", "hv_netvsc", "mana", "vmxnet3", "xen_netfront", "vif")
_TYPE_INFINIBAND = 32
_TYPE_LOOPBACK = 772
"""Source: Linux, include/uapi/linux/if_arp.h."""


def read_nics(tree: Tree) -> tuple[NicFacts, ...]:
    """All but the loopback."""
    routes = read_routes(tree)
    found = (_read_nic(tree, name, routes) for name in tree.names(_NET))
    return tuple(nic for nic in found if nic is not None)


def _read_nic(tree: Tree, name: str, routes: Routes) -> NicFacts | None:
    kind_number = tree.number(_NET, name, "type")
    if kind_number == _TYPE_LOOPBACK or name == "lo" or not tree.exists(_NET, name, "ifindex"):
        return None  # bonding_masters is a file among them
    speed = tree.number(_NET, name, "speed")
    driver = tree.link_name(_NET, name, "device", "driver")
    counters = ((each, tree.number(_NET, name, "statistics", each)) for each in COUNTERS)
    return NicFacts(
        name=name,
        kind=_kind(tree, name, driver, kind_number),
        state=tree.text(_NET, name, "operstate"),
        speed_mbps=speed if speed is not None and speed > 0 else None,
        mtu_bytes=tree.number(_NET, name, "mtu"),
        driver=driver,
        pci=read_device(tree, tree.real(_NET, name, "device")),
        vendor=tree.text(_NET, name, "device", "vendor"),
        addresses=routes.addresses.get(name, ()),
        subnets=routes.subnets.get(name, ()),
        has_default_route=routes.default == name,
        master=tree.link_name(_NET, name, "master"),
        counters={each: count for each, count in counters if count is not None},
        received_packets_count=tree.number(_NET, name, "statistics", "rx_packets"),
        sent_packets_count=tree.number(_NET, name, "statistics", "tx_packets"),
    )


def _kind(tree: Tree, name: str, driver: str | None, kind_number: int | None) -> str:
    if tree.exists(_NET, name, "device", "physfn"):
        return "vf"
    if driver is not None and driver.startswith("virtio"):
        return "virtio"
    if driver in _CLOUD:
        return "cloud"
    if kind_number == _TYPE_INFINIBAND:
        return "ipoib"
    of_device = tree.exists(_NET, name, "device")
    return "physical" if of_device else _kind_without_device(tree, name)


def _kind_without_device(tree: Tree, name: str) -> str:
    lines = tree.lines(_NET, name, "uevent")
    words = [line.removeprefix("DEVTYPE=") for line in lines if line.startswith("DEVTYPE=")]
    if words and words[0] in _DEVTYPES:
        return words[0]
    for folder, kind in (("bridge", "bridge"), ("bonding", "bond"), ("tun_flags", "tun")):
        if tree.exists(_NET, name, folder):
            return kind
    return _kind_of_pair(tree, name)


def _kind_of_pair(tree: Tree, name: str) -> str:
    """A veth says nothing of itself. It is linked to another number than its own, as macvlan and
    ipvlan are, which say so in `uevent` or have the speed of what they are on; a veth says 10000.
    """
    own, other = tree.number(_NET, name, "ifindex"), tree.number(_NET, name, "iflink")
    is_pair = own is not None and other is not None and own != other and other > 0
    if name.startswith(("veth", "cali", "lxc")):
        return "veth"
    if is_pair and tree.number(_NET, name, "speed") == 10000:
        return "veth"
    return next((kind for kind in _DEVTYPES if name.startswith(kind)), "virtual")
