"""Which address has an interface of this machine?"""

import socket
import struct
from contextlib import suppress
from fcntl import ioctl

_SIOCGIFADDR = 0x8915
_SIOCGIFNETMASK = 0x891B
"""Source: Linux, include/uapi/linux/sockios.h; struct ifreq in netdevice(7)."""


def address_of(interface: str) -> str | None:
    """IPv4's first; None: it has none."""
    return _ask_ipv4(interface, _SIOCGIFADDR)


def netmask_of(interface: str) -> str | None:
    """Of that address."""
    return _ask_ipv4(interface, _SIOCGIFNETMASK)


def _ask_ipv4(interface: str, request: int) -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking, suppress(OSError):
        answer = ioctl(asking.fileno(), request, struct.pack("256s", interface.encode()[:15]))
        return socket.inet_ntoa(answer[20:24])
    return None
