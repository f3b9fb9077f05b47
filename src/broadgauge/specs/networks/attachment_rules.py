"""Which parts of a secondary network of pods fit each other? `networks[].kubernetes`.

What no CNI plugin or device plugin could do is refused where it is written, with what helps.
"""

from typing import TYPE_CHECKING

from broadgauge.specs.base import placed_error
from broadgauge.specs.networks.transports import RDMA

if TYPE_CHECKING:
    from broadgauge.specs.networks.pod_networks import SecondaryNetwork

DEFINED_HERE = ("host-device", "macvlan", "ipvlan", "bridge", "sriov", "ib-sriov")
"""Whose definitions are rendered."""
OVER_A_DEVICE = ("macvlan", "ipvlan", "bridge")
VIRTUAL_FUNCTIONS = ("sriov", "ib-sriov")
BY_A_PLUGIN = (*VIRTUAL_FUNCTIONS, "device-plugin")
"""Whose device a plugin of the node chooses."""
_ETHERNET_ONLY = (*OVER_A_DEVICE, "sriov")
MODES: dict[str, tuple[str, ...]] = {
    "macvlan": ("bridge", "vepa", "private", "passthru"),
    "ipvlan": ("l2", "l3", "l3s"),
}
"""The first is the default. Source: containernetworking/plugins 1.9, macvlan and ipvlan."""


def check_attachment(face: "SecondaryNetwork") -> None:
    """Raises an error of pydantic's with the place."""
    _devices_fit(face)
    _definitions_fit(face)
    _resources_fit(face)
    _plugin_takes_it(face)
    _has_an_address_where_it_needs_one(face)
    _roce_has_ipv4(face)
    _rdma_moves(face)


def _devices_fit(face: "SecondaryNetwork") -> None:
    if face.attachment in OVER_A_DEVICE or (
        face.attachment == "host-device" and not face.resources
    ):
        if not face.devices:
            raise placed_error(
                f"`{face.attachment}` needs `devices`: which of the node's?",
                ("devices",),
                "`devices: [ens13]`, one a NIC",
            )
    elif face.devices and face.attachment != "host-device" and not face.is_mapped_existing:
        raise placed_error(
            f"`devices` say nothing to `{face.attachment}`",
            ("devices",),
            "of `host-device`, `macvlan`, `ipvlan` and `bridge`",
        )
    for place, device in enumerate(face.devices):
        if device in face.devices[:place]:
            raise placed_error(
                f"two NICs over one interface: `{device}` stands twice",
                ("devices", place),
                "each NIC's own device",
            )


def _definitions_fit(face: "SecondaryNetwork") -> None:
    if face.attachment == "existing" and not face.definitions:
        raise placed_error(
            "`existing` needs `definitions`: which ones?",
            ("definitions",),
            "`kubectl get network-attachment-definitions` lists them",
        )
    if face.attachment == "device-plugin" and face.definitions:
        raise placed_error("`device-plugin` attaches no interface", ("definitions",))
    for place, name in enumerate(face.definitions):
        if "/" in name and face.attachment != "existing":
            raise placed_error(
                f"`{name}` is in another namespace, and would be written there",
                ("definitions", place),
                "`attachment: existing` uses what is there",
            )
        if name in face.definitions[:place] and face.attachment != "existing":
            raise placed_error(
                f"two NICs by one definition: `{name}` stands twice", ("definitions", place)
            )


def _resources_fit(face: "SecondaryNetwork") -> None:
    if face.attachment in BY_A_PLUGIN and not face.resources:
        if face.profile is None:
            raise placed_error(
                f"`{face.attachment}` needs `resources`: of which name does the device plugin "
                "offer them?",
                ("resources",),
                "`openshift.io/<resourceName of the SriovNetworkNodePolicy>`"
                if face.attachment in VIRTUAL_FUNCTIONS
                else "`rdma/hca_shared_devices_a`",
            )
    elif face.is_rdma and not face.resources and face.profile is None:
        raise placed_error(
            f"`{face.transport}` without `resources`: nothing gives the pods /dev/infiniband",
            ("resources",),
            "the name under which the nodes offer it: `kubectl describe node` lists it below "
            "Allocatable, such as `rdma/rdma_shared_device_eth`",
        )
    if face.attachment == "device-plugin" and face.profile is None and not face.is_rdma:
        raise placed_error(
            "`device-plugin` attaches no interface, so that nothing but RDMA goes by it",
            ("transport",),
            f"`transport: {'`, `'.join(RDMA)}`",
        )


def _plugin_takes_it(face: "SecondaryNetwork") -> None:
    known = MODES.get(face.attachment, ())
    if face.mode is not None and face.mode not in known:
        hint = f"one of {', '.join(known)}" if known else "`mode` is of macvlan and ipvlan"
        raise placed_error(f"`{face.mode}` is no mode of `{face.attachment}`", ("mode",), hint)
    if face.mtu_bytes is not None and face.attachment not in DEFINED_HERE:
        raise placed_error(
            f"`mtu_bytes` says nothing to `{face.attachment}`: the MTU is what is there",
            ("mtu_bytes",),
        )
    if face.ipam is not None and face.attachment == "device-plugin":
        raise placed_error("`device-plugin` attaches no interface", ("ipam",))
    kind = None if face.ipam is None else face.ipam.kind
    if face.attachment == "existing" and kind in ("whereabouts", "nv-ipam", "dhcp"):
        raise placed_error(
            "an `existing` definition says itself where addresses come from", ("ipam",)
        )
    if face.attachment in _ETHERNET_ONLY and face.transport == "infiniband":
        raise placed_error(
            f"`{face.attachment}` is of Ethernet devices, not InfiniBand's",
            ("transport",),
            "`ib-sriov`, `host-device`, `device-plugin`, or `existing` definitions (IPoIB)",
        )
    if face.attachment == "ib-sriov" and face.transport == "roce":
        raise placed_error(
            "`ib-sriov` is of InfiniBand's devices", ("transport",), "`attachment: sriov`"
        )
    gives = face.ipam is not None and face.ipam.gives_addresses
    if face.attachment == "ipvlan" and not gives:
        raise placed_error(
            "`ipvlan` needs an `ipam` that gives addresses: its plugin refuses to go without",
            ("ipam",),
            "`ipam: {kind: whereabouts, ranges: 10.20.0.0/24}`",
        )
    if kind == "address-map" and not face.devices:
        raise placed_error(
            "an address map names NICs by the node's `devices`",
            ("devices",),
            "`devices: …`, one a NIC",
        )


def _has_an_address_where_it_needs_one(face: "SecondaryNetwork") -> None:
    if face.transport is None and face.profile is not None:  # it says what: catalog/profiled.py
        return
    what = missing_address(face)
    if what is not None:
        raise placed_error(
            what, ("ipam",), "`ipam: {kind: whereabouts, ranges: 10.20.0.0/24}`, an address-map, …"
        )


def missing_address(face: "SecondaryNetwork") -> str | None:
    """Why it can't do without one; None: it has one, or can. Sockets send from an address, and an
    adapter that is no device of the pod is told by it."""
    if face.attachment not in DEFINED_HERE or face.gives_address:
        return None
    if not face.is_rdma:
        return "TCP needs an address, and nothing gives one"
    if face.transport == "roce" and face.attachment in OVER_A_DEVICE:
        return (
            f"RoCE over a `{face.attachment}` needs an address, by which its adapter is told, and "
            "nothing gives one"
        )
    return None


def _roce_has_ipv4(face: "SecondaryNetwork") -> None:
    for place, text in enumerate(() if face.ipam is None else face.ipam.ranges):
        if ":" in text and face.transport == "roce":
            raise placed_error(
                f"RoCE over {text}: adapters are told by addresses of IPv4",
                ("ipam", "ranges", place),
                "a range of IPv4",
            )


def _rdma_moves(face: "SecondaryNetwork") -> None:
    if face.rdma_namespace != "exclusive":
        return
    if face.attachment not in ("host-device", *VIRTUAL_FUNCTIONS):
        raise placed_error(
            f"`{face.attachment}` moves no adapter into the pod, or its definition is there",
            ("rdma_namespace",),
            "of `host-device`, `sriov` and `ib-sriov`",
        )
    if not face.is_chosen_by_resource or not (face.resources or face.profile):
        raise placed_error(
            "the `rdma` CNI plugin needs the PCI address that a device plugin chose",
            ("rdma_namespace",),
            "`resources: …` in the place of `devices`",
        )
