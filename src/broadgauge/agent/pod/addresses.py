"""How does a pod's init container give its interfaces the addresses of the map?

`broadgauge.zip addresses`, as root with the capability NET_ADMIN, in the pod's network namespace,
which its containers share. It may be run again: what is as it should be stays, and what an earlier
run gave and the map no longer has is removed. No program of the image is needed.
Source: rtnetlink(7); Linux, include/uapi/linux/rtnetlink.h (struct ifaddrmsg, struct rtmsg).
"""

import errno
import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from broadgauge.agent import netlink
from broadgauge.agent.pod.address_map import (
    METRIC,
    AddressMapError,
    InterfacePlan,
    Route,
    parse_map,
    plan_for,
)

MAP_VARIABLE = "BROADGAUGE_ADDRESS_MAP"
MAP_FILE = "/broadgauge/addresses/nodename_ip_mapping.yaml"
NODE_VARIABLES = ("BROADGAUGE_NODE_NAME", "NODE_HOSTNAME")
"""The second is the article's."""
INTERFACES_VARIABLE = "BROADGAUGE_ADDRESS_INTERFACES"
"""`net1,net2`: which of the map's interfaces this pod has; unset: all of its node's."""
OUR_PROTOCOL = 182
"""Marks our routes among others'. Source: Linux, include/uapi/linux/rtnetlink.h: the kernel
does not interpret values above RTPROT_STATIC, and this one is not taken there."""
FAILED = 1
_POD_INTERFACES = ("lo", "eth0")
"""Those of a pod to which nothing is attached."""
_RTM_NEWADDR, _RTM_DELADDR, _RTM_GETADDR = 20, 21, 22
_RTM_NEWROUTE, _RTM_DELROUTE, _RTM_GETROUTE = 24, 25, 26
_RTM_NEWLINK = 16
_IFA_ADDRESS, _IFA_LOCAL, _IFA_BROADCAST = 1, 2, 4
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PRIORITY = 1, 4, 5, 6
_IFADDRMSG = struct.Struct("=BBBBI")
"""Family, prefix length, flags, scope, interface."""
_RTMSG = struct.Struct("=BBBBBBBBI")
"""Family, length of destination and source, TOS, table, protocol, scope, type, flags."""
_IFINFOMSG = struct.Struct("=BxHiII")
"""Family, type, interface, flags, which of them change."""
_IFF_UP = 1
_TABLE_MAIN, _UNICAST = 254, 1
_SCOPE_UNIVERSE, _SCOPE_LINK = 0, 253
_POINT_TO_POINT_BITS = 31
_ADD = netlink.NLM_F_CREATE | netlink.NLM_F_REPLACE
_NO_RIGHT = (errno.EPERM, errno.EACCES)

Say = Callable[[str], None]


def find_interfaces(plans: Sequence[InterfacePlan]) -> list[int]:
    """Their numbers, before any of them is changed. Raises AddressMapError where one is absent."""
    there = {name: index for index, name in socket.if_nameindex()}
    absent = [plan.interface for plan in plans if plan.interface not in there]
    if not absent:
        return [there[plan.interface] for plan in plans]
    attached = sorted(there.keys() - set(_POD_INTERFACES))
    raise AddressMapError(
        f"{', '.join(absent)}: not among this pod's interfaces, {', '.join(sorted(there))}",
        f"name those that it has: {INTERFACES_VARIABLE}={','.join(attached)}"
        if attached
        else "nothing is attached: the cluster needs Multus, which reads the pod's annotation "
        "k8s.v1.cni.cncf.io/networks",
    )


def apply(plan: InterfacePlan, index: int, say: Say) -> None:
    """Give one interface its address and routes. Raises AddressMapError."""
    up = _IFINFOMSG.pack(socket.AF_UNSPEC, 0, index, _IFF_UP, _IFF_UP)
    _tell(f"{plan.interface} can't be brought up", _RTM_NEWLINK, 0, up)
    _give_address(plan, index, say)
    _give_routes(plan, index, say)


def _tell(what: str, kind: int, flags: int, body: bytes) -> None:
    """Raises AddressMapError."""
    try:
        netlink.tell(kind, flags, body)
    except OSError as error:
        raise AddressMapError(
            f"{what}: {error.strerror}",
            "the init container needs, in its securityContext, runAsUser: 0 and "
            "capabilities.add: [NET_ADMIN]"
            if error.errno in _NO_RIGHT
            else None,
        ) from error


def _give_address(plan: InterfacePlan, index: int, say: Say) -> None:
    """Others go first: the kernel drops an address with the older one of its subnet, and with an
    interface's last address all of its routes, those that IPAM gave among them."""
    name = plan.interface
    for address in read_addresses(index):
        if address != plan.address and address in read_addresses(index):
            what = f"{name} can't lose {address}"
            _tell(what, _RTM_DELADDR, 0, _address_body(address, index))
            say(f"{name}: address {address} removed")
    if plan.address in read_addresses(index):
        say(f"{name}: address {plan.address} is there")
        return
    body = _address_body(plan.address, index)
    _tell(f"{name} can't get {plan.address}", _RTM_NEWADDR, _ADD, body)
    say(f"{name}: address {plan.address} added")


def _give_routes(plan: InterfacePlan, index: int, say: Say) -> None:
    wanted = {route.to: route for route in plan.routes}
    there = {route.to: route for route in read_routes(index)}
    gone = [route for to, route in there.items() if wanted.get(to) != route]
    new = [route for to, route in wanted.items() if there.get(to) != route]
    for route in gone:
        what = f"{plan.interface} can't lose its route to {route.to}"
        _tell(what, _RTM_DELROUTE, 0, _route_body(route, index))
    for route in new:
        by = "" if route.gateway is None else f" by {route.gateway}"
        what = f"{plan.interface} can't get a route to {route.to}{by}"
        _tell(what, _RTM_NEWROUTE, _ADD, _route_body(route, index))
    say(f"{plan.interface}: routes: {len(wanted)} ({len(new)} added, {len(gone)} removed)")


def _address_body(address: ipaddress.IPv4Interface, index: int) -> bytes:
    length, own = address.network.prefixlen, address.ip.packed
    head = _IFADDRMSG.pack(socket.AF_INET, length, 0, _SCOPE_UNIVERSE, index)
    body = head + netlink.attribute(_IFA_LOCAL, own) + netlink.attribute(_IFA_ADDRESS, own)
    if length < _POINT_TO_POINT_BITS:
        body += netlink.attribute(_IFA_BROADCAST, address.network.broadcast_address.packed)
    return body


def _route_body(route: Route, index: int) -> bytes:
    scope = _SCOPE_LINK if route.gateway is None else _SCOPE_UNIVERSE
    body = _RTMSG.pack(
        socket.AF_INET, 32, 0, 0, _TABLE_MAIN, OUR_PROTOCOL, scope, _UNICAST, 0
    ) + netlink.attribute(_RTA_DST, route.to.packed)
    body += netlink.attribute(_RTA_OIF, struct.pack("=I", index))
    body += netlink.attribute(_RTA_PRIORITY, struct.pack("=I", METRIC))
    if route.gateway is not None:
        body += netlink.attribute(_RTA_GATEWAY, route.gateway.packed)
    return body


def read_addresses(index: int) -> list[ipaddress.IPv4Interface]:
    """An interface's, of IPv4."""
    found = []
    request = _IFADDRMSG.pack(socket.AF_INET, 0, 0, 0, 0)
    for kind, body in netlink.dump(_RTM_GETADDR, request):
        if kind != _RTM_NEWADDR:
            continue
        family, length, _, _, of_interface = _IFADDRMSG.unpack_from(body)
        told = dict(netlink.attributes(body[_IFADDRMSG.size :]))
        local = told.get(_IFA_LOCAL) or told.get(_IFA_ADDRESS)
        if family == socket.AF_INET and of_interface == index and local:
            found.append(ipaddress.IPv4Interface((local, length)))
    return found


def read_routes(index: int) -> Iterator[Route]:
    """Those that an earlier run gave this interface."""
    request = _RTMSG.pack(socket.AF_INET, 0, 0, 0, 0, 0, 0, 0, 0)
    for kind, body in netlink.dump(_RTM_GETROUTE, request):
        if kind != _RTM_NEWROUTE:
            continue
        _, length, _, _, _, protocol, *_ = _RTMSG.unpack_from(body)
        told = dict(netlink.attributes(body[_RTMSG.size :]))
        is_its_own = told.get(_RTA_OIF) == struct.pack("=I", index)
        if protocol != OUR_PROTOCOL or length != 32 or not is_its_own or _RTA_DST not in told:
            continue
        gateway = told.get(_RTA_GATEWAY)
        yield Route(
            to=ipaddress.IPv4Address(told[_RTA_DST]),
            gateway=None if gateway is None else ipaddress.IPv4Address(gateway),
        )


def read_plans(environ: Mapping[str, str]) -> tuple[InterfacePlan, ...]:
    """For the pod that these variables are of. Raises AddressMapError."""
    path = Path(environ.get(MAP_VARIABLE) or MAP_FILE)
    node = next((environ[name] for name in NODE_VARIABLES if environ.get(name)), None)
    if node is None:
        raise AddressMapError(
            "the node's name is not known",
            f"set {NODE_VARIABLES[0]} from the field spec.nodeName",
        )
    names = environ.get(INTERFACES_VARIABLE, "").split(",")
    interfaces = [name.strip() for name in names if name.strip()]
    return plan_for(parse_map(_read_text(path), path.name), node, interfaces)


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise AddressMapError(
            f"{path}: {error.strerror}",
            f"mount the ConfigMap of the address map, or set {MAP_VARIABLE}",
        ) from error
    except UnicodeDecodeError as error:
        why = f"{error.reason}, byte {error.start}"
        raise AddressMapError(f"{path}: not in UTF-8: {why}") from error


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """0: every interface has what the map says."""
    try:
        plans = read_plans(os.environ)
        for plan, index in zip(plans, find_interfaces(plans), strict=True):
            apply(plan, index, _say)
    except AddressMapError as error:
        sys.stderr.write(f"addresses: {error}\n")
        return FAILED
    return 0
