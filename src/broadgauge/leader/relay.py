"""How does a tool that comes over ssh reach the leader's socket? `relay SOCKET` joins the two."""

import os
import select
import socket
import sys
from pathlib import Path

from broadgauge.messages.unix_sockets import short_path

_BYTES = 1 << 16


def main() -> int:
    """Pass bytes both ways until one side ends; 1 where no leader is."""
    joined = socket.socket(socket.AF_UNIX)
    try:
        with short_path(Path(sys.argv[1])) as there:
            joined.connect(there)
    except OSError as error:
        sys.stderr.write(f"no leader answers: {error.strerror or error}\n")
        return 1
    while True:
        readable, _, _ = select.select([0, joined.fileno()], [], [])
        for source in readable:
            data = os.read(source, _BYTES)
            if not data:
                return 0
            _write_all(joined.fileno() if source == 0 else 1, data)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
