"""How are the nodes of an emulated cluster built, entered and read?

Everything runs in PID 1 of the cluster, in one thread. A node is a network, a UTS and a mount
namespace, held only by descriptors of PID 1: when it dies, the kernel takes everything away.
Each NIC is a veth pair between the node and a bridge in PID 1's own network namespace.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from broadgauge.agent.cores import hold_to_cores
from broadgauge.agent.emulated.addresses import rank_address
from broadgauge.agent.emulated.cabling import HINT_VETH, NicPlace, add_nic, add_switch
from broadgauge.agent.emulated.errors import building
from broadgauge.agent.emulated.links import Nic, read_counters
from broadgauge.agent.emulated.metering import LinkCounters
from broadgauge.agent.emulated.namespaces import HINT_NAMESPACES
from broadgauge.agent.emulated.node_files import furnish_node, shm_bytes_per_node
from broadgauge.agent.emulated.shaping import LinkPlan
from broadgauge.agent.emulated.syscalls import CloneFlag, sethostname, setns, unshare
from broadgauge.agent.emulated.sysctls import (
    CLUSTER_SETTINGS,
    NODE_SETTINGS,
    apply_settings,
    ask_neighbours_long,
    choose_congestion_control,
    keep_packets_in_order,
    tcp_retransmits,
)
from broadgauge.messages.limits import MAX_NICS_PER_NODE, MAX_NODES


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedNodePlan:
    """What a node is to be called and where it is to run."""

    name: str
    address: str
    """Of the first interface that its ranks use."""
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

    plan: EmulatedNodePlan
    nics: tuple[Nic, ...]
    namespaces: Namespaces
    home: Namespaces

    @property
    def hostname(self) -> str:
        """Its name in its UTS namespace and in every node's /etc/hosts."""
        return self.plan.name

    @property
    def address(self) -> str:
        """Its IPv4 address on its first interface, which its name resolves to."""
        return self.plan.address

    @property
    def interface(self) -> str:
        """Its first interface, as NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME want it."""
        return self.nics[0].interface

    def enter(self) -> None:
        """Move this process into the node, between fork and exec, before it drops privileges."""
        with building(f"enter {self.hostname}", HINT_NAMESPACES):
            self.namespaces.enter()
            if self.plan.cores is not None:
                hold_to_cores(self.plan.cores)

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
class EmulatedCluster:
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
    num_nodes: int,
    cores_per_node: Sequence[tuple[int, ...]] | None = None,
    *,
    has_overlay: bool = False,
) -> tuple[EmulatedNodePlan, ...]:
    """What are the nodes called and which addresses do they have?"""
    if not 1 <= num_nodes <= MAX_NODES:
        raise ValueError(f"num_nodes is {num_nodes}; hint: 1 to {MAX_NODES}")
    if cores_per_node is not None and len(cores_per_node) != num_nodes:
        raise ValueError(
            f"cores_per_node has {len(cores_per_node)} entries for {num_nodes} nodes; "
            "hint: one tuple of cores a node"
        )
    return tuple(
        EmulatedNodePlan(
            name=f"node{number}",
            address=rank_address(number, 0, has_overlay=has_overlay),
            cores=None if cores_per_node is None else cores_per_node[number],
        )
        for number in range(num_nodes)
    )


def build_cluster(
    num_nodes: int,
    link: LinkPlan,
    *,
    nics_per_node: int = 1,
    has_overlay: bool = False,
    cores_per_node: Sequence[tuple[int, ...]] | None = None,
    more_hosts: Mapping[str, str] | None = None,
) -> EmulatedCluster:
    """Build the nodes and their shaped links. Call it in PID 1, in one thread.

    `more_hosts`: names and addresses that nodes know beside each other's.

    On an error the cluster is unfinished: let PID 1 exit, which leaves nothing behind.
    """
    from pyroute2 import IPRoute

    _check_nics_per_node(nics_per_node)
    plans = plan_nodes(num_nodes, cores_per_node, has_overlay=has_overlay)
    home = Namespaces.of_this_process()
    own_cores = tuple(os.sched_getaffinity(0))
    warnings = [*apply_settings(CLUSTER_SETTINGS), *keep_packets_in_order(own_cores)]
    netlink = IPRoute()
    switches = [add_switch(netlink, f"rail{number}") for number in range(nics_per_node)]
    hosts = {plan.name: plan.address for plan in plans} | dict(more_hosts or {})
    shm_bytes = shm_bytes_per_node(num_nodes)
    congestion_control, nodes = "", []
    for number, plan in enumerate(plans):
        with building(f"make the namespaces of {plan.name}", HINT_NAMESPACES), returning_to(home):
            warnings += _enter_new_node(plan, hosts, shm_bytes)
            warnings += keep_packets_in_order(own_cores)
            congestion_control = choose_congestion_control()
            namespaces = Namespaces.of_this_process()
            inside = IPRoute()
        with building(f"bring up lo of {plan.name}", HINT_VETH):
            inside.link("set", index=1, state="up")
        places = _nic_places(
            switches, number, num_nodes, net_fd=namespaces.net, has_overlay=has_overlay
        )
        nics = tuple(add_nic(netlink, inside, place, link) for place in places)
        warnings += _patient_neighbours(plan, nics, namespaces, home)
        nodes.append(Node(plan=plan, nics=nics, namespaces=namespaces, home=home))
    return EmulatedCluster(
        nodes=tuple(nodes),
        congestion_control=congestion_control,
        shm_bytes_per_node=shm_bytes,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _nic_places(
    switches: Sequence[int], node_number: int, num_nodes: int, *, net_fd: int, has_overlay: bool
) -> Iterator[NicPlace]:
    """One NIC of a node at each switch."""
    for number, switch in enumerate(switches):
        yield NicPlace(
            node_number=node_number,
            number=number,
            num_nodes=num_nodes,
            net_fd=net_fd,
            switch_index=switch,
            has_overlay=has_overlay,
        )


def _check_nics_per_node(number: int) -> None:
    if not 1 <= number <= MAX_NICS_PER_NODE:
        raise ValueError(f"nics_per_node is {number}; hint: 1 to {MAX_NICS_PER_NODE}")


def _patient_neighbours(
    plan: EmulatedNodePlan, nics: Sequence[Nic], namespaces: Namespaces, home: Namespaces
) -> tuple[str, ...]:
    """Let a node's NICs ask for their neighbours long; what could not be had, in words."""
    with building(f"set up the NICs of {plan.name}", HINT_NAMESPACES):
        setns(namespaces.net, CloneFlag.NEWNET)
        try:
            return ask_neighbours_long([nic.device for nic in nics])
        finally:
            setns(home.net, CloneFlag.NEWNET)


def _enter_new_node(plan: EmulatedNodePlan, hosts: dict[str, str], shm_bytes: int) -> list[str]:
    """Move this process into new namespaces and furnish them; what could not be had, in words."""
    unshare(CloneFlag.NEWNET | CloneFlag.NEWUTS | CloneFlag.NEWNS)
    sethostname(plan.name)
    return [*furnish_node(hosts, shm_bytes), *apply_settings(NODE_SETTINGS)]


def _open_namespace(kind: str) -> int:
    return os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)


@contextmanager
def returning_to(home: Namespaces) -> Iterator[None]:
    """Come back to `home` whatever happens inside."""
    try:
        yield
    finally:
        home.enter()
