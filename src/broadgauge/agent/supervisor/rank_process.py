"""How does a rank start, and what does the supervisor hold of it?"""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from broadgauge.agent.supervisor.channel import Inlet, Outlet
from broadgauge.agent.supervisor.programs import Folders, argv_of, rank_environment
from broadgauge.agent.supervisor.stack_dump import StackDump
from broadgauge.messages.codec import DecodeError, JsonObject
from broadgauge.messages.launch_order import LaunchOrder, RankPlan
from broadgauge.messages.rank import COMMAND_FD_VARIABLE, RESULT_FD_VARIABLE, STACKS
from broadgauge.messages.waiting_limits import factor_variables

COMMAND_PROGRAM = "command"
_CAUGHT_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD)
"""What this process ignores or handles, and a rank must find as the kernel has it."""


class RankStartError(RuntimeError):
    """A rank's program could not be started."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.hint: str | None = None
        if "Permission denied" in message and os.geteuid() == 0:
            self.hint = (
                "ranks have no capabilities, so root too needs the file's own permissions: "
                "run as the owner of the folder, or let others enter it (chmod o+x)"
            )


@dataclass(slots=True, kw_only=True)
class RankProcess:
    """A rank, from its start to its last byte."""

    plan: RankPlan
    pid: int
    commands: Outlet
    results: Inlet
    log_fd: int
    is_running: bool = True
    has_told_stacks: bool = False
    """Those of all ranks of its command, which are in its log."""
    _dump: StackDump | None = None

    def ask_for_stacks(self) -> None:
        """Into its log. What runs a user's command asks its ranks, and tells when they have."""
        if self.is_running:
            self.has_told_stacks = False
            self._dump = StackDump.ask(self.pid, self.log_fd)

    def hear_stacks(self, message: JsonObject) -> None:
        """Those of a command's ranks; one that was not asked in time writes them as it ends."""
        with suppress(DecodeError):
            self.has_told_stacks = all(each.frames for each in STACKS(message).ranks)

    @property
    def has_written_stacks(self) -> bool:
        """Is there nothing more of them to come? Unknown is no."""
        if not self.is_running or self.has_told_stacks:
            return True
        if self._dump is None or self.plan.program == COMMAND_PROGRAM:
            return False
        return self._dump.is_whole()

    def signal_group(self, number: signal.Signals) -> None:
        """To the rank and what it started in its process group."""
        if self.is_running:
            os.killpg(self.pid, number)

    def note(self, text: str) -> None:
        """Write a line of the supervisor's own to the rank's log, if the disk takes it."""
        try:
            os.write(self.log_fd, f"# broadgauge: {text}\n".encode(errors="replace"))
        except OSError:
            return

    def close(self) -> None:
        """Let go of its pipes and log."""
        self.commands.close()
        self.results.close()
        if self.log_fd >= 0:
            os.close(self.log_fd)
            self.log_fd = -1


def start_rank(
    launch: LaunchOrder, plan: RankPlan, folders: Folders, become: Callable[[], None]
) -> RankProcess:
    """Fork and exec one rank; `become` runs in the child, just before its exec.

    Raises RankStartError in words when any step up to the exec failed.
    """
    log = folders.logs / plan.log
    try:
        log_fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError as error:
        raise RankStartError(f"the log {log} can't be written: {error}") from error
    command_in, command_out = os.pipe()
    result_in, result_out = os.pipe()
    error_in, error_out = os.pipe()
    pid = os.fork()
    if pid == 0:
        environment = rank_environment(launch, plan, folders, os.environ)
        start = _Start(argv=argv_of(plan.program), environment=environment, folder=folders.working)
        _become_rank(start, become, (command_in, result_out, log_fd, error_out))
    for fd in (command_in, result_out, error_out):
        os.close(fd)
    with os.fdopen(error_in, "rb") as pipe:
        trouble = pipe.read()
    if trouble:
        os.waitpid(pid, 0)
        raise RankStartError(f"rank {plan.rank} did not start: {trouble.decode()}")
    return RankProcess(
        plan=plan, pid=pid, commands=Outlet(command_out), results=Inlet(result_in), log_fd=log_fd
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """What the child becomes."""

    argv: tuple[str, ...]
    environment: dict[str, str]
    folder: Path


def _become_rank(
    start: _Start,
    become: Callable[[], None],
    fds: tuple[int, int, int, int],
) -> None:
    """The forked child up to its exec; never returns."""
    command_in, result_out, log_fd, error_out = fds
    step = "its process"
    try:
        os.setsid()
        for number in _CAUGHT_BY_PYTHON:
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        step = "its node"
        become()
        step = f"the working folder {start.folder}"
        os.chdir(start.folder)
        step = f"the program {start.argv[0]}"
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log_fd, 1)
        os.dup2(log_fd, 2)
        for fd in (command_in, result_out):
            os.set_inheritable(fd, True)  # noqa: FBT003
        pipes = {COMMAND_FD_VARIABLE: str(command_in), RESULT_FD_VARIABLE: str(result_out)}
        os.execvpe(start.argv[0], start.argv, start.environment | factor_variables() | pipes)
    except BaseException as error:  # noqa: BLE001  the last frame of a forked child
        os.write(error_out, f"{step}: {error}".encode(errors="replace")[:4000])
    finally:
        os._exit(127)
