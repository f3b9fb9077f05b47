"""How do the ranks of tests, which have no torch, talk to their supervisor?

They are started as files: `sys.path.insert(0, <the checkout>)` comes before they import this.
"""

import os
import sys
from typing import Any

from broadgauge.messages.frames import FrameReader, FrameWriter, unique_sender

COMMANDS = int(os.environ["BROADGAUGE_COMMAND_FD"])
RESULTS = int(os.environ["BROADGAUGE_RESULT_FD"])
_reader = FrameReader()
_writer = FrameWriter(unique_sender("rank"))
_pending: list[dict[str, Any]] = []


def say(**message: Any) -> None:
    os.write(RESULTS, _writer.write(message))


def say_hello(rank: int, torch: str) -> None:
    say(type="hello", rank=rank, pid=os.getpid(), torch=torch, nccl=None, cuda=None)


def next_command() -> dict[str, Any]:
    """Ends the rank where nobody is left to give one."""
    while not _pending:
        data = os.read(COMMANDS, 65536)
        if not data:
            sys.exit(0)
        _pending.extend(received.message for received in _reader.feed(data)[0])
    return _pending.pop(0)


def wait_at(trial_id: str, label: str) -> None:
    """A mark: until all ranks have come to it."""
    say(type="mark", trial_id=trial_id, label=label)
    command = next_command()
    assert command == {"type": "release", "label": label}, command
