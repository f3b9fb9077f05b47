"""How does a pod reach the others over one network? What Kubernetes attaches to it, and from where
its addresses come."""

import ipaddress
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from broadgauge.specs.base import Spec, placed_error
from broadgauge.specs.found import Found, InterfaceName
from broadgauge.specs.kubernetes_names import ObjectName, ResourceName
from broadgauge.specs.transports import RDMA, Transport
from broadgauge.specs.units import RateGbps

AttachmentKind = Literal["pod", "host-device", "macvlan", "ipvlan", "bridge", "sriov", "existing"]
"""`pod`: the network that every pod has. `existing`: definitions that are in the cluster already.
The others are written by `broadgauge render`, each a CNI plugin of that name."""
Twin = Literal["tcp", "without-gpudirect"]
MADE_BY_US = frozenset({"host-device", "macvlan", "ipvlan", "bridge", "sriov"})
HOST_RDMA = frozenset({"host-device", "sriov"})
"""What moves a device of the node into the pod, whose RDMA device can follow it."""
MORE_NICS = "name one for each NIC, or take fewer NICs"
_EXAMPLES = {
    "ranges": "ranges: 10.20.0.0/24",
    "pools": "pools: rail-0",
    "map": "map: nodename_ip_mapping.yaml",
}
IPAM_KINDS = ("whereabouts", "nv-ipam", "host-local", "dhcp", "address-map", "none")


def _as_list(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _check_subnet(text: str) -> str:
    try:
        ipaddress.ip_network(text)
    except ValueError as error:
        raise ValueError(f"no subnet: {error}") from error
    if "/" not in text:
        raise ValueError(f"no subnet: how many addresses? `{text}/24`")
    return text


Subnet = Annotated[str, AfterValidator(_check_subnet)]


def _check_address(text: str) -> str:
    try:
        ipaddress.ip_address(text)
    except ValueError as error:
        raise ValueError(f"no address: {error}") from error
    return text


Address = Annotated[str, AfterValidator(_check_address)]
DefinitionName = Annotated[
    str,
    StringConstraints(
        pattern=r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/)?[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$"
    ),
]
"""`name`, or `namespace/name` of one that is elsewhere."""


class Ipam(Spec):
    """Where a NIC's address comes from."""

    kind: Literal["whereabouts", "nv-ipam", "host-local", "dhcp", "address-map", "none"]
    """`address-map`: each node's NICs keep the address that the fabric gave to that node, as a
    VPC's vNICs must: an init container sets it. `none`: the attachment brings its own."""
    ranges: Annotated[tuple[Subnet, ...], BeforeValidator(_as_list)] = Field(
        default=(), max_length=64
    )
    """Subnets, one a NIC (or one for all), of `whereabouts` and `host-local`."""
    gateway: Address | None = None
    """That a definition tells its plugin; null: none, as rails that are not routed have."""
    exclude: tuple[Subnet, ...] = Field(default=(), max_length=64)
    """Addresses that `whereabouts` gives to nobody."""
    pools: Annotated[tuple[ObjectName, ...], BeforeValidator(_as_list)] = Field(
        default=(), max_length=64
    )
    """Names of the pools of `nv-ipam`, one a NIC, or one for all."""
    map: str | None = Field(default=None, min_length=1)
    """Of `address-map`: a file of lines `host:device:interface:ip`, relative to the experiment."""

    @model_validator(mode="after")
    def _parts_fit(self) -> "Ipam":
        needs = {
            "whereabouts": "ranges",
            "host-local": "ranges",
            "nv-ipam": "pools",
            "address-map": "map",
        }
        needed = needs.get(self.kind)
        if needed is not None and not getattr(self, needed):
            raise placed_error(
                f"`{self.kind}` needs `{needed}` beside it",
                (needed,),
                f"`ipam: {{kind: {self.kind}, {_EXAMPLES[needed]}}}`",
            )
        for key in {"ranges", "pools", "map"} - {needed}:
            if getattr(self, key):
                raise placed_error(f"`{key}` says nothing to `{self.kind}`", (key,))
        if self.kind != "whereabouts" and self.exclude:
            raise placed_error("`exclude` is of `whereabouts`", ("exclude",))
        return self


def _of_nic(values: tuple[str, ...], nic: int) -> str | None:
    """One a NIC; the last of fewer counts for the rest."""
    return values[min(nic, len(values) - 1)] if values else None


class Attached(Spec):
    """The face of a network on Kubernetes: `networks[].kubernetes`. `pod` alone is the pod
    network."""

    attachment: AttachmentKind = "pod"
    """By what the pod gets it."""
    devices: Annotated[tuple[InterfaceName, ...], BeforeValidator(_as_list)] = Field(
        default=(), max_length=64
    )
    """The node's device of each NIC: what `host-device` moves into the pod (none where a device
    plugin's `resources` choose it), over what `macvlan` and `ipvlan` lie, which `bridge`."""
    definitions: Annotated[tuple[DefinitionName, ...], BeforeValidator(_as_list)] = Field(
        default=(), max_length=64
    )
    """Names of the NetworkAttachmentDefinitions, one a NIC; `namespace/name` only of `existing`
    ones. Empty: `<job>-<device>`, each once however many networks use it."""
    resources: Annotated[tuple[ResourceName, ...], BeforeValidator(_as_list)] = Field(
        default=(), max_length=64
    )
    """Extended resources, one for each NIC that a pod has (the last of fewer counts for the rest):
    `rdma/rdma_shared_device_eth`, `openshift.io/sriov_400g`, `vpc.amazonaws.com/efa`."""
    mode: str | None = Field(default=None, pattern=r"^[a-z0-9-]{1,16}$")
    """Of macvlan (`bridge`, `vepa`, `private`, `passthru`) or ipvlan (`l2`, `l3`, `l3s`)."""
    mtu_bytes: int | None = Field(default=None, ge=576, le=65_000)
    """null: the device's."""
    ipam: Ipam | None = None
    """null: the definition's own, or none."""
    profile: str | None = Field(default=None, pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")
    """Of the catalog: resources and variables that a cloud's fabric needs (`efa`, …)."""
    transport: Transport | None = None
    """What NCCL is to send by; a case that went another way fails. null: whatever it chooses."""
    gpudirect: bool | None = None
    """Does the NIC read and write the GPUs' memory? Of RDMA only. null: as it comes."""
    rdma_namespace: Literal["shared", "exclusive"] | None = None
    """What `rdma system` says on the nodes. `exclusive`: the definition chains the `rdma` CNI
    plugin, which moves the adapter's RDMA device into the pod with its interface, by the PCI
    address that `resources` give. null: as `shared`, where every pod sees every adapter."""
    nominal_gbps: RateGbps | None = None
    """Line rate of each NIC by its data sheet: a label. null: not known."""
    twins: tuple[Twin, ...] | None = None
    """Further networks on the same NICs, so that effects separate: `tcp` forces sockets,
    `without-gpudirect` keeps RDMA and lets the host copy. null: both for RDMA, none else."""

    planned: ClassVar[dict[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _by_its_name(cls, value: Any) -> Any:
        return {"attachment": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _parts_fit(self) -> "Attached":
        if self.attachment == "pod":
            for key in ("devices", "definitions", "ipam", "mode", "mtu_bytes"):
                if getattr(self, key):
                    raise placed_error(
                        f"the pod network takes no `{key}`", (key,), "`attachment: macvlan`, …"
                    )
        self._check_devices()
        if self.attachment == "sriov" and not self.resources:
            raise placed_error(
                "`sriov` needs `resources`: from which pool?",
                ("resources",),
                "`openshift.io/<resourceName of the SriovNetworkNodePolicy>`",
            )
        self._check_definitions()
        if self.gpudirect is not None and not self.is_rdma:
            raise placed_error(
                "`gpudirect` needs a `transport` of RDMA beside it",
                ("gpudirect",),
                f"`transport: {'`, `'.join(RDMA)}`",
            )
        if self.rdma_namespace == "exclusive" and self.attachment not in HOST_RDMA:
            raise placed_error(
                f"`{self.attachment}` moves no adapter into the pod, or its definition is there",
                ("rdma_namespace",),
                f"of {' and '.join(f'`{each}`' for each in sorted(HOST_RDMA))}",
            )
        if self.rdma_namespace == "exclusive" and not self.resources:
            raise placed_error(
                "the `rdma` CNI plugin needs the PCI address that a device plugin chose",
                ("rdma_namespace",),
                "`resources: …` beside it",
            )
        if self.twins and not self.is_rdma:
            raise placed_error("`twins` are of RDMA networks", ("twins",))
        if self.twins and "without-gpudirect" in self.twins and self.gpudirect is False:
            raise placed_error("it is without GPUDirect itself", ("twins",))
        if self.twins and len(set(self.twins)) < len(self.twins):
            raise placed_error("each twin once", ("twins",))
        return self

    def _check_devices(self) -> None:
        by_plugin = self.attachment == "host-device" and self.resources
        needs = self.attachment in ("host-device", "macvlan", "ipvlan", "bridge")
        if needs and not self.devices and not by_plugin:
            raise placed_error(
                f"`{self.attachment}` needs `devices`: which of the node's?", ("devices",)
            )
        has_addresses = self.ipam is not None and self.ipam.kind not in ("none", "address-map")
        if self.attachment == "ipvlan" and not has_addresses:
            raise placed_error(
                "`ipvlan` needs an `ipam` that gives addresses: its plugin refuses to go without",
                ("ipam",),
                "`ipam: {kind: whereabouts, ranges: 10.20.0.0/24}`",
            )

    def _check_definitions(self) -> None:
        if self.attachment == "existing" and not self.definitions:
            raise placed_error("`existing` needs `definitions`: which ones?", ("definitions",))
        for i, name in enumerate(self.definitions):
            if "/" in name and self.attachment != "existing":
                raise placed_error(
                    f"`{name}` is in another namespace, and would be written there",
                    ("definitions", i),
                    "`attachment: existing` uses what is there",
                )

    @property
    def is_rdma(self) -> bool:
        """Is it meant to send by RDMA?"""
        return self.transport in RDMA

    @property
    def is_pod_network(self) -> bool:
        """Is it the network that every pod has?"""
        return self.attachment == "pod"

    @property
    def most_nics(self) -> int | None:
        """As far as what is named one by one says; None: as many as are asked for."""
        if self.is_pod_network:
            return None if self.resources or self.profile else 1
        named = [len(names) for names in (self.devices, self.definitions) if names]
        return min(named, default=None)

    def why_not_with(self, num_nics: int) -> str | None:
        """What keeps a pod from so many of its NICs? None: nothing does."""
        if self.most_nics is None or num_nics <= self.most_nics:
            return None
        if self.is_pod_network:
            return f"{num_nics} NICs, and a pod has one on the pod network"
        what = "devices" if len(self.devices) == self.most_nics else "definitions"
        return f"{num_nics} NICs, and `kubernetes.{what}` names {self.most_nics}"

    def device(self, nic: int) -> str | None:
        """The node's device of this NIC, from 0."""
        return self.devices[nic] if nic < len(self.devices) else None

    def definition(self, nic: int) -> str | None:
        """The name of its NetworkAttachmentDefinition, where the experiment says it."""
        return self.definitions[nic] if nic < len(self.definitions) else None

    def resource(self, nic: int) -> str | None:
        """What a pod asks for, for this NIC."""
        return _of_nic(self.resources, nic)

    def address_range(self, nic: int) -> str | None:
        """Of this NIC, where its IPAM has ranges."""
        return None if self.ipam is None else _of_nic(self.ipam.ranges, nic)

    def address_pool(self, nic: int) -> str | None:
        """Of this NIC, where its IPAM has pools."""
        return None if self.ipam is None else _of_nic(self.ipam.pools, nic)

    def as_found(self) -> Found:
        """What a case keeps of it: how its ranks' bytes travel."""
        return Found(
            attachment=self.attachment,
            over=self.devices or self.definitions or self.resources,
            mode=self.mode,
            mtu_bytes=self.mtu_bytes,
            transport=self.transport,
            gpudirect=self.gpudirect,
            nominal_gbps=self.nominal_gbps,
        )


AnyAttached = Annotated[Attached, BeforeValidator(Attached._by_its_name)]
"""Text alone is its attachment."""
