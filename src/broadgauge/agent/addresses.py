"""Which address and MTU has an interface of this machine?"""

import socket
import struct
from contextlib import suppress
from fcntl import ioctl

_SIOCGIFADDR = 0x8915
_SIOCGIFNETMASK = 0x891B
_SIOCGIFMTU = 0x8921
"""Source: Linux, include/uapi/linux/sockios.h; struct ifreq in netdevice(7)."""


def address_of(interface: str) -> str | None:
    """IPv4's first; None: it has none."""
    return _ask_ipv4(interface, _SIOCGIFADDR)


def netmask_of(interface: str) -> str | None:
    """Of that address."""
    return _ask_ipv4(interface, _SIOCGIFNETMASK)


def mtu_of(interface: str) -> int | None:
    """In this network namespace, whichever /sys is of. None: there is no such interface."""
    answer = _ask(interface, _SIOCGIFMTU)
    return None if answer is None else int(struct.unpack_from("=i", answer, 16)[0])


def _ask_ipv4(interface: str, request: int) -> str | None:
    answer = _ask(interface, request)
    return None if answer is None else socket.inet_ntoa(answer[20:24])


def _ask(interface: str, request: int) -> bytes | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking, suppress(OSError):
        return ioctl(asking.fileno(), request, struct.pack("256s", interface.encode()[:15]))
    return None
