"""How are the nodes of an emulated cluster built, entered and read?

Everything runs in PID 1 of the cluster, in one thread. A node is a network, a UTS and a mount
namespace, held only by descriptors of PID 1: when it dies, the kernel takes everything away.
Each NIC is a veth pair between the node and a bridge in PID 1's own network namespace.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broadgauge.platforms.emulated.errors import building
from broadgauge.platforms.emulated.links import Nic, ShapedInterface, read_counters
from broadgauge.platforms.emulated.namespaces import HINT_NAMESPACES
from broadgauge.platforms.emulated.node_files import furnish_node, shm_bytes_per_node
from broadgauge.platforms.emulated.shaping import LinkCounters, LinkPlan
from broadgauge.platforms.emulated.syscalls import CloneFlag, sethostname, setns, unshare
from broadgauge.platforms.emulated.sysctls import (
    CLUSTER_SETTINGS,
    NODE_SETTINGS,
    apply_settings,
    choose_congestion_control,
    tcp_retransmits,
)

MAX_NODES = 1000
MAX_NICS_PER_NODE = 64
_FIRST_SUBNET = 80

HINT_VETH = (
    "veth and bridge must be in the kernel: `modprobe veth bridge` as root (Fedora, RHEL: package "
    "kernel-modules-core); on Ubuntu 23.10 and later an ordinary user also needs "
    "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """What a node is to be called and where it is to run."""

    name: str
    address: str
    """Of `eth0`; the address of `eth<k>` differs in its second number."""
    cores: tuple[int, ...] | None
    """Cores its ranks are held to; None leaves them free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespaces:
    """Descriptors of one network, one UTS and one mount namespace."""

    net: int
    uts: int
    mnt: int

    @classmethod
    def of_this_process(cls) -> "Namespaces":
        """Hold open where this process is now."""
        return cls(
            net=_open_namespace("net"), uts=_open_namespace("uts"), mnt=_open_namespace("mnt")
        )

    def enter(self) -> None:
        """Move this process, of one thread, in; its working directory keeps its path."""
        directory = Path.cwd()
        setns(self.net, CloneFlag.NEWNET)
        setns(self.uts, CloneFlag.NEWUTS)
        setns(self.mnt, CloneFlag.NEWNS)
        os.chdir(directory)

    def close(self) -> None:
        """Let go; namespaces that nobody is in vanish."""
        for fd in (self.net, self.uts, self.mnt):
            os.close(fd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One emulated machine."""

    plan: NodePlan
    nics: tuple[Nic, ...]
    namespaces: Namespaces
    home: Namespaces

    @property
    def hostname(self) -> str:
        """Its name in its UTS namespace and in every node's /etc/hosts."""
        return self.plan.name

    @property
    def address(self) -> str:
        """Its IPv4 address on the first NIC, which its name resolves to."""
        return self.plan.address

    @property
    def interface(self) -> str:
        """Its first NIC, as NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME want it."""
        return self.nics[0].interface

    def enter(self) -> None:
        """Move this process into the node, between fork and exec, before it drops privileges."""
        with building(f"enter {self.hostname}", HINT_NAMESPACES):
            self.namespaces.enter()
            if self.plan.cores is not None:
                os.sched_setaffinity(0, self.plan.cores)

    def shape(self, link: LinkPlan) -> None:
        """Give this node's living links another rate and MTU, in place."""
        for nic in self.nics:
            nic.shape(link)

    def read_counters(self) -> LinkCounters:
        """What has crossed this node's links, summed over its NICs?"""
        with building(f"read TCP's counters in {self.hostname}", HINT_NAMESPACES):
            setns(self.namespaces.net, CloneFlag.NEWNET)
            try:
                retransmits = tcp_retransmits()
            finally:
                setns(self.home.net, CloneFlag.NEWNET)
        return read_counters(self.nics, retransmits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The emulated cluster as PID 1 holds it."""

    nodes: tuple[Node, ...]
    congestion_control: str
    """TCP's, in every node: cubic, or the host's where the kernel refuses cubic."""
    shm_bytes_per_node: int
    warnings: tuple[str, ...]
    """What this kernel did not grant and the cluster does without, in words."""

    def shape(self, link: LinkPlan) -> None:
        """Give every link another rate and MTU, in place."""
        for node in self.nodes:
            node.shape(link)


def plan_nodes(
    num_nodes: int, cores_per_node: Sequence[tuple[int, ...]] | None = None
) -> tuple[NodePlan, ...]:
    """What are the nodes called and which addresses do they have?"""
    if not 1 <= num_nodes <= MAX_NODES:
        raise ValueError(f"num_nodes is {num_nodes}; hint: 1 to {MAX_NODES}")
    if cores_per_node is not None and len(cores_per_node) != num_nodes:
        raise ValueError(
            f"cores_per_node has {len(cores_per_node)} entries for {num_nodes} nodes; "
            "hint: one tuple of cores a node"
        )
    return tuple(
        NodePlan(
            name=f"node{number}",
            address=nic_address(number, 0),
            cores=None if cores_per_node is None else cores_per_node[number],
        )
        for number in range(num_nodes)
    )


def nic_address(node_number: int, nic_number: int) -> str:
    """Which IPv4 address has this NIC? Each NIC number is a /16: 10.80.0.1, 10.81.0.1."""
    high, low = divmod(node_number, 250)
    return f"10.{_FIRST_SUBNET + nic_number}.{high}.{low + 1}"


def build_cluster(
    num_nodes: int,
    link: LinkPlan,
    *,
    nics_per_node: int = 1,
    cores_per_node: Sequence[tuple[int, ...]] | None = None,
) -> Cluster:
    """Build the nodes and their shaped links. Call it in PID 1, in one thread.

    On an error the cluster is unfinished: let PID 1 exit, which leaves nothing behind.
    """
    if not 1 <= nics_per_node <= MAX_NICS_PER_NODE:
        raise ValueError(f"nics_per_node is {nics_per_node}; hint: 1 to {MAX_NICS_PER_NODE}")
    plans = plan_nodes(num_nodes, cores_per_node)
    from pyroute2 import IPRoute

    home = Namespaces.of_this_process()
    warnings = [*apply_settings(CLUSTER_SETTINGS)]
    netlink = IPRoute()
    bridges = [_add_bridge(netlink, number) for number in range(nics_per_node)]
    hosts = {plan.name: plan.address for plan in plans}
    shm_bytes = shm_bytes_per_node(num_nodes)
    congestion_control = ""
    nodes = []
    for number, plan in enumerate(plans):
        with building(f"make the namespaces of {plan.name}", HINT_NAMESPACES), _returning_to(home):
            unshare(CloneFlag.NEWNET | CloneFlag.NEWUTS | CloneFlag.NEWNS)
            sethostname(plan.name)
            warnings += furnish_node(hosts, shm_bytes)
            warnings += apply_settings(NODE_SETTINGS)
            congestion_control = choose_congestion_control()
            namespaces = Namespaces.of_this_process()
            inside = IPRoute()
        with building(f"bring up lo of {plan.name}", HINT_VETH):
            inside.link("set", index=1, state="up")
        nics = tuple(
            _add_nic(netlink, inside, bridge, (number, nic_number, namespaces.net), link)
            for nic_number, bridge in enumerate(bridges)
        )
        nodes.append(Node(plan=plan, nics=nics, namespaces=namespaces, home=home))
    return Cluster(
        nodes=tuple(nodes),
        congestion_control=congestion_control,
        shm_bytes_per_node=shm_bytes,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _open_namespace(kind: str) -> int:
    return os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)


@contextmanager
def _returning_to(home: Namespaces) -> Iterator[None]:
    """Come back to `home` whatever happens inside."""
    try:
        yield
    finally:
        home.enter()


def _add_bridge(netlink: Any, number: int) -> int:
    """Make the switch that joins all NICs of this number; gives its interface index."""
    name = f"rail{number}"
    with building(f"make the bridge {name}", HINT_VETH):
        netlink.link(
            "add",
            ifname=name,
            kind="bridge",
            br_stp_state=0,
            br_forward_delay=0,
            br_mcast_snooping=0,
        )
        index: int = netlink.link_lookup(ifname=name)[0]
        netlink.link("set", index=index, state="up")
    return index


def _add_nic(
    netlink: Any, inside: Any, bridge: int, place: tuple[int, int, int], link: LinkPlan
) -> Nic:
    """Join node and bridge by a veth pair, shaped, addressed and up.

    `place` is the node's number, the NIC's number and the node's network namespace.
    """
    node_number, nic_number, net_fd = place
    interface, port = f"eth{nic_number}", f"n{node_number}e{nic_number}"
    address = nic_address(node_number, nic_number)
    with building(f"make the veth pair {port}", HINT_VETH):
        netlink.link(
            "add", ifname=port, kind="veth", peer={"ifname": interface, "net_ns_fd": net_fd}
        )
        port_index: int = netlink.link_lookup(ifname=port)[0]
        inside_index: int = inside.link_lookup(ifname=interface)[0]
    nic = Nic(
        interface=interface,
        address=address,
        egress=ShapedInterface(netlink=inside, index=inside_index, is_port_of_switch=False),
        ingress=ShapedInterface(netlink=netlink, index=port_index, is_port_of_switch=True),
    )
    nic.shape(link)
    with building(f"bring up {interface} at {address}", HINT_VETH):
        netlink.link("set", index=port_index, master=bridge, state="up")
        inside.addr("add", index=inside_index, address=address, prefixlen=16)
        inside.link("set", index=inside_index, state="up")
    return nic
