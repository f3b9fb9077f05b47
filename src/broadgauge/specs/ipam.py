"""Where does the address of a pod's NIC come from? `networks[].kubernetes.ipam`."""

import ipaddress
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from broadgauge.specs.base import InOneWord, Spec, placed_error
from broadgauge.specs.kubernetes_names import ObjectName

MOST_NICS_NAMED = 64
IpHost = ipaddress.IPv4Address | ipaddress.IPv6Address
IpamKind = Literal["whereabouts", "nv-ipam", "static", "dhcp", "address-map", "none"]
_NEEDS: dict[IpamKind, tuple[str, str]] = {
    "whereabouts": ("ranges", "10.20.0.0/24"),
    "static": ("ranges", "10.20.0.0/24"),
    "nv-ipam": ("pools", "rail-0"),
    "address-map": ("map", "nodename_ip_mapping.yaml"),
}
"""Which key says what a kind needs, and an example of it."""
_POINT_TO_POINT = 2
"""A subnet of so many addresses has neither its own nor a broadcast address."""
_OF_SOME = ("ranges", "pools", "map", "exclude", "gateway")
_TAKES: dict[str, tuple[str, ...]] = {
    "whereabouts": ("ranges", "exclude", "gateway"),
    "static": ("ranges", "exclude", "gateway"),
    "nv-ipam": ("pools",),
    "address-map": ("map",),
}


def as_tuple(value: Any) -> Any:
    """One word stands for a list of it."""
    return (value,) if isinstance(value, str) else value


def _check_subnet(text: str) -> str:
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise ValueError(f"no subnet: {error}") from error
    if "/" not in text:
        raise ValueError(f"no subnet: how many addresses? `{text}/24`")
    if ipaddress.ip_address(text.partition("/")[0]) != network.network_address:
        raise ValueError(f"no subnet: `{text}` is an address within {network}")
    return text


def _check_address(text: str) -> str:
    try:
        ipaddress.ip_address(text)
    except ValueError as error:
        raise ValueError(f"no address: {error}") from error
    return text


Subnet = Annotated[str, AfterValidator(_check_subnet)]
"""`10.20.0.0/24`."""
IpAddress = Annotated[str, AfterValidator(_check_address)]


class Ipam(Spec):
    """From where, and out of what."""

    kind: IpamKind
    """`whereabouts`, `nv-ipam`: the cluster's own, out of a range or a pool. `static`: we number
    pods within a range, where each has a template of its own. `dhcp`: the network's server.
    `address-map`: each node's NICs keep the address that the fabric gave to that node, and drops
    every other, as a VPC does: an init container sets it. `none`: no address (RDMA without IP), or
    the definition that is there says it."""
    ranges: Annotated[tuple[Subnet, ...], BeforeValidator(as_tuple)] = Field(
        default=(), max_length=MOST_NICS_NAMED
    )
    """Subnets, one a NIC."""
    exclude: Annotated[tuple[Subnet, ...], BeforeValidator(as_tuple)] = Field(
        default=(), max_length=MOST_NICS_NAMED
    )
    """Of these no address is given: `10.20.0.0/28`."""
    gateway: IpAddress | None = None
    """That pods are told; null: none, as networks that are not routed have."""
    pools: Annotated[tuple[ObjectName, ...], BeforeValidator(as_tuple)] = Field(
        default=(), max_length=MOST_NICS_NAMED
    )
    """Names of nv-ipam's pools (IPPool), one a NIC, or one for all."""
    map: str | None = Field(default=None, min_length=1, max_length=1024)
    """A file of lines `host:device:interface:ip` beside the experiment."""

    @model_validator(mode="after")
    def _parts_fit(self) -> "Ipam":
        if self.kind in _NEEDS:
            key, example = _NEEDS[self.kind]
            if not getattr(self, key):
                raise placed_error(
                    f"`{self.kind}` needs `{key}` beside it",
                    (key,),
                    f"`ipam: {{kind: {self.kind}, {key}: {example}}}`",
                )
        for key in _OF_SOME:
            if getattr(self, key) and key not in _TAKES.get(self.kind, ()):
                raise placed_error(f"`{key}` says nothing to `{self.kind}`", (key,))
        return self

    @model_validator(mode="after")
    def _ranges_are_apart(self) -> "Ipam":
        """Two interfaces of a pod in one subnet have equal routes, and either may be taken."""
        for place, text in enumerate(self.ranges):
            for first in self.ranges[:place]:
                if overlap(text, first):
                    raise placed_error(
                        f"the ranges {first} and {text} overlap, and a pod would have two "
                        "interfaces in one subnet: the kernel sends by either",
                        ("ranges", place),
                        "a subnet of its own for each NIC",
                    )
        return self

    @model_validator(mode="after")
    def _gateway_is_within(self) -> "Ipam":
        if self.gateway is not None and not any(map(self.is_routed_in, self.ranges)):
            raise placed_error(f"the gateway {self.gateway} is in none of the ranges", ("gateway",))
        return self

    def is_routed_in(self, subnet: str) -> bool:
        """Is the gateway in it?"""
        if self.gateway is None:
            return False
        return ipaddress.ip_address(self.gateway) in ipaddress.ip_network(subnet)

    @property
    def gives_addresses(self) -> bool:
        """Does the plugin that attaches the NIC give it one?"""
        return self.kind not in ("address-map", "none")


def overlap(one: str, other: str) -> bool:
    """Do two subnets share an address?"""
    first, second = ipaddress.ip_network(one), ipaddress.ip_network(other)
    return first.version == second.version and first.overlaps(second)


def usable(subnet: str, exclude: tuple[str, ...], gateway: str | None) -> Iterator[IpHost]:
    """The addresses that pods can have, in order: without the subnet's own and its broadcast,
    those left out, and the gateway.

    Source: RFC 1122, 3.2.1.3; RFC 3021 (/31); RFC 4291, 2.6.1 (the first of a subnet of IPv6 is its
    routers').
    """
    network = ipaddress.ip_network(subnet)
    left_out = [ipaddress.ip_network(text) for text in exclude]
    routed = None if gateway is None else ipaddress.ip_address(gateway)
    has_ends = network.num_addresses > _POINT_TO_POINT
    number = int(network[0]) + has_ends
    last = int(network[-1]) - (has_ends and network.version == 4)
    while number <= last:
        address = type(network[0])(number)
        block = next((each for each in left_out if address in each), None)
        if block is None and address != routed:
            yield address
        number = number + 1 if block is None else int(block[-1]) + 1


def has_addresses(subnet: str, exclude: tuple[str, ...], gateway: str | None, wanted: int) -> int:
    """How many pods can have one, as far as `wanted`: a subnet of IPv6 isn't counted out."""
    return sum(1 for _ in islice(usable(subnet, exclude, gateway), wanted))


AnyIpam = Annotated[Ipam, BeforeValidator(InOneWord("kind"))]
"""Text alone is its kind: `ipam: dhcp`."""
