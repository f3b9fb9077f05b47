"""How does a worker talk with its supervisor? In frames, on two file descriptors.

A thread listens for commands, so that a supervisor that is gone ends the process also in the
middle of a collective that never completes.
"""

import os
import queue
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from broadgauge.specs.frames import FrameReader, encode_frame
from broadgauge.specs.plan import Stored
from broadgauge.specs.rank_messages import (
    COMMAND,
    COMMAND_FD_VARIABLE,
    RESULT_FD_VARIABLE,
    Command,
    EndCommand,
    ReleaseCommand,
)


class ProtocolError(RuntimeError):
    """The supervisor said something that makes no sense at this point."""


def leave_at_once() -> None:
    """Ends this process, whatever its other threads do."""
    sys.stderr.write("the supervisor closed its pipe: leaving\n")
    sys.stderr.flush()
    os._exit(1)


class Channel:
    """Commands come in, messages go out; neither crosses the network under test."""

    def __init__(
        self, command_fd: int, result_fd: int, on_lost: Callable[[], None] = leave_at_once
    ) -> None:
        self._result_fd = result_fd
        self._received: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._on_lost = on_lost
        threading.Thread(
            target=self._listen, args=(command_fd,), name="commands", daemon=True
        ).start()

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], on_lost: Callable[[], None] = leave_at_once
    ) -> "Channel":
        return cls(
            int(environment[COMMAND_FD_VARIABLE]), int(environment[RESULT_FD_VARIABLE]), on_lost
        )

    def send(self, message: Stored) -> None:
        remaining = memoryview(encode_frame(message.model_dump(mode="json")))
        while remaining:
            remaining = remaining[os.write(self._result_fd, remaining) :]

    def receive(self) -> Command:
        """The next command; waits for it."""
        return COMMAND.validate_python(self._received.get())

    def wait_for_release(self, label: str) -> None:
        command = self.receive()
        if not isinstance(command, ReleaseCommand) or command.label != label:
            raise ProtocolError(f"waiting for the release of `{label}`, got {command!r}")

    def _listen(self, command_fd: int) -> None:
        reader = FrameReader()
        while data := os.read(command_fd, 65_536):
            for message in reader.feed(data)[0]:
                self._received.put(message)
                if message.get("type") == EndCommand().type:
                    return
        self._on_lost()
