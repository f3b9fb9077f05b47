"""Who starts a container, keeps its log and says how it ended? One small process a container.

It is forked by the spawner, which has one thread and few modules, so that starting a container
takes milliseconds. On the pipe `status` it writes one JSON object a line: {"pid": …} when the
program runs, {"failed": …} if it can't, and at last {"exit_code": …, "signal": …}.
"""

import json
import os
import selectors
import signal
from pathlib import Path
from typing import Any

from tests.kubernetes.kubelet.container import become_container
from tests.kubernetes.kubelet.log_files import LogWriter

from broadgauge.agent.emulated.syscalls import CloneFlag, unshare

Json = dict[str, Any]
_CHUNK_BYTES = 1 << 16


def keep_container(order: Json, net_fd: int, status: int) -> None:
    """Run one container to its end."""
    writer = LogWriter(
        folder=Path(order["log_folder"]),
        max_bytes=order["log_max_bytes"],
        max_files=order["log_max_files"],
    )
    writer.open()
    signal.signal(signal.SIGUSR1, lambda *_: writer.rotate_now())
    out, err, trouble = os.pipe(), os.pipe(), os.pipe()
    unshare(CloneFlag.NEWPID)
    pid = os.fork()
    if pid == 0:
        _be_container(order, net_fd, (out[1], err[1], trouble[1]))
    for fd in (out[1], err[1], trouble[1], net_fd):
        os.close(fd)
    said = _read_all(trouble[0])
    if said:
        os.waitpid(pid, 0)
        _say(status, {"failed": said.decode()})
        return
    _say(status, {"pid": pid, "keeper": os.getpid()})
    _copy_output({out[0]: "stdout", err[0]: "stderr"}, writer)
    _, ended = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(ended)
    _say(status, {"exit_code": code if code >= 0 else 128 - code, "signal": max(0, -code)})


def _be_container(order: Json, net_fd: int, pipes: tuple[int, int, int]) -> None:
    """In the child, which is the first process of the container's PID namespace. Never returns."""
    out, err, trouble = pipes
    try:
        null = os.open("/dev/null", os.O_RDONLY)
        for source, target in ((null, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        become_container(order, net_fd)
    except (OSError, ValueError) as error:
        os.write(trouble, str(error).encode())
    finally:
        os._exit(128)


def _copy_output(streams: dict[int, str], writer: LogWriter) -> None:
    """Until every process of the container has closed both."""
    with selectors.DefaultSelector() as selector:
        for fd, name in streams.items():
            selector.register(fd, selectors.EVENT_READ, name)
        while selector.get_map():
            for key, _ in selector.select():
                data = os.read(key.fd, _CHUNK_BYTES)
                if data:
                    writer.feed(key.data, data)
                else:
                    writer.finish(key.data)
                    selector.unregister(key.fd)


def _read_all(fd: int) -> bytes:
    parts = []
    while part := os.read(fd, _CHUNK_BYTES):
        parts.append(part)
    os.close(fd)
    return b"".join(parts)


def _say(status: int, message: Json) -> None:
    os.write(status, json.dumps(message).encode() + b"\n")
