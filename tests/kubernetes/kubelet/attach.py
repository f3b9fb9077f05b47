"""What do the CNI plugins do: host-device, macvlan, ipvlan, bridge, sriov?

In the network thread. The words of failures are those of containernetworking/plugins and of
sriov-cni, which users search for.
"""

import errno
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tests.kubernetes.kubelet.cni import Attached, Attachment, CniError
from tests.kubernetes.kubelet.fabric import (
    FabricBuilder,
    Link,
    Namespace,
    add_address,
    add_bridge,
    set_link,
)
from tests.kubernetes.kubelet.ipam import AddressBook, IpamError, Lease

if TYPE_CHECKING:
    from tests.kubernetes.kubelet.sandbox import Sandbox

_MACVLAN_MODES = ("bridge", "private", "vepa", "passthru")


class Attacher:
    """Gives pods further interfaces, and knows who has which address."""

    def __init__(self, builder: FabricBuilder) -> None:
        self._builder = builder
        self.book = AddressBook()
        self._number = 0

    def attach(self, sandbox: "Sandbox", attachment: Attachment) -> None:
        """Raises CniError in the plugin's words."""
        makers = {
            "host-device": self._host_device,
            "sriov": self._virtual_function,
            "macvlan": self._sub_interface,
            "ipvlan": self._sub_interface,
            "bridge": self._bridge,
        }
        name = attachment.selection.interface
        try:
            pci_address = makers[attachment.kind](sandbox, attachment)
            lease = self._lease(sandbox, attachment)
            self._tune(sandbox.place, attachment)
            _configure(sandbox.place, name, lease)
        except IpamError as error:
            raise CniError(str(error), attachment.config["name"]) from None
        except CniError as error:
            raise CniError(str(error), attachment.config["name"]) from None
        (link,) = sandbox.place.netlink.get_links(sandbox.place.index(name))
        sandbox.attached.append(
            Attached(
                network=attachment.selection.full_name,
                interface=name,
                addresses=lease.addresses,
                mac=str(link.get_attr("IFLA_ADDRESS")),
                mtu_bytes=int(link.get_attr("IFLA_MTU")),
                pci_address=pci_address,
            )
        )

    def _lease(self, sandbox: "Sandbox", attachment: Attachment) -> Lease:
        return self.book.allocate(
            attachment.ipam,
            owner=f"{sandbox.uid}/{attachment.selection.interface}",
            node=sandbox.node.name,
            asked=attachment.selection.addresses,
        )

    def _tune(self, place: Namespace, attachment: Attachment) -> None:
        """Chained plugins: tuning's MTU and address, source routing needs nothing here."""
        name = attachment.selection.interface
        for plugin in attachment.chained:
            if plugin["type"] == "rdma":
                raise CniError("no RDMA device here: the fabrics of this cluster are Ethernet")
            if plugin["type"] == "tuning" and "mtu" in plugin:
                set_link(place, name, mtu=plugin["mtu"])
        if attachment.selection.mac is not None and attachment.kind != "sriov":
            set_link(place, name, address=attachment.selection.mac)

    def _host_device(self, sandbox: "Sandbox", attachment: Attachment) -> str | None:
        config = attachment.config
        if attachment.resource is not None and attachment.resource in sandbox.allocated:
            return self._virtual_function(sandbox, attachment)
        device, address = config.get("device"), config.get("pciBusID")
        if not device and not address:
            raise CniError(
                'specify either "device", "hwaddr", "kernelpath" or "pciBusID"'
            )  # loadConf of host-device.go
        links = sandbox.node.links.values()
        found = [one for one in links if one.device == device or one.pci_address == address]
        if not found or found[0].holder is not None:
            raise CniError("failed to find host device: Link not found")
        self._take(sandbox, found[0], attachment.selection.interface)
        return None

    def _virtual_function(self, sandbox: "Sandbox", attachment: Attachment) -> str:
        free = [
            link
            for link in sandbox.allocated.get(attachment.resource or "", ())
            if link not in sandbox.held
        ]
        if not free:
            raise CniError("SRIOV-CNI failed to load netconf: LoadConf(): VF pci addr is required")
        self._take(sandbox, free[0], attachment.selection.interface)
        return free[0].pci_address

    def _take(self, sandbox: "Sandbox", link: Link, name: str) -> None:
        _refuse_existing(sandbox.place, name)
        self._builder.move(link, sandbox.place, name)
        link.holder = sandbox.uid
        sandbox.held.append(link)

    def _sub_interface(self, sandbox: "Sandbox", attachment: Attachment) -> None:
        """macvlan or ipvlan on a device of the node; the pod network's without a master."""
        config, kind, node = attachment.config, attachment.kind, sandbox.node.place
        master = config.get("master") or "eth0"
        try:
            lower = node.index(master)
        except LookupError:
            raise CniError(f'failed to lookup master "{master}": Link not found') from None
        (link,) = node.netlink.get_links(lower)
        most = int(link.get_attr("IFLA_MTU"))
        mtu = int(config.get("mtu") or most)
        if mtu > most:
            raise CniError(f"invalid MTU {mtu}, must be [0, master MTU({most})]")
        mode = config.get("mode") or ("bridge" if kind == "macvlan" else "l2")
        options: dict[str, Any] = {"kind": kind, "link": lower, "mtu": mtu}
        if kind == "macvlan":
            if mode not in _MACVLAN_MODES:
                raise CniError(f'unknown macvlan mode: "{mode}"')
            options["macvlan_mode"] = mode
        else:
            options["ipvlan_mode"] = {"l2": 0, "l3": 1, "l3s": 2}[mode]
        self._add_moved(sandbox, attachment, options)

    def _add_moved(self, sandbox: "Sandbox", attachment: Attachment, options: Any) -> None:
        """Make an interface on the node and move it into the pod."""
        node, name = sandbox.node.place, attachment.selection.interface
        _refuse_existing(sandbox.place, name)
        self._number += 1
        temporary = f"tmp{self._number}"
        try:
            node.netlink.link("add", ifname=temporary, **options)
        except Exception as error:
            # pyroute2's NetlinkError; importing it costs what the caller has paid already.
            code = getattr(error, "code", None)
            if code not in (errno.EOPNOTSUPP, errno.EBUSY, errno.EINVAL):
                raise
            words = (
                "operation not supported" if code == errno.EOPNOTSUPP else "device or resource busy"
            )
            raise CniError(f"failed to create {attachment.kind}: {words}") from error
        set_link(node, temporary, ifname=name, net_ns_fd=sandbox.place.fd)
        set_link(sandbox.place, name, state="up")

    def _bridge(self, sandbox: "Sandbox", attachment: Attachment) -> None:
        """A veth pair to a bridge of the node, which is made where it isn't there."""
        config, node, name = attachment.config, sandbox.node.place, attachment.selection.interface
        bridge, mtu = config.get("bridge") or "cni0", int(config.get("mtu") or 1500)
        if not node.netlink.link_lookup(ifname=bridge):
            add_bridge(node, bridge, mtu)
        _refuse_existing(sandbox.place, name)
        self._number += 1
        end = f"b{self._number}"
        peer = {"ifname": name, "net_ns_fd": sandbox.place.fd}
        node.netlink.link("add", ifname=end, kind="veth", peer=peer)
        set_link(node, end, mtu=mtu, master=node.index(bridge), state="up")
        set_link(sandbox.place, name, mtu=mtu, state="up")


def allocate(sandbox: "Sandbox", resource: str, number: int) -> None:
    """What a device plugin does: hand free virtual functions of a resource to a pod."""
    links = [link for link in sandbox.node.links.values() if is_function_of(link, resource)]
    if not links:
        return
    taken = {id(link) for link in links if link.holder is not None}
    free = [link for link in links if id(link) not in taken]
    if len(free) < number:
        raise CniError(f"requested number of devices unavailable for {resource}")
    sandbox.allocated[resource] = free[:number]
    for link in free[:number]:
        link.holder = sandbox.uid


def is_function_of(link: Link, resource: str) -> bool:
    return link.fabric.resource == resource and link.device != link.fabric.device


def detach(builder: FabricBuilder, attacher: Attacher, sandbox: "Sandbox") -> None:
    """Give devices and addresses back; what was made for the pod goes with its namespace."""
    for link in sandbox.held:
        builder.move(link, sandbox.node.place, link.device)
        if link.address is not None:
            add_address(link.place, link.current, link.address)
    for link in (*sandbox.held, *(one for some in sandbox.allocated.values() for one in some)):
        link.holder = None
    sandbox.held.clear()
    sandbox.allocated.clear()
    attacher.book.release(sandbox.uid)


def _refuse_existing(place: Namespace, name: str) -> None:
    if place.netlink.link_lookup(ifname=name):
        raise CniError(f'failed to rename link to "{name}": file exists')


def _configure(place: Namespace, name: str, lease: Lease) -> None:
    for address in lease.addresses:
        add_address(place, name, address)
    _add_routes(place, name, lease.routes)


def _add_routes(place: Namespace, name: str, routes: Sequence[tuple[str, str | None]]) -> None:
    for destination, gateway in routes:
        where = {"gateway": gateway} if gateway else {"oif": place.index(name)}
        place.netlink.route("add", dst=destination, **where)
