"""Runs as `python -m broadgauge.platforms.supervisor <descriptor of the tool's socket>`."""

import os
import socket
import sys

from broadgauge.messages.frames import FrameReader, FrameWriter, unique_sender
from broadgauge.platforms.emulated.errors import EmulationError
from broadgauge.platforms.supervisor.guard import guard
from broadgauge.platforms.supervisor.loop import Supervisor
from broadgauge.platforms.supervisor.protocol import LaunchPlan, Refused


def main() -> int:
    """Read the plan, supervise its ranks, and end with nothing left."""
    control = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(control.fileno(), False)  # noqa: FBT003
    plan = _read_plan(control)
    if plan is None:
        return 0
    try:
        return guard(plan.mode, control, Supervisor(plan, control.fileno()).run)
    except EmulationError as error:
        refusal = Refused(message=f"{error.step}: {error.detail}", hint=error.hint)
        control.settimeout(None)
        control.sendall(FrameWriter(unique_sender("agent")).write(refusal.model_dump(mode="json")))
        return 1


def _read_plan(control: socket.socket) -> LaunchPlan | None:
    """The first message; None when the tool has ended before it was whole."""
    reader = FrameReader()
    while data := control.recv(1 << 16):
        for received in reader.feed(data)[0]:
            return LaunchPlan.model_validate(received.message)
    return None


if __name__ == "__main__":
    sys.exit(main())
