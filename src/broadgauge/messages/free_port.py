"""On which port may ranks meet? One that nobody listens on now, nor is likely to until they do.

The kernel's own choice is among the ports that it gives to every connection that begins: between
the choice and rank 0's binding another could have it. Below them only listeners are.
"""

import errno
import random
import socket
from pathlib import Path

_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""Source: ip_local_port_range in ip(7)."""
_NUM_PORTS = 10_000
_LOWEST = 1024
_TRIES = 100


def free_port(address: str = "") -> int:
    """Of this address, empty: of all. Raises OSError where the address is none of ours."""
    first = _first_ephemeral()
    for _ in range(_TRIES):
        port = random.randrange(max(_LOWEST, first - _NUM_PORTS), first)
        try:
            with socket.create_server((address, port)):
                return port
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
    with socket.create_server((address, 0)) as server:
        return int(server.getsockname()[1])


def _first_ephemeral() -> int:
    """Of a range that leaves room below it, else where it usually begins."""
    try:
        first = int(_EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        first = 0
    return first if first > _LOWEST else 32_768
