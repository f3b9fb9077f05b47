"""What is a pod's network: its namespace, eth0 on the pod network, and what Multus would attach?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.kubernetes.kubelet.attach import Attacher, allocate, detach
from tests.kubernetes.kubelet.cni import Attached, Attachment
from tests.kubernetes.kubelet.fabric import (
    DNS_ADDRESS,
    POD_SUBNET,
    FabricBuilder,
    Link,
    Namespace,
    NodeNetwork,
    link_plan,
    set_link,
)

from broadgauge.agent.emulated.shaping import sending_plan
from broadgauge.agent.emulated.syscalls import CloneFlag, setns
from broadgauge.agent.emulated.traffic_control import set_sizes

POD_NETWORK_NAME = "process-kubelet"


@dataclass(kw_only=True)
class Sandbox:
    """A pod's network, as long as the pod lives."""

    uid: str
    node: NodeNetwork
    place: Namespace
    ip: str
    host_number: int | None
    """Of its address on the node; None for a pod on the host's network."""
    attached: list[Attached] = field(default_factory=list)
    held: list[Link] = field(default_factory=list)
    """Devices of the node that are in the pod."""
    allocated: dict[str, list[Link]] = field(default_factory=dict)
    """Virtual functions that a device plugin gave it, by resource."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What network a pod asks for."""

    uid: str
    node: tuple[str, int]
    """Name and number."""
    attachments: Sequence[Attachment] = ()
    resources: Mapping[str, int] = field(default_factory=dict)
    is_host: bool = False
    """hostNetwork: the node's own namespace."""


class Sandboxes:
    """Makes and removes the networks of pods; all work is done in the network thread."""

    def __init__(self, builder: FabricBuilder, attacher: Attacher) -> None:
        self._builder, self._attacher = builder, attacher
        self.nodes: dict[str, NodeNetwork] = {}
        self.living: dict[str, Sandbox] = {}

    def create(self, wanted: "Wanted") -> Sandbox:
        """Raises CniError, and leaves nothing, where an attachment can't be made."""
        return self._builder.call(self._create, wanted)

    def remove(self, sandbox: Sandbox) -> None:
        self._builder.call(self._remove, sandbox)

    def node(self, name: str, number: int) -> NodeNetwork:
        """Its network, which is built when the first pod or fault needs it."""
        if name not in self.nodes:
            self.nodes[name] = self._builder.add_node(name, number)
        return self.nodes[name]

    def unsent_bytes(self, sandbox: Sandbox) -> int:
        """What TCP of a pod still has to send, also of processes that have ended."""
        if sandbox.host_number is None:
            return 0
        return self._builder.call(_unsent_bytes, sandbox.place, self._builder.home)

    def _create(self, wanted: "Wanted") -> Sandbox:
        node = self.node(*wanted.node)
        uid = wanted.uid
        if wanted.is_host:
            address = str(POD_SUBNET.network_address + (node.number << 8) + 1)
            sandbox = Sandbox(uid=uid, node=node, place=node.place, ip=address, host_number=None)
        else:
            sandbox = self._create_own(uid, node)
        self.living[uid] = sandbox
        try:
            for resource, number in wanted.resources.items():
                allocate(sandbox, resource, number)
            for attachment in wanted.attachments:
                self._attacher.attach(sandbox, attachment)
        except BaseException:
            self._remove(sandbox)
            raise
        return sandbox

    def _create_own(self, uid: str, node: NodeNetwork) -> Sandbox:
        place = self._builder.new_namespace()
        host_number = node.free_hosts.pop()
        node.num_pods += 1
        end = f"p{host_number}"
        peer = {"ifname": "eth0", "net_ns_fd": place.fd}
        node.place.netlink.link("add", ifname=end, kind="veth", peer=peer)
        ip = str(POD_SUBNET.network_address + (node.number << 8) + host_number)
        index = place.index("eth0")
        self._fit(node, end, place)
        set_link(node.place, end, master=node.place.index("eth0"), state="up")
        place.netlink.addr("add", index=index, address=ip, prefixlen=POD_SUBNET.prefixlen)
        place.netlink.link("set", index=index, state="up")
        place.netlink.route("add", dst="default", gateway=DNS_ADDRESS)
        (link,) = place.netlink.get_links(index)
        first = Attached(
            network=POD_NETWORK_NAME,
            interface="eth0",
            addresses=(ip,),
            mac=str(link.get_attr("IFLA_ADDRESS")),
            mtu_bytes=node.uplink.fabric.mtu_bytes,
            is_default=True,
        )
        return Sandbox(
            uid=uid, node=node, place=place, ip=ip, host_number=host_number, attached=[first]
        )

    def _fit(self, node: NodeNetwork, end: str, place: Namespace) -> None:
        """What a pod's TCP hands over at once is what the node's shaped uplink takes at once."""
        plan = sending_plan(link_plan(node.uplink.fabric), {}, 1)
        offload = (plan.gso_max_bytes, plan.gso_max_segments)
        own = (offload[0], 1) if node.uplink.fabric.counts_each_packet else offload
        set_sizes(place.netlink, place.index("eth0"), plan.mtu, own)
        set_sizes(node.place.netlink, node.place.index(end), plan.mtu, offload)
        set_sizes(node.place.netlink, node.place.index("eth0"), plan.mtu, offload)

    def reshape(self, node: NodeNetwork) -> None:
        """After another rate or MTU of the pod network. In the network thread."""
        for sandbox in self.living.values():
            if sandbox.node is node and sandbox.host_number is not None:
                self._fit(node, f"p{sandbox.host_number}", sandbox.place)

    def _remove(self, sandbox: Sandbox) -> None:
        self.living.pop(sandbox.uid, None)
        detach(self._builder, self._attacher, sandbox)
        if sandbox.host_number is None:
            return
        node = sandbox.node
        index = node.place.index(f"p{sandbox.host_number}")
        node.place.netlink.link("del", index=index)
        node.free_hosts.insert(0, sandbox.host_number)
        node.num_pods -= 1
        sandbox.place.close()


def _unsent_bytes(place: Namespace, home: Namespace) -> int:
    """The column tx_queue of /proc/net/tcp, in hexadecimal."""
    setns(place.fd, CloneFlag.NEWNET)
    try:
        lines = Path("/proc/thread-self/net/tcp").read_text().splitlines()[1:]
    finally:
        setns(home.fd, CloneFlag.NEWNET)
    return sum(int(line.split()[4].partition(":")[0], 16) for line in lines if not _listens(line))


def _listens(line: str) -> bool:
    return line.split()[3] == "0A"
