"""What is a network to a pod? `networks[].kubernetes`: what is attached to each pod of a job."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, StringConstraints, model_validator

from broadgauge.messages.vocabulary import Transport
from broadgauge.specs.base import InOneWord, placed_error
from broadgauge.specs.kubernetes.names import LABEL, SUBDOMAIN, NameForm, ResourceName
from broadgauge.specs.networks.attachment_rules import (
    BY_A_PLUGIN,
    check_attachment,
)
from broadgauge.specs.networks.face import NetworkFace
from broadgauge.specs.networks.ipam import MOST_NICS_NAMED, AnyIpam, as_tuple
from broadgauge.specs.networks.transports import RDMA

POD_INTERFACE = "eth0"
"""What a pod's own interface is called. Source: CRI-O, ocicni's `DefaultInterfaceName`;
containerd, go-cni's default prefix `eth` and the first network's number."""
SecondaryKind = Literal[
    "host-device",
    "macvlan",
    "ipvlan",
    "bridge",
    "sriov",
    "ib-sriov",
    "existing",
    "device-plugin",
]
_WORDS = "lower-case letters, digits, hyphens and dots, like `rdmashared-net` or `other/net`"
DefinitionName = Annotated[str, NameForm(rf"({LABEL}/)?{SUBDOMAIN}", 317, _WORDS)]
"""Of a NetworkAttachmentDefinition: `name`, or `namespace/name` of one that is elsewhere."""
_WORDS = "the node's name of a NIC is like `ens13` or `enp163s0.100`"
DeviceName = Annotated[str, NameForm(r"(?!lo$)[A-Za-z0-9][A-Za-z0-9_.-]*", 15, _WORDS)]


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
    devices: Annotated[tuple[DeviceName, ...], BeforeValidator(as_tuple)] = Field(
        default=(), max_length=MOST_NICS_NAMED
    )
    """The node's device of each NIC: what `host-device` moves into the pod (none where a device
    plugin's `resources` choose it), over what `macvlan` and `ipvlan` lie, which `bridge`. Of
    `existing` ones where an address map names them."""
    definitions: Annotated[tuple[DefinitionName, ...], BeforeValidator(as_tuple)] = Field(
        default=(), max_length=MOST_NICS_NAMED
    )
    """Names of the NetworkAttachmentDefinitions, one a NIC; `namespace/name` only of `existing`
    ones. Empty: the experiment's name and the device's."""
    resources: Annotated[tuple[ResourceName, ...], BeforeValidator(as_tuple)] = Field(
        default=(), max_length=MOST_NICS_NAMED
    )
    """Extended resources that a pod asks for, one for each NIC, the last of fewer for the rest:
    `openshift.io/rail0`, `rdma/rdma_shared_device_eth`."""
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
    def _parts_fit(self) -> "SecondaryNetwork":
        check_attachment(self)
        return self

    @property
    def key(self) -> str:
        return "kubernetes"

    @property
    def place(self) -> str:
        """`host-device of ens13`, `existing rdmashared-net`, `sriov vf-net`, and of both a name
        and devices `host-device port-01 of ens13`: the definition that the experiment names, then
        the node's device; where it names neither, the device plugin's resource."""
        by = self.devices or (() if self.definitions else self.resources)
        words: list[str] = [self.attachment]
        words += [_first_to_last(self.definitions)] if self.definitions else []
        words += [*_JOINTS.get(self.attachment, ("of",)), _first_to_last(by)] if by else []
        return " ".join(words)

    @property
    def is_chosen_by_resource(self) -> bool:
        """Does a device plugin say which device it is?"""
        return self.attachment in BY_A_PLUGIN or (
            self.attachment == "host-device" and not self.devices
        )

    @property
    def has_address(self) -> bool:
        """Has its interface one in a pod? What an `existing` definition says is not known, and
        usually it does."""
        return self.attachment == "existing" or self.gives_address

    @property
    def gives_address(self) -> bool:
        """Does the experiment say from where its interfaces have one?"""
        return self.ipam is not None and self.ipam.kind != "none"

    @property
    def is_mapped_existing(self) -> bool:
        """Are its NICs those of an address map, and its definitions there?"""
        is_mapped = self.ipam is not None and self.ipam.kind == "address-map"
        return self.attachment == "existing" and is_mapped

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
            "resources": self.resources[:num_nics],
        }
        if self.ipam is not None:
            ranges, pools = self.ipam.ranges[:num_nics], self.ipam.pools[:num_nics]
            cut["ipam"] = self.ipam.model_copy(update={"ranges": ranges, "pools": pools})
        changed: SecondaryNetwork = self.model_copy(update=cut)
        return changed

    def resource_of(self, nic: int) -> str | None:
        """What a pod asks for, for this NIC, from 0; the last of fewer for the rest."""
        return self.resources[min(nic, len(self.resources) - 1)] if self.resources else None


_JOINTS = {"macvlan": ("over",), "ipvlan": ("over",), "bridge": (), "device-plugin": ()}
"""Between an attachment and the device below it."""


def _first_to_last(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


AnyAttachment = Annotated[PodNetwork | SecondaryNetwork, Discriminator("attachment")]
AttachedNetwork = Annotated[AnyAttachment, BeforeValidator(InOneWord("attachment"))]
"""An object, or its `attachment` alone: `kubernetes: pod`."""
