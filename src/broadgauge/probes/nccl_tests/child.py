"""How does a rank run its part of nccl-tests, and mark what is timed?"""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

LAST_LINES = 12
_BEFORE_BARRIER, _AFTER_TIMED_PART, _FINISHED = b"b", b"e", b"f"
"""What the stand-in says. Source: standin/standin.c."""


class FailedRunError(Exception):
    """nccl-tests ended with an error; the message has its last lines."""


class Marks(Protocol):
    """Called while nccl-tests waits; it goes on when they return."""

    def before_barrier(self) -> None: ...

    def after_timed_part(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnd:
    """How a run of a program ended."""

    exit_code: int
    output: str
    is_finished: bool
    """It came to MPI_Finalize: then an exit code other than 0 judges the figures."""

    def describe(self) -> str:
        """`nccl-tests ended with exit code 3`, and the last that it wrote."""
        if self.exit_code < 0:
            how = f"was ended by {signal.Signals(-self.exit_code).name}"
        else:
            how = f"ended with exit code {self.exit_code}"
        lines = [line for line in self.output.splitlines() if line.strip()][-LAST_LINES:]
        return "\n".join([f"nccl-tests {how}; its last lines:", *lines])


def run_marked(
    command: list[str], folder: Path, environment: Mapping[str, str], marks: Marks
) -> ChildEnd:
    """Runs to the end in `folder`; the output is passed on to our own.

    The child ends with this process: the stand-in asks the kernel for that.
    """
    ours, theirs = socket.socketpair()
    variables = dict(environment) | {"BROADGAUGE_STANDIN_MARKS": str(theirs.fileno())}
    with (
        ours,
        subprocess.Popen(
            command,
            cwd=folder,
            env=variables,
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        theirs.close()
        try:
            output, is_finished = _attend(process, ours, marks)
        except BaseException:
            process.kill()
            raise
    return ChildEnd(
        exit_code=process.returncode,
        output=output.decode(errors="replace"),
        is_finished=is_finished,
    )


def _attend(
    process: "subprocess.Popen[bytes]", marks_socket: socket.socket, marks: Marks
) -> tuple[bytes, bool]:
    """Pass its output on and answer its marks, until it has closed both; has it finished?"""
    assert process.stdout is not None
    output_fd, marks_fd = process.stdout.fileno(), marks_socket.fileno()
    output, waiting, is_finished = b"", {output_fd, marks_fd}, False
    while waiting:
        for fd in select.select(list(waiting), [], [])[0]:
            with contextlib.suppress(ConnectionResetError):
                data = os.read(fd, 65_536)
                if not data:
                    waiting.discard(fd)
                elif fd == output_fd:
                    output += data
                    sys.stdout.buffer.write(data)
                    sys.stdout.buffer.flush()
                else:
                    is_finished |= data == _FINISHED
                    _answer(data, marks_socket, marks)
    return output, is_finished


def _answer(said: bytes, marks_socket: socket.socket, marks: Marks) -> None:
    if said == _BEFORE_BARRIER:
        marks.before_barrier()
    elif said == _AFTER_TIMED_PART:
        marks.after_timed_part()
    elif said != _FINISHED:
        raise FailedRunError(f"the stand-in for MPI said {said!r}")
    with contextlib.suppress(BrokenPipeError):  # it ended meanwhile: its exit code tells
        marks_socket.sendall(said)
