"""What is a network to a pod? `networks[].kubernetes`: what is attached to each pod of a job."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, StringConstraints, model_validator

from broadgauge.specs.base import InOneWord, placed_error
from broadgauge.specs.found import InterfaceName
from broadgauge.specs.ipam import MOST_NICS_NAMED, AnyIpam, as_tuple
from broadgauge.specs.kubernetes_names import LABEL, SUBDOMAIN, NameForm, ResourceName
from broadgauge.specs.network_face import NetworkFace
from broadgauge.specs.transports import RDMA, Transport

POD_INTERFACE = "eth0"
"""What a pod's own interface is called. Source: CRI-O, ocicni's `DefaultInterfaceName`;
containerd, go-cni's default prefix `eth` and the first network's number."""
SecondaryKind = Literal[
    "host-device", "macvlan", "ipvlan", "bridge", "sriov", "existing", "device-plugin"
]
_DEFINED_HERE = ("host-device", "macvlan", "ipvlan", "bridge", "sriov")
"""Whose definitions are rendered."""
_OVER_A_DEVICE = ("macvlan", "ipvlan", "bridge")
_MOVES_A_DEVICE = ("host-device", "sriov")
MODES: dict[str, tuple[str, ...]] = {
    "macvlan": ("bridge", "vepa", "private", "passthru"),
    "ipvlan": ("l2", "l3", "l3s"),
}
"""The first is the default. Source: containernetworking/plugins 1.9, macvlan and ipvlan."""
_WORDS = "lower-case letters, digits, hyphens and dots, like `rdmashared-net` or `other/net`"
DefinitionName = Annotated[str, NameForm(rf"({LABEL}/)?{SUBDOMAIN}", 317, _WORDS)]
"""Of a NetworkAttachmentDefinition: `name`, or `namespace/name` of one that is elsewhere."""


class PodNetwork(NetworkFace):
    """The network that every pod of the cluster has, and nothing beside it."""

    attachment: Literal["pod"]
    """`pod`: the cluster's own network, which needs nothing."""
    transport: Transport | None = "tcp"
    """NCCL is told to send by sockets: adapters of RDMA that a pod may see are not on this network.
    """

    @model_validator(mode="after")
    def _sends_by_sockets(self) -> "PodNetwork":
        if self.transport in RDMA:
            raise placed_error(
                f"the pod network has no RDMA (`{self.transport}`)",
                ("transport",),
                "leave `transport` out; or `attachment: device-plugin`, which gives a pod RDMA "
                "devices without an interface",
            )
        return self

    @property
    def key(self) -> str:
        return "kubernetes"

    @property
    def place(self) -> str:
        return "pod network"

    @property
    def most_nics(self) -> int | None:
        """That a pod can have."""
        return 1

    def with_nics(self, num_nics: int) -> "PodNetwork":
        """A pod has one."""
        assert num_nics == 1, num_nics
        return self

    def why_not_with(self, num_nics: int) -> str | None:
        """What keeps a pod from so many NICs? None: nothing does."""
        return None if num_nics == 1 else f"{num_nics} NICs, and a pod has one on the pod network"


class SecondaryNetwork(NetworkFace):
    """A network beside the pods' own."""

    attachment: SecondaryKind
    """By what a pod gets it: a CNI plugin of that name, whose definition is rendered; `existing`:
    by definitions that are in the cluster; `device-plugin`: RDMA devices alone, no interface."""
    devices: Annotated[tuple[InterfaceName, ...], BeforeValidator(as_tuple)] = Field(
        default=(), max_length=MOST_NICS_NAMED
    )
    """The node's device of each NIC: what `host-device` moves into the pod (none where a device
    plugin's `resources` choose it), over what `macvlan` and `ipvlan` lie, which `bridge`."""
    definitions: Annotated[tuple[DefinitionName, ...], BeforeValidator(as_tuple)] = Field(
        default=(), max_length=MOST_NICS_NAMED
    )
    """Names of the NetworkAttachmentDefinitions, one a NIC; `namespace/name` only of `existing`
    ones. Empty: the experiment's name and the device's."""
    resources: Annotated[tuple[ResourceName, ...], BeforeValidator(as_tuple)] = Field(
        default=(), max_length=MOST_NICS_NAMED
    )
    """Extended resources that a pod asks for: `openshift.io/rail0`, `rdma/rdma_shared_device_eth`.
    Where they are the NICs (`sriov`, `host-device` without `devices`, `device-plugin`) one for each
    NIC, the last of fewer for the rest; else each once."""
    mode: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{1,16}$")] | None = None
    """Of `macvlan` (`bridge`, `vepa`, `private`, `passthru`) or `ipvlan` (`l2`, `l3`, `l3s`)."""
    mtu_bytes: int | None = Field(default=None, ge=576, le=65_000)
    """null: the device's."""
    ipam: AnyIpam | None = None
    """null: none, or what an existing definition says."""
    rdma_namespace: Literal["shared", "exclusive"] | None = None
    """What `rdma system` says on the nodes. `exclusive`: the RDMA device is moved into the pod with
    its interface, by the `rdma` CNI plugin. null: as `shared`, where pods see every adapter."""
    profile: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")] | None = None
    """Of the catalog: the resources, variables and helpers of a cloud's fabric (`efa`, …)."""

    @model_validator(mode="after")
    def _devices_fit(self) -> "SecondaryNetwork":
        if self.attachment in _OVER_A_DEVICE or (
            self.attachment == "host-device" and not self.resources
        ):
            if not self.devices:
                raise placed_error(
                    f"`{self.attachment}` needs `devices`: which of the node's?",
                    ("devices",),
                    "`devices: [ens13]`, one a NIC",
                )
        elif self.devices and self.attachment != "host-device":
            raise placed_error(f"`devices` say nothing to `{self.attachment}`", ("devices",))
        for place, device in enumerate(self.devices):
            if device in self.devices[:place]:
                raise placed_error(
                    f"two NICs over one interface: `{device}` stands twice",
                    ("devices", place),
                    "each NIC's own device",
                )
        return self

    @model_validator(mode="after")
    def _definitions_fit(self) -> "SecondaryNetwork":
        if self.attachment == "existing" and not self.definitions:
            raise placed_error(
                "`existing` needs `definitions`: which ones?",
                ("definitions",),
                "`kubectl get network-attachment-definitions` lists them",
            )
        if self.attachment == "device-plugin" and self.definitions:
            raise placed_error("`device-plugin` attaches no interface", ("definitions",))
        for place, name in enumerate(self.definitions):
            if "/" in name and self.attachment != "existing":
                raise placed_error(
                    f"`{name}` is in another namespace, and would be written there",
                    ("definitions", place),
                    "`attachment: existing` uses what is there",
                )
            if name in self.definitions[:place] and self.attachment != "existing":
                raise placed_error(
                    f"two NICs by one definition: `{name}` stands twice", ("definitions", place)
                )
        return self

    @model_validator(mode="after")
    def _resources_fit(self) -> "SecondaryNetwork":
        if self.attachment in ("sriov", "device-plugin") and not self.resources:
            if self.profile is None:
                raise placed_error(
                    f"`{self.attachment}` needs `resources`: of which name does the device plugin "
                    "offer them?",
                    ("resources",),
                    "`openshift.io/<resourceName of the SriovNetworkNodePolicy>`"
                    if self.attachment == "sriov"
                    else "`rdma/hca_shared_devices_a`",
                )
        elif self.is_rdma and not self.resources and self.profile is None:
            raise placed_error(
                f"`{self.transport}` without `resources`: nothing gives the pods /dev/infiniband",
                ("resources",),
                "the name under which the nodes offer it: `kubectl describe node` lists it below "
                "Allocatable, such as `rdma/rdma_shared_device_eth`",
            )
        if self.attachment == "device-plugin" and self.profile is None and not self.is_rdma:
            raise placed_error(
                "`device-plugin` attaches no interface, so that nothing but RDMA goes by it",
                ("transport",),
                f"`transport: {'`, `'.join(RDMA)}`",
            )
        return self

    @model_validator(mode="after")
    def _plugin_takes_it(self) -> "SecondaryNetwork":
        known = MODES.get(self.attachment, ())
        if self.mode is not None and self.mode not in known:
            hint = f"one of {', '.join(known)}" if known else "`mode` is of macvlan and ipvlan"
            raise placed_error(f"`{self.mode}` is no mode of `{self.attachment}`", ("mode",), hint)
        if self.mtu_bytes is not None and self.attachment not in _DEFINED_HERE:
            raise placed_error(
                f"`mtu_bytes` says nothing to `{self.attachment}`: the MTU is what is there",
                ("mtu_bytes",),
            )
        if self.ipam is not None and self.attachment == "device-plugin":
            raise placed_error("`device-plugin` attaches no interface", ("ipam",))
        kind = None if self.ipam is None else self.ipam.kind
        if self.attachment == "existing" and kind in ("whereabouts", "nv-ipam", "dhcp"):
            raise placed_error(
                "an `existing` definition says itself where addresses come from", ("ipam",)
            )
        if self.attachment in _OVER_A_DEVICE and self.transport == "infiniband":
            raise placed_error(
                f"`{self.attachment}` lies over Ethernet devices, not InfiniBand's",
                ("transport",),
                "`sriov`, `host-device`, `device-plugin`, or `existing` definitions (IPoIB)",
            )
        gives = self.ipam is not None and self.ipam.gives_addresses
        if self.attachment == "ipvlan" and not gives:
            raise placed_error(
                "`ipvlan` needs an `ipam` that gives addresses: its plugin refuses to go without",
                ("ipam",),
                "`ipam: {kind: whereabouts, ranges: 10.20.0.0/24}`",
            )
        if (
            self.ipam is not None
            and self.ipam.kind == "address-map"
            and not (self.devices or self.attachment == "existing")
        ):
            raise placed_error(
                "an address map names NICs by the node's `devices`", ("devices",), "`devices: …`"
            )
        return self

    @model_validator(mode="after")
    def _rdma_moves(self) -> "SecondaryNetwork":
        if self.rdma_namespace != "exclusive":
            return self
        if self.attachment not in _MOVES_A_DEVICE:
            raise placed_error(
                f"`{self.attachment}` moves no adapter into the pod, or its definition is there",
                ("rdma_namespace",),
                "of `host-device` and `sriov`",
            )
        if not self.resources and self.profile is None:
            raise placed_error(
                "the `rdma` CNI plugin needs the PCI address that a device plugin chose",
                ("rdma_namespace",),
                "`resources: …` beside it",
            )
        return self

    @property
    def key(self) -> str:
        return "kubernetes"

    @property
    def place(self) -> str:
        """`host-device of ens13`, `macvlan over ens8f0np0`, `existing rdmashared-net`."""
        named = self.devices or self.definitions or self.resources
        if not named:
            return self.attachment
        joint = {"host-device": " of ", "sriov": " of ", "macvlan": " over ", "ipvlan": " over "}
        words = named[0] if len(named) == 1 else f"{named[0]} to {named[-1]}"
        return f"{self.attachment}{joint.get(self.attachment, ' ')}{words}"

    @property
    def is_chosen_by_resource(self) -> bool:
        """Does a device plugin say which device it is?"""
        return self.attachment in ("sriov", "device-plugin") or (
            self.attachment == "host-device" and not self.devices
        )

    @property
    def most_nics(self) -> int | None:
        """That a pod can have, as far as it names them; None: as many as are asked for."""
        ranges = self.ipam.ranges if self.ipam is not None else ()
        named = [len(names) for names in (self.devices, self.definitions, ranges) if names]
        return min(named, default=None)

    def why_not_with(self, num_nics: int) -> str | None:
        """What keeps a pod from so many NICs? None: nothing does."""
        most = self.most_nics
        if most is None or num_nics <= most:
            return None
        what = next(
            key
            for key, names in (
                ("devices", self.devices),
                ("definitions", self.definitions),
                ("ipam.ranges", () if self.ipam is None else self.ipam.ranges),
            )
            if len(names) == most
        )
        return f"{num_nics} NICs, and `kubernetes.{what}` names {most}"

    def with_nics(self, num_nics: int) -> "SecondaryNetwork":
        """With the first so many of its NICs, and nothing of others."""
        cut: dict[str, Any] = {
            "devices": self.devices[:num_nics],
            "definitions": self.definitions[:num_nics],
        }
        if self.is_chosen_by_resource:
            cut["resources"] = self.resources[:num_nics]
        if self.ipam is not None:
            ranges, pools = self.ipam.ranges[:num_nics], self.ipam.pools[:num_nics]
            cut["ipam"] = self.ipam.model_copy(update={"ranges": ranges, "pools": pools})
        changed: SecondaryNetwork = self.model_copy(update=cut)
        return changed

    def resource_of(self, nic: int) -> str | None:
        """What a device plugin offers for this NIC, from 0; the last of fewer for the rest."""
        return self.resources[min(nic, len(self.resources) - 1)] if self.resources else None


AnyAttachment = Annotated[PodNetwork | SecondaryNetwork, Discriminator("attachment")]
AttachedNetwork = Annotated[AnyAttachment, BeforeValidator(InOneWord("attachment"))]
"""An object, or its `attachment` alone: `kubernetes: pod`."""
