"""A rank of the toy kind, without torch: it says what a worker would say of its naps."""

import os
import sys
from typing import Any

from broadgauge.messages.frames import FrameReader, FrameWriter, unique_sender

COMMANDS = int(os.environ["BROADGAUGE_COMMAND_FD"])
RESULTS = int(os.environ["BROADGAUGE_RESULT_FD"])
RANK = int(os.environ["RANK"])
reader = FrameReader()
writer = FrameWriter(unique_sender("rank"))
pending: list[dict[str, Any]] = []


def say(**message: Any) -> None:
    os.write(RESULTS, writer.write(message))


def next_command() -> dict[str, Any]:
    while not pending:
        data = os.read(COMMANDS, 65536)
        if not data:
            sys.exit(0)
        pending.extend(received.message for received in reader.feed(data)[0])
    return pending.pop(0)


def wait_at(trial_id: str, label: str) -> None:
    say(type="mark", trial_id=trial_id, label=label)
    assert next_command() == {"type": "release", "label": label}


def nap(command: dict[str, Any]) -> None:
    trial_id, naps = command["trial_id"], command["task"]["naps"]
    say(type="phase", trial_id=trial_id, phase="measure", detail="napping")
    wait_at(trial_id, "naps:begin")
    times = [0.01 * (1 + RANK + number) for number in range(naps)]
    say(type="block", kind="naps", trial_id=trial_id, seconds=times)
    wait_at(trial_id, "naps:end")
    say(type="done", trial_id=trial_id)


say(type="hello", rank=RANK, pid=os.getpid(), torch="none", nccl=None, cuda=None)
while (command := next_command())["type"] == "trial":
    nap(command)
