"""How does the tool start a supervisor, talk to it, and make sure that it ends?"""

import os
import select
import signal
import socket
import subprocess
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

from broadgauge.messages.agent import EVENT, Event, Order
from broadgauge.messages.frames import FrameReader, FrameWriter, unique_sender
from broadgauge.messages.launch_order import LaunchOrder
from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.platforms.launch_folders import private

_READ_BYTES = 1 << 16
KILL_WAIT_S = waiting_limit_s(10.0)
SEND_LIMIT_S = waiting_limit_s(30.0)


class SupervisorLost(Exception):  # noqa: N818  says what is so, and is always caught
    """The supervisor has ended, or stands still; the message says how."""


class SupervisorConnection:
    """A living supervisor process and the socket to it."""

    def __init__(
        self, program: tuple[str, ...], order: LaunchOrder, log_path: Path, working_folder: Path
    ) -> None:
        """Start the supervisor and give it its order; ranks log beside `log_path`.

        Raises OSError for an unwritable log.
        """
        self._log_path = log_path
        self._frames = FrameReader()
        self._writer = FrameWriter(unique_sender("tool"))
        self._events: deque[Event] = deque()
        self._is_closed = False
        ours, theirs = socket.socketpair()
        ours.settimeout(SEND_LIMIT_S)
        self._socket = ours
        folders = (str(log_path.absolute().parent), str(working_folder.absolute()))
        with theirs, open(log_path, "ab", opener=private) as log:
            self._process = subprocess.Popen(
                [*program, *folders, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self.send(order)

    @property
    def pid(self) -> int:
        """Of the guard, the outermost process of the launch."""
        return self._process.pid

    def send(self, order: Order) -> None:
        """Give an order; one that no supervisor is left for is lost, as `receive` will tell."""
        with suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
            self._socket.sendall(self._writer.write(order))

    def receive(self, timeout_s: float) -> Event | None:
        """The next event; None when none came in time. Raises SupervisorLost."""
        deadline_s = time.monotonic() + timeout_s
        while not self._events:
            left_s = max(0.0, deadline_s - time.monotonic())
            readable, _, _ = select.select([self._socket], [], [], left_s)
            if not readable:
                return None
            self._read()
        return self._events.popleft()

    def close(self, timeout_s: float) -> None:
        """Wait for the supervisor's end, then force it; safe to call twice."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout_s)
        finally:
            self._socket.close()
            self._end()
        with suppress(OSError):
            if self._log_path.stat().st_size == 0:
                self._log_path.unlink()

    def _end(self) -> None:
        """The closed socket has told the guard; one that does not hear is killed."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(KILL_WAIT_S)
            return
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait(KILL_WAIT_S)

    def _read(self) -> None:
        try:
            data = self._socket.recv(_READ_BYTES)
        except ConnectionResetError:
            data = b""
        if not data:
            raise SupervisorLost(self._obituary())
        messages, _ = self._frames.feed(data)
        self._events.extend(EVENT(received.message) for received in messages)

    def _obituary(self) -> str:
        """How did the supervisor end, and what did it say last?"""
        try:
            code = self._process.wait(KILL_WAIT_S)
        except subprocess.TimeoutExpired:
            return "the supervisor closed its socket and goes on"
        how = (
            f"was ended by {signal.Signals(-code).name}"
            if code < 0
            else f"ended with exit code {code}"
        )
        return f"the supervisor of the ranks {how}; its log is {self._log_path}"
