"""Where is a rank, by its Python stack? Frames as faulthandler writes them, and what they tell.

A rank in a hang is either inside communication, where it waits for others, or it is elsewhere: it
is the one that they wait for.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from broadgauge.messages.vocabulary import TextEnum

MOST_FRAMES = 40
"""Of one stack, the innermost ones: what is further out is the start of the program."""
_THREAD = re.compile(r"^(Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):\s*$")
_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+|\?\?\?) in (?P<function>.*)$')
"""Source: Python/traceback.c, dump_frame and write_thread_id, Python 3.10 to 3.14."""
_CALLED = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+)(, in (?P<function>.*))?$')
"""Source: traceback.py, StackSummary.format_frame_summary."""
_BEGIN_OF_TRACEBACK = "Traceback (most recent call last):"
_COMMUNICATION = (
    *("/torch/distributed/", "/deepspeed/comm/", "/horovod/", "/mpi4py/"),
    "/transformer_engine/pytorch/distributed.py",
)
_WRAPS = ("wrapper", "inner", "<lambda>")
_DEVICE = ("/torch/cuda/__init__.py", "/torch/cuda/streams.py")
_BACKWARD = "_engine_run_backward"
"""Waits for a whole backward pass: DDP's and FSDP's collectives are a part of it."""
_OURS = "/broadgauge/probes/"
_AT_A_MARK = "/broadgauge/probes/channel.py"
"""There a rank of ours waits for the others, and no byte crosses the network."""
_OF_OTHERS = re.compile(r"/(site|dist)-packages/|/lib(64)?/python3(\.\d+t?)?/")
"""Of installed libraries, and of Python's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    file: str
    line: int
    """0: not known."""
    function: str

    @property
    def is_own(self) -> bool:
        """Is it the user's code or ours, and none of a library's or of Python itself?"""
        if _OURS in self.file:
            return not self.file.endswith(_AT_A_MARK)
        return not (self.file.startswith("<") or _OF_OTHERS.search(self.file))

    def words(self, folder: str | None = None) -> str:
        """`train.py:42 in step`, a path within `folder` from there."""
        path = PurePath(self.file)
        inside = folder is not None and path.is_relative_to(folder)
        shown = path.relative_to(folder) if inside and folder is not None else path
        if shown.is_absolute() and len(shown.parts) > 4:
            shown = PurePath("…", *shown.parts[-3:])
        return f"{shown}:{self.line} in {self.function}"


class Activity(TextEnum):
    """What does a stack show a rank to do? The later, the likelier it is what others wait for."""

    COMMUNICATION = "communication"
    BACKWARD = "backward"
    """The backward pass, with the collectives in it."""
    DEVICE = "device"
    """It waits for its GPU, whose queue may hold a collective."""
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankStack:
    """The main thread of one rank, the innermost frame first."""

    rank: int
    frames: tuple[Frame, ...]
    """Empty: it could not be asked."""
    state: str = ""
    """Of its process, as proc_pid_stat(5) has it: `S`, `R`, `T`, …"""
    folder: str | None = None
    """Where its script runs."""

    @property
    def own_frame(self) -> Frame | None:
        """The innermost line that is the user's."""
        return own_frame(self.frames)

    @property
    def activity(self) -> Activity:
        return activity_of(self.frames)

    @property
    def operation(self) -> str | None:
        """Which call of communication is it in: `all_reduce`? None: in none."""
        called = None
        for frame in self.frames:
            if frame.is_own:
                break
            if frame.file.endswith(_AT_A_MARK):
                return "a mark"
            if any(part in frame.file for part in _COMMUNICATION) and frame.function not in _WRAPS:
                called = frame.function
        return called

    @property
    def place(self) -> str | None:
        """Its own line, else the innermost, in words."""
        frame = self.own_frame or (self.frames[0] if self.frames else None)
        return None if frame is None else frame.words(self.folder)


def own_frame(frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame of the user's; None: there is none."""
    return next((frame for frame in frames if frame.is_own), None)


def activity_of(frames: Sequence[Frame]) -> Activity:
    """What is done in the innermost call of the user's?"""
    for frame in frames:
        if frame.is_own:
            break
        if frame.file.endswith(_AT_A_MARK) or any(part in frame.file for part in _COMMUNICATION):
            return Activity.COMMUNICATION
        if frame.function == _BACKWARD:
            return Activity.BACKWARD
        if frame.file.endswith(_DEVICE) and "synchronize" in frame.function:
            return Activity.DEVICE
    return Activity.ELSEWHERE


def last_dump(text: str) -> tuple[Frame, ...]:
    """The main thread's frames in the last dump of faulthandler's that a text holds.

    All threads are written, the main one last; lines of other programs may stand around them.
    """
    threads: list[list[Frame]] = []
    is_inside = False
    for line in text.splitlines():
        if _THREAD.match(line):
            threads.append([])
            is_inside = True
        elif is_inside and (match := _FRAME.match(line)):
            threads[-1].append(_frame(match))
        elif line.strip():
            is_inside = False
    return tuple(threads[-1][:MOST_FRAMES]) if threads else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """An exception that ended a program."""

    error: str
    """`ValueError: no such key`, its first line."""
    frames: tuple[Frame, ...]
    """The innermost first."""
    lines: tuple[str, ...]
    """The traceback as it was written."""


def last_traceback(lines: Sequence[str]) -> Raised | None:
    """The last traceback that ran to its exception. None: there is none."""
    found: Raised | None = None
    for begin in (i for i, line in enumerate(lines) if line.endswith(_BEGIN_OF_TRACEBACK)):
        prefix = lines[begin].removesuffix(_BEGIN_OF_TRACEBACK)
        frames: list[Frame] = []
        for i in range(begin + 1, len(lines)):
            line = lines[i].removeprefix(prefix)
            if match := _CALLED.match(line):
                frames.append(_frame(match))
            elif line and not line.startswith(" "):
                inner_first = tuple(reversed(frames))[:MOST_FRAMES]
                whole = tuple(lines[begin : i + 1])
                found = Raised(error=line.strip(), frames=inner_first, lines=whole)
                break
    return found


def _frame(match: "re.Match[str]") -> Frame:
    line = match["line"]
    return Frame(
        file=match["file"],
        line=int(line) if line.isdigit() else 0,
        function=match["function"] or "<module>",
    )
