"""How does a worker talk with its agent? In frames, on two file descriptors.

A thread listens for commands, so that a agent that is gone ends the process also in the
middle of a collective that never completes.
"""

import os
import queue
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from broadgauge.messages.codec import JsonObject
from broadgauge.messages.frames import FrameReader, FrameWriter, unique_sender
from broadgauge.messages.rank import (
    COMMAND,
    COMMAND_FD_VARIABLE,
    RESULT_FD_VARIABLE,
    Command,
    EndCommand,
    ReleaseCommand,
)


class ProtocolError(RuntimeError):
    """The agent said something that makes no sense at this point."""


def leave_at_once() -> None:
    """Ends this process, whatever its other threads do."""
    sys.stderr.write("the agent closed its pipe: leaving\n")
    sys.stderr.flush()
    os._exit(1)


class Channel:
    """Commands come in, messages go out; neither crosses the network under test."""

    def __init__(
        self, command_fd: int, result_fd: int, on_lost: Callable[[], None] = leave_at_once
    ) -> None:
        self._result_fd = result_fd
        self._frames = FrameWriter(unique_sender("rank"))
        self._lock = threading.Lock()
        self._received: queue.SimpleQueue[JsonObject] = queue.SimpleQueue()
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

    def send(self, message: Any) -> None:
        """`message`: one of those that a rank says (messages/rank.py)."""
        with self._lock:  # a thread may tell of a stall
            remaining = memoryview(self._frames.write(message))
            while remaining:
                remaining = remaining[os.write(self._result_fd, remaining) :]

    def receive(self) -> Command:
        """The next command; waits for it."""
        return COMMAND(self._received.get())

    def wait_for_release(self, label: str) -> None:
        command = self.receive()
        if not isinstance(command, ReleaseCommand) or command.label != label:
            raise ProtocolError(f"waiting for the release of `{label}`, got {command!r}")

    def _listen(self, command_fd: int) -> None:
        reader = FrameReader()
        while data := os.read(command_fd, 65_536):
            for received in reader.feed(data)[0]:
                self._received.put(received.message)
                if received.message.get("type") == EndCommand().type:
                    return
        self._on_lost()
