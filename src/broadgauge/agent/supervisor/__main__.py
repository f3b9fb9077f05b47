"""Runs as `python -m broadgauge.agent.supervisor LOGS WORKING DESCRIPTOR`, or from the zip file.

LOGS: where ranks' logs are written. WORKING: where they run. DESCRIPTOR: of the socket on which
orders come.
"""

import os
import socket
import sys
from dataclasses import replace
from pathlib import Path

from broadgauge.agent.emulated.errors import EmulationError
from broadgauge.agent.emulated.storage.host_part import host_part
from broadgauge.agent.supervisor.guard import guard
from broadgauge.agent.supervisor.loop import Supervisor
from broadgauge.agent.supervisor.programs import Folders
from broadgauge.messages.agent import ORDER, Refused
from broadgauge.messages.frames import FrameReader, FrameWriter, unique_sender
from broadgauge.messages.launch_order import LaunchOrder


def main() -> int:
    """Read the order, supervise its ranks, and end with nothing left."""
    logs, working, descriptor = sys.argv[1:4]
    folders = Folders(logs=Path(logs).absolute(), working=Path(working).absolute())
    control = socket.socket(fileno=int(descriptor))
    os.set_inheritable(control.fileno(), False)  # noqa: FBT003
    order = _read_order(control)
    if order is None:
        return 0
    try:
        with host_part(order.storages, order.num_nodes) as host:
            supervisor = Supervisor(order, folders, control.fileno(), host)
            return guard(order.mode, control, supervisor.run)
    except EmulationError as error:
        refusal = Refused(message=f"{error.step}: {error.detail}", hint=error.hint)
        control.settimeout(None)
        control.sendall(FrameWriter(unique_sender("agent")).write(refusal))
        return 1


def _read_order(control: socket.socket) -> LaunchOrder | None:
    """The first message; None when who gives orders has ended before it was whole.

    Whose ids ranks get back is asked before any namespace is entered.
    """
    reader = FrameReader()
    while data := control.recv(1 << 16):
        for received in reader.feed(data)[0]:
            order = ORDER(received.message)
            if not isinstance(order, LaunchOrder):
                raise TypeError(f"the first order is no launch: {order!r}")
            uid = os.getuid() if order.uid is None else order.uid
            gid = os.getgid() if order.gid is None else order.gid
            return replace(order, uid=uid, gid=gid)
    return None


if __name__ == "__main__":
    sys.exit(main())
