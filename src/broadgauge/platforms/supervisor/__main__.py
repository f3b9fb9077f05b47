"""Runs as `python -m broadgauge.platforms.supervisor <descriptor of the tool's socket>`."""

import os
import socket
import sys

from broadgauge.platforms.emulated.errors import EmulationError
from broadgauge.platforms.supervisor.guard import guard
from broadgauge.platforms.supervisor.loop import Supervisor
from broadgauge.platforms.supervisor.protocol import LaunchPlan, Refused
from broadgauge.specs.frames import decode_frame, encode_frame


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
        control.sendall(encode_frame(refusal.model_dump(mode="json")))
        return 1


def _read_plan(control: socket.socket) -> LaunchPlan | None:
    """The first frame; None when the tool has ended before it was whole."""
    line = b""
    while not line.endswith(b"\n"):
        data = control.recv(1 << 16)
        if not data:
            return None
        line += data
    message = decode_frame(line[:-1])
    if message is None:
        raise ValueError(f"the tool's first line is no frame: {line[:80]!r}")
    return LaunchPlan.model_validate(message)


if __name__ == "__main__":
    sys.exit(main())
