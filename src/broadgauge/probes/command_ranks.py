"""Where do the ranks of a user's command stand? Asked from outside, of the processes of torchrun.

Each rank's Python has registered a signal (rank_hook.py) on which it appends its stacks to a file
of its own. A process that has not, since it is no Python or ignores PYTHONPATH, is not signalled:
the kernel's list of signals that it handles says so.
"""

import os
import pkgutil
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from broadgauge.messages.stacks import RankStack, last_dump
from broadgauge.messages.waiting_limits import waiting_limit_s

STACKS_VARIABLE = "BROADGAUGE_STACKS"
SIGNAL_VARIABLE = "BROADGAUGE_STACKS_SIGNAL"
STACKS_SIGNAL = 45
"""A real-time signal, of which no library of this field is known to make use."""
ANSWER_LIMIT_S = waiting_limit_s(0.4)
"""For all ranks of a node together: those that are asked have little longer to live."""
_LOOK_S = 0.01
_MOST_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRankProcess:
    """The process of a rank that is asked, or, where none can be, the one that torchrun started."""

    rank: int
    pid: int
    can_answer: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenStack:
    stack: RankStack
    text: str
    """As faulthandler wrote it, all threads; empty where it did not."""
    pid: int
    cpu_s: float
    """That the process and its ended children have used so far."""


def install_hook(folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with which the command's Python loads the hook. Raises OSError."""
    code = pkgutil.get_data("broadgauge.probes", "rank_hook.py")
    assert code is not None, "it is a part of this package"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_bytes(code)
    paths = [str(folder), *filter(None, [environment.get("PYTHONPATH")])]
    return {
        **environment,
        "PYTHONPATH": os.pathsep.join(paths),
        STACKS_VARIABLE: str(folder),
        SIGNAL_VARIABLE: str(STACKS_SIGNAL),
    }


class CommandRanks:
    """The ranks below one torchrun."""

    def __init__(self, torchrun_pid: int, folder: Path, script_folder: str | None) -> None:
        """`folder`: where the hook is, and writes."""
        self._torchrun_pid = torchrun_pid
        self._folder = folder
        self._script_folder = script_folder

    def take(self) -> tuple[TakenStack, ...]:
        """Each rank's stack, the first rank first; within ANSWER_LIMIT_S."""
        processes = rank_processes(self._torchrun_pid)
        sizes = {each.pid: self._size(each.pid) for each in processes}
        for each in processes:
            if each.can_answer:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(each.pid, STACKS_SIGNAL)
        deadline_s = time.monotonic() + ANSWER_LIMIT_S
        texts = {each.pid: self._answer(each, sizes[each.pid], deadline_s) for each in processes}
        return tuple(self._taken(each, texts[each.pid]) for each in processes)

    def _taken(self, process: CommandRankProcess, text: str) -> TakenStack:
        state, cpu_s = _state_and_cpu_s(process.pid)
        stack = RankStack(
            rank=process.rank, frames=last_dump(text), state=state, folder=self._script_folder
        )
        return TakenStack(stack=stack, text=text, pid=process.pid, cpu_s=cpu_s)

    def _answer(self, process: CommandRankProcess, offset: int, deadline_s: float) -> str:
        """What was written from `offset` on, once it grows no more."""
        if not process.can_answer:
            return ""
        size = self._size(process.pid)
        while time.monotonic() < deadline_s:
            time.sleep(_LOOK_S)
            before, size = size, self._size(process.pid)
            if size == before and size > offset:
                break
        with suppress(OSError), self._file(process.pid).open("rb") as file:
            file.seek(max(offset, size - _MOST_BYTES))
            return file.read(_MOST_BYTES).decode(errors="replace")
        return ""

    def _file(self, pid: int) -> Path:
        return self._folder / f"stacks.{pid}"

    def _size(self, pid: int) -> int:
        try:
            return self._file(pid).stat().st_size
        except OSError:
            return 0


def rank_processes(torchrun_pid: int) -> tuple[CommandRankProcess, ...]:
    """Of each rank that torchrun has started: its outermost process that can answer, else the
    outermost of all."""
    found: dict[int, CommandRankProcess] = {}
    for pid in _below(torchrun_pid):
        rank = _rank_of(pid)
        if rank is None:
            continue
        process = CommandRankProcess(rank=rank, pid=pid, can_answer=_handles(pid, STACKS_SIGNAL))
        known = found.get(rank)
        if known is None or (process.can_answer and not known.can_answer):
            found[rank] = process
    return tuple(found[rank] for rank in sorted(found))


def abort(pid: int) -> None:
    """With PYTHONFAULTHANDLER set, Python writes its stacks and ends."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGABRT)


def _below(pid: int) -> Iterator[int]:
    """All that it has started, and what those have, the nearest first."""
    waiting = [pid]
    while waiting:
        parent = waiting.pop(0)
        for listed in sorted(Path(f"/proc/{parent}/task").glob("*/children")):
            with suppress(OSError):
                children = [int(each) for each in listed.read_text().split()]
                yield from children
                waiting += children


def _rank_of(pid: int) -> int | None:
    """By its environment, as it was started."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    told = dict(each.split(b"=", 1) for each in variables if b"=" in each)
    rank = told.get(b"RANK", b"")
    return int(rank) if rank.isdigit() and b"LOCAL_RANK" in told else None


def _handles(pid: int, number: int) -> bool:
    """Source: proc_pid_status(5), SigCgt."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:
        return False
    caught = next((line for line in lines if line.startswith("SigCgt:")), "SigCgt: 0")
    return bool(int(caught.split()[1], 16) & 1 << (number - 1))


def _state_and_cpu_s(pid: int) -> tuple[str, float]:
    """Source: proc_pid_stat(5), fields 3 and 14 to 17."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return "", 0.0
    fields = text[text.rindex(")") + 2 :].split()
    return fields[0], sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
