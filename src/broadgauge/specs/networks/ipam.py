"""Where does the address of a pod's NIC come from? `networks[].kubernetes.ipam`."""

import ipaddress
import re
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from broadgauge.specs.base import AS_STORED, InOneWord, Spec, placed_error
from broadgauge.specs.kubernetes.names import ObjectName

MOST_NICS_NAMED = 64
IpHost = ipaddress.IPv4Address | ipaddress.IPv6Address
IpSubnet = ipaddress.IPv4Network | ipaddress.IPv6Network
IpamKind = Literal["whereabouts", "nv-ipam", "static", "dhcp", "address-map", "none"]
_NEEDS: dict[IpamKind, tuple[str, str]] = {
    "whereabouts": ("ranges", "10.20.0.0/24"),
    "static": ("ranges", "10.20.0.0/24"),
    "nv-ipam": ("pools", "rail-0"),
    "address-map": ("map", "nodename_ip_mapping.yaml"),
}
"""Which key says what a kind needs, and an example of it."""
_FEWEST_HOST_BITS = 2
"""Of a smaller subnet nobody is given an address. Source: whereabouts, GetIPRange ("net mask is too
short, must be 2 or more")."""
_LENGTH = re.compile(r"0|[1-9][0-9]{0,2}")
_FEWEST_PREFIX_BITS = {4: 8, 6: 32}
"""No larger block is one site's. Source: IANA, IPv4 Address Space Registry (a /8); RFC 4193, 3.1,
and RFC 6177 (of IPv6 a site has a /48)."""
_USUAL_BITS = {4: 24, 6: 64}
_NO_HOSTS: tuple[tuple[IpSubnet, str], ...] = (
    (ipaddress.IPv4Network("0.0.0.0/8"), "0/8 is no host's"),
    (ipaddress.IPv4Network("127.0.0.0/8"), "127/8 is the loopback's"),
    (ipaddress.IPv4Network("169.254.0.0/16"), "169.254/16 is link-local, chosen by each host"),
    (ipaddress.IPv4Network("224.0.0.0/4"), "224/4 is of multicast"),
    (ipaddress.IPv4Network("240.0.0.0/4"), "240/4 is reserved"),
    (ipaddress.IPv6Network("::ffff:0:0/96"), "it is IPv4 written as IPv6"),
    (ipaddress.IPv6Network("::/8"), "::/8 is reserved, the loopback's ::1 in it"),
    (ipaddress.IPv6Network("fe80::/10"), "fe80::/10 is link-local, chosen by each host"),
    (ipaddress.IPv6Network("ff00::/8"), "ff00::/8 is of multicast"),
)
"""Source: RFC 1122, 3.2.1.3; RFC 3927; RFC 1112; RFC 4291, 2.5 to 2.7, and IANA, IPv6 Address Space
Registry (0000::/8)."""
_OF_SOME = ("ranges", "pools", "map", "exclude", "gateway")
_TAKES: dict[str, tuple[str, ...]] = {
    "whereabouts": ("ranges", "exclude", "gateway"),
    "static": ("ranges", "exclude"),
    "nv-ipam": ("pools",),
    "address-map": ("map",),
}
"""CNI's static plugin is told addresses by the capability `ips`, which has no place for a gateway.
"""


def as_tuple(value: Any) -> Any:
    """One word stands for a list of it."""
    return (value,) if isinstance(value, str) else value


def _check_subnet(text: str) -> str:
    """An address and a number of bits, since CNI plugins read nothing else (Go's ParseCIDR)."""
    address, slash, bits = text.partition("/")
    try:
        ip = _ip(address)
        if not slash:
            raise ValueError(f"how many addresses? `{text}/{_USUAL_BITS[ip.version]}`")
        if not _LENGTH.fullmatch(bits):
            usual = f"{address}/{_USUAL_BITS[ip.version]}"
            raise ValueError(f"`/{bits}` is no number of bits, as in `{usual}`")
        network = ipaddress.ip_network((ip, int(bits)), strict=False)
        if ip != network.network_address:
            raise ValueError(f"`{text}` is an address within {network}")
        fewest = _FEWEST_PREFIX_BITS[network.version]
        if network.prefixlen < fewest:
            raise ValueError(f"`{text}`: one of IPv{network.version} has {fewest} bits or more")
        why = _why_no_nics(network)
        if why is not None:
            raise ValueError(f"`{text}`: {why}, and no NIC has an address of it")
    except ValueError as error:
        raise ValueError(f"no subnet: {error}") from error
    return text


def _check_address(text: str) -> str:
    try:
        why = _why_no_nics(ipaddress.ip_network(_ip(text)))
        if why is not None:
            raise ValueError(f"`{text}`: {why}")
    except ValueError as error:
        raise ValueError(f"no address: {error}") from error
    return text


def _ip(text: str) -> IpHost:
    """Raises ValueError."""
    if "%" in text:
        plain = text.partition("%")[0]
        raise ValueError(f"`{text}` has a scope, which is one machine's: `{plain}`")
    return ipaddress.ip_address(text)


def _why_no_nics(network: IpSubnet) -> str | None:
    """What has such an address instead? None: NICs do."""
    return next((what for block, what in _NO_HOSTS if _share(network, block)), None)


def _share(one: IpSubnet, other: IpSubnet) -> bool:
    if isinstance(one, ipaddress.IPv4Network):
        return isinstance(other, ipaddress.IPv4Network) and one.overlaps(other)
    return isinstance(other, ipaddress.IPv6Network) and one.overlaps(other)


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
    """That pods are told, by whereabouts; null: none, as networks that are not routed have."""
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
    def _gateway_is_within(self, info: ValidationInfo) -> "Ipam":
        """A case as it is stored has the ranges of its own NICs only."""
        if self.gateway is None or info.context is AS_STORED:
            return self
        subnet = next(filter(self.is_routed_in, self.ranges), None)
        if subnet is None:
            raise placed_error(f"the gateway {self.gateway} is in none of the ranges", ("gateway",))
        why = _why_no_host(ipaddress.ip_address(self.gateway), ipaddress.ip_network(subnet))
        if why is not None:
            raise placed_error(
                f"the gateway can't be {self.gateway}: it is {why}",
                ("gateway",),
                "the router's own address in the subnet",
            )
        return self

    @model_validator(mode="after")
    def _excluded_is_within(self, info: ValidationInfo) -> "Ipam":
        if info.context is AS_STORED:
            return self
        for place, text in enumerate(self.exclude):
            if not any(overlap(text, subnet) for subnet in self.ranges):
                raise placed_error(
                    f"{text} is in none of the ranges, and leaves out nothing",
                    ("exclude", place),
                    f"a part of {' or '.join(self.ranges[:2])}",
                )
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
    return _share(ipaddress.ip_network(one), ipaddress.ip_network(other))


def _has_hosts(network: IpSubnet) -> bool:
    return network.max_prefixlen - network.prefixlen >= _FEWEST_HOST_BITS


def _why_no_host(ip: IpHost, network: IpSubnet) -> str | None:
    """What it is of its subnet instead of one host's; None: it is one.

    Source: RFC 1122, 3.2.1.3; RFC 4291, 2.6.1 (the first of a subnet of IPv6 is all its routers').
    """
    if not _has_hosts(network):
        return None
    if ip == network[0]:
        return f"the address of the subnet {network}"
    if network.version == 4 and ip == network[-1]:
        return f"the broadcast address of {network}"
    return None


def usable(subnet: str, exclude: tuple[str, ...], gateway: str | None) -> Iterator[IpHost]:
    """The addresses that pods can have, in order: without the subnet's own and its broadcast,
    those left out, and the gateway. None of a subnet for two hosts or one (/31, /32)."""
    network = ipaddress.ip_network(subnet)
    if not _has_hosts(network):
        return
    left_out = [ipaddress.ip_network(text) for text in exclude]
    routed = None if gateway is None else ipaddress.ip_address(gateway)
    number, last = int(network[1]), int(network[-2 if network.version == 4 else -1])
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
