"""What runs the user's own script? `python -m broadgauge.probes.command`, once a node.

It starts torchrun with the node's part of a static rendezvous and passes on what it and its ranks
write to its own output (the node's log). From each rank's output it reads the metrics, sees by
their pace when the job hangs, and asks each rank for its stack then. torch is not imported here.
"""

import faulthandler
import importlib.metadata
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from broadgauge.messages.pythons import NoSuchPythonError, activated, find_python
from broadgauge.messages.rank import (
    COMMAND_FD_VARIABLE,
    COUNTED_STEPS,
    RESULT_FD_VARIABLE,
    CommandSamples,
    CountNow,
    Done,
    EndCommand,
    Failed,
    Hello,
    Stacks,
    Stalled,
    TrialCommand,
)
from broadgauge.messages.tasks import CommandTask, RankLayout
from broadgauge.messages.vocabulary import ErrorKind, Phase
from broadgauge.messages.waiting_limits import FACTOR_VARIABLE
from broadgauge.probes.channel import Channel, leave_at_once
from broadgauge.probes.command_failure import describe_end
from broadgauge.probes.command_ranks import CommandRanks, TakenStack, abort, install_hook
from broadgauge.probes.command_streams import CommandStreams
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.stall import Pace, StallSample, StallWatch
from broadgauge.probes.step_counts import StepCounts
from broadgauge.probes.trial import RefusedError, Trial

OWN_VARIABLES = (
    COMMAND_FD_VARIABLE,
    RESULT_FD_VARIABLE,
    FACTOR_VARIABLE,
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"),
)
"""Of this process; torchrun sets its ranks' own."""

TICK_S = 0.1
"""Between two looks at what the ranks have written."""
_LAST_LINES = 20


class CommandFailedError(Exception):
    """The user's command ended with something other than 0."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.message)
        self.failed = failed


class RunningCommand:
    """torchrun and its ranks on this node; ended with this process, also when the agent is gone."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self.wants_stacks = False
        """The agent has asked where the ranks are."""

    def run(
        self,
        command: list[str],
        folder: str | None,
        environment: Mapping[str, str],
        streams: CommandStreams,
        on_tick: Callable[[int], None],
    ) -> int:
        """Runs to its end in `folder`; its exit code. Output is passed on as it comes.

        `on_tick` is given torchrun's pid, again and again.
        """
        with subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as self._process:
            for data in _output_of(self._process):
                if data:
                    streams.take(data)
                on_tick(self._process.pid)
        streams.finish()
        return self._process.returncode

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def end(self) -> None:
        """torchrun passes SIGTERM on to its ranks."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()


def _output_of(process: "subprocess.Popen[bytes]") -> Iterator[bytes]:
    """What it writes, until it ends, and nothing at every tick; a child that lives on may hold its
    end of the pipe open."""
    assert process.stdout is not None
    while True:
        ready, _, _ = select.select([process.stdout], [], [], TICK_S)
        if ready:
            data = os.read(process.stdout.fileno(), 65_536)
            if not data:
                return
            yield data
        elif process.poll() is not None:
            return
        else:
            yield b""


class _Follower:
    """What is done at each tick: the ranks' output is read, and their pace watched."""

    def __init__(
        self, trial: Trial, streams: CommandStreams, running: RunningCommand, hook: Path
    ) -> None:
        task = trial.command.task
        assert isinstance(task, CommandTask)
        self._trial, self._streams, self._running, self._hook = trial, streams, running, hook
        self._script_folder = str(Path(task.working_directory or ".").absolute())
        self._metric = task.metrics[0].name
        stall_s, now_s = trial.command.stall_s, time.monotonic()
        self._watch = None if stall_s is None else StallWatch(pace=Pace(stall_s), output_s=now_s)
        self._read_s = now_s - TICK_S
        self._counts = StepCounts()

    def __call__(self, torchrun_pid: int) -> None:
        now_s = time.monotonic()
        if now_s - self._read_s < TICK_S:
            return
        self._read_s = now_s
        has_written = self._streams.read()
        if self._trial.identity.node == 0:
            num_samples = self._streams.reader_of(self._metric)[1].num_samples_of(self._metric)
            if self._counts.is_due(num_samples, now_s):
                self._count(num_samples)
        ranks = CommandRanks(torchrun_pid, self._hook, self._script_folder)
        if self._running.wants_stacks:
            self._running.wants_stacks = False
            self._tell_stacks(ranks.take())
        if self._watch is not None:
            self._follow_pace(self._watch, ranks, now_s, has_written=has_written)

    def _follow_pace(
        self, watch: StallWatch, ranks: CommandRanks, now_s: float, *, has_written: bool
    ) -> None:
        if count := self._streams.new_samples():
            watch.sample(now_s, count)
        elif has_written:
            watch.output(now_s)
        if not watch.wants_look(now_s):
            return
        taken = ranks.take()
        if not taken:  # they have ended, and torchrun is about to
            watch.output(now_s)
            return
        look = StallSample(
            at_s=now_s,
            num_ranks=len(self._streams.ranks),
            stacks=tuple(each.stack for each in taken),
            cpu_s=tuple(each.cpu_s for each in taken),
        )
        if watch.look(look):
            self._watch = None
            self._tell_stall(watch.pace, now_s)

    def _count(self, num_samples: int) -> None:
        label = f"{COUNTED_STEPS}{num_samples}"
        self._trial.channel.send(CountNow(trial_id=self._trial.trial_id, label=label))

    def _tell_stall(self, pace: Pace, now_s: float) -> None:
        message = f"no `{self._metric}` {pace.words(now_s)}"
        self._trial.channel.send(Stalled(trial_id=self._trial.trial_id, message=message))

    def _tell_stacks(self, taken: tuple[TakenStack, ...]) -> None:
        """Into the log, and to the tool; a rank that did not answer writes them as it ends."""
        for each in taken:
            stack = each.stack
            head = f"# broadgauge: stacks of rank {stack.rank}, pid {each.pid}, {stack.state}\n"
            _pass_on((head + each.text).encode())
        stacks = tuple(each.stack for each in taken)
        self._trial.channel.send(Stacks(trial_id=self._trial.trial_id, ranks=stacks))
        for each in taken:
            if not each.stack.frames:
                abort(each.pid)


def main() -> int:
    running = RunningCommand()

    def ask_for_stacks(_number: int, _frame: object) -> None:
        """The time is over: where does the user's script hang?"""
        running.wants_stacks = True
        if not running.is_running:
            faulthandler.dump_traceback(all_threads=True)

    signal.signal(signal.SIGUSR1, ask_for_stacks)

    def leave() -> None:
        running.end()
        leave_at_once()

    identity = RankIdentity.from_environment(os.environ)
    channel = Channel.from_environment(os.environ, on_lost=leave)
    channel.send(
        Hello(
            rank=identity.rank,
            pid=os.getpid(),
            torch=importlib.metadata.version("torch"),
            nccl=None,
            cuda=None,
        )
    )
    while not isinstance(command := channel.receive(), EndCommand):
        if not isinstance(command, TrialCommand):
            raise TypeError(f"waiting for a trial, got {command!r}")
        trial = Trial(command=command, identity=identity, channel=channel)
        try:
            run_trial(trial, running)
        except Exception as error:  # noqa: BLE001  a rank reports whatever ends it
            if not _is_told(error):
                traceback.print_exc()
            channel.send(_failure(trial.trial_id, error))
            return 1
        channel.send(Done(trial_id=trial.trial_id))
    return 0


def run_trial(trial: Trial, running: RunningCommand) -> None:
    """Runs the command once between two marks, and says what it printed."""
    task = trial.command.task
    if not isinstance(task, CommandTask):
        raise TypeError(f"a task of kind `{task.kind}` is run by broadgauge.probes.worker")
    folder = task.working_directory
    if folder is not None and not Path(folder).is_dir():
        raise RefusedError(f"working_directory {folder}: no such folder, from {Path.cwd()}")
    trial.begin_phase(Phase.RENDEZVOUS, "torchrun")
    trial.mark("command:begin")
    trial.begin_phase(Phase.MEASURE, " ".join(task.command))
    with _torchrun_folder() as torchrun_folder:
        streams = CommandStreams(task.metrics, node_ranks(trial), torchrun_folder, _pass_on)
        hook = torchrun_folder / "hook"
        environment = child_environment(os.environ)
        python = sys.executable
        if task.python is not None:
            found = _find_python(task.python, environment)
            python, environment = str(found), activated(found, environment)
        if task.stack_hook:
            environment = install_hook(hook, environment)
        exit_code = running.run(
            torchrun_command(trial.layout, task, trial.identity, torchrun_folder, python),
            folder,
            environment,
            streams,
            _Follower(trial, streams, running, hook),
        )
        shutil.rmtree(hook, ignore_errors=True)
        streams.remove()
    if exit_code == 0:
        trial.mark("command:end")
    _say_samples(trial, task, streams, exit_code)
    if exit_code != 0:
        where = str(Path(folder or ".").absolute())
        raise CommandFailedError(describe_end(trial.trial_id, streams, exit_code, where))


def _find_python(text: str, environment: Mapping[str, str]) -> Path:
    try:
        return find_python(text, Path.cwd(), environment)
    except NoSuchPythonError as error:
        raise RefusedError(str(error)) from error


def node_ranks(trial: Trial) -> range:
    """Which ranks of the world does this node's torchrun start?"""
    each = trial.layout.ranks_per_node
    return range(trial.identity.node * each, (trial.identity.node + 1) * each)


@contextmanager
def _torchrun_folder() -> Iterator[Path]:
    """Beside our log, so that it is kept; where that is a terminal or a pipe, for this trial."""
    log = own_log()
    if log is not None:
        yield log.with_suffix(".torchrun")
        return
    with tempfile.TemporaryDirectory(prefix="broadgauge-torchrun-") as folder:
        yield Path(folder)


def torchrun_command(
    layout: RankLayout,
    task: CommandTask,
    identity: RankIdentity,
    log_folder: Path,
    python: str = sys.executable,
) -> list[str]:
    """Which command runs on this node? torchrun with a static rendezvous at node 0, each rank's
    output in a file of its own."""
    return [
        *(python, "-m", "torch.distributed.run"),
        f"--nnodes={layout.nodes}",
        f"--nproc-per-node={layout.ranks_per_node}",
        f"--node-rank={identity.node}",
        f"--master-addr={identity.master_addr}",
        f"--master-port={identity.master_port}",
        f"--log-dir={log_folder}",
        "--redirects=3",
        *task.command,
    ]


def own_log() -> Path | None:
    """The file that this process's output goes to; None: a terminal or a pipe."""
    log = Path("/proc/self/fd/1").resolve()
    return log if log.is_file() else None


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The node's variables without this process's own; output unbuffered, to see it in time."""
    kept = {name: value for name, value in environment.items() if name not in OWN_VARIABLES}
    return kept | {"PYTHONUNBUFFERED": "1"}


def _say_samples(trial: Trial, task: CommandTask, streams: CommandStreams, exit_code: int) -> None:
    """Of each metric the first rank's that printed it, with what is to be known of them."""
    found = {metric.name: streams.reader_of(metric.name) for metric in task.metrics}
    for note in dict.fromkeys(note for _, reader in found.values() for note in reader.notes):
        _pass_on(f"# broadgauge: {note}\n".encode())
    lines = streams.last_lines(streams.ranks[0])
    trial.say(
        CommandSamples(
            trial_id=trial.trial_id,
            samples={name: reader.samples[name] for name, (_, reader) in found.items()},
            exit_code=exit_code,
            ranks={name: rank for name, (rank, reader) in found.items() if reader.samples[name]},
            missing={
                name: why
                for name, (_, reader) in found.items()
                if (why := reader.missing().get(name)) is not None
            },
            last_lines=tuple(line for line in lines if line.strip())[-_LAST_LINES:],
        )
    )


def _failure(trial_id: str, error: Exception) -> Failed:
    if isinstance(error, CommandFailedError):
        return error.failed
    kind = ErrorKind.REFUSED if isinstance(error, RefusedError) else ErrorKind.CRASHED
    message = str(error) if _is_told(error) else f"{type(error).__name__}: {error}"
    return Failed(trial_id=trial_id, kind=kind, message=message)


def _is_told(error: Exception) -> bool:
    """Do the error's words say it all? Then our traceback would only hide the command's output."""
    return isinstance(error, RefusedError | CommandFailedError)


def _pass_on(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
