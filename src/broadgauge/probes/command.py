"""What runs the user's own script? `python -m broadgauge.probes.command`, once a node.

It starts torchrun with the node's part of a static rendezvous, passes the output on to its own
(the node's log), and on node 0 reads the metrics from it. stdout and stderr are read as one
stream, since loggers write to either; samples are those of all ranks of node 0 that print them.
torch is not imported here.
"""

import faulthandler
import importlib.metadata
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from broadgauge.messages.rank import (
    COMMAND_FD_VARIABLE,
    RESULT_FD_VARIABLE,
    CommandSamples,
    Done,
    EndCommand,
    Failed,
    Hello,
    TrialCommand,
)
from broadgauge.messages.tasks import CommandTask, RankLayout
from broadgauge.messages.vocabulary import ErrorKind, Phase
from broadgauge.probes.channel import Channel, leave_at_once
from broadgauge.probes.command_output import LineSplitter, SampleReader
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.trial import RefusedError, Trial

OWN_VARIABLES = (
    COMMAND_FD_VARIABLE,
    RESULT_FD_VARIABLE,
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"),
)
"""Of this process; torchrun sets its ranks' own."""


QUIET_S = 0.5


class CommandFailedError(Exception):
    """The user's command ended with something other than 0."""


class Torchrun:
    """The running command; ended with this process, also when the agent is gone."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, command: list[str], folder: str | None, reader: SampleReader) -> int:
        """Runs to its end in `folder`; its exit code. Output is passed on as it comes."""
        lines = LineSplitter()
        with subprocess.Popen(
            command,
            cwd=folder,
            env=child_environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as self._process:
            for data in _output_of(self._process):
                _pass_on(data)
                for line in lines.feed(data):
                    reader.feed(line)
        for line in lines.finish():
            reader.feed(line)
        return self._process.returncode

    def abort_ranks(self) -> None:
        """Have each rank write Python's stacks and end: SIGABRT, with PYTHONFAULTHANDLER set."""
        if self._process is None or self._process.poll() is not None:
            return
        for listed in Path(f"/proc/{self._process.pid}/task").glob("*/children"):
            for pid in listed.read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGABRT)

    def end(self) -> None:
        """torchrun passes SIGTERM on to its ranks."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()


def _output_of(process: "subprocess.Popen[bytes]") -> Iterator[bytes]:
    """What it writes, until it ends; a child that lives on may hold its end of the pipe open."""
    assert process.stdout is not None
    while True:
        ready, _, _ = select.select([process.stdout], [], [], QUIET_S)
        if ready:
            data = os.read(process.stdout.fileno(), 65_536)
            if not data:
                return
            yield data
        elif process.poll() is not None:
            return


def main() -> int:
    torchrun = Torchrun()

    def dump_stacks(_number: int, _frame: object) -> None:
        """The time is over: where does the user's script hang? That is asked last of all."""
        faulthandler.dump_traceback(all_threads=True)
        torchrun.abort_ranks()

    signal.signal(signal.SIGUSR1, dump_stacks)

    def leave() -> None:
        torchrun.end()
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
            run_trial(trial, torchrun)
        except Exception as error:  # noqa: BLE001  a rank reports whatever ends it
            if not _is_told(error):
                traceback.print_exc()
            channel.send(_failure(trial.trial_id, error))
            return 1
        channel.send(Done(trial_id=trial.trial_id))
    return 0


def run_trial(trial: Trial, torchrun: Torchrun) -> None:
    """Runs the command once between two marks, and says what it printed."""
    task = trial.command.task
    if not isinstance(task, CommandTask):
        raise TypeError(f"a task of kind `{task.kind}` is run by broadgauge.probes.worker")
    folder = task.working_directory
    if folder is not None and not Path(folder).is_dir():
        raise RefusedError(f"working_directory {folder}: no such folder, from {Path.cwd()}")
    reader = SampleReader(task.metrics)
    trial.begin_phase(Phase.RENDEZVOUS, "torchrun")
    trial.mark("command:begin")
    trial.begin_phase(Phase.MEASURE, " ".join(task.command))
    exit_code = torchrun.run(
        torchrun_command(trial.layout, task, trial.identity, own_log()),
        task.working_directory,
        reader,
    )
    if exit_code == 0:
        trial.mark("command:end")
    if trial.identity.node == 0:
        _say_samples(trial, reader, exit_code)
    if exit_code != 0:
        raise CommandFailedError(_ended(exit_code, reader))


def torchrun_command(
    layout: RankLayout, task: CommandTask, identity: RankIdentity, log: Path | None
) -> list[str]:
    """Which command runs on this node? torchrun with a static rendezvous at node 0.

    torchrun keeps its own files beside our `log`; else they would stay in /tmp after a kill.
    """
    log_folder = [] if log is None else [f"--log-dir={log.with_suffix('.torchrun')}"]
    return [
        *(sys.executable, "-m", "torch.distributed.run"),
        f"--nnodes={layout.nodes}",
        f"--nproc-per-node={layout.ranks_per_node}",
        f"--node-rank={identity.node}",
        f"--master-addr={identity.master_addr}",
        f"--master-port={identity.master_port}",
        *log_folder,
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


def _say_samples(trial: Trial, reader: SampleReader, exit_code: int) -> None:
    for note in reader.notes:
        _pass_on(f"broadgauge: {note}\n".encode())
    trial.say(CommandSamples(trial_id=trial.trial_id, samples=reader.samples, exit_code=exit_code))
    missing = reader.what_is_missing()
    if missing is not None and exit_code == 0:
        raise RefusedError(_with_last_lines(missing, reader))


def _ended(exit_code: int, reader: SampleReader) -> str:
    """torchrun itself ends with 1 whatever its ranks ended with."""
    code = exit_code if reader.rank_exit_code is None else reader.rank_exit_code
    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
    return _with_last_lines(f"the command ended {how}", reader)


def _with_last_lines(message: str, reader: SampleReader) -> str:
    return "\n".join([f"{message}; its last lines:", *list(reader.last_lines)[-5:]])


def _failure(trial_id: str, error: Exception) -> Failed:
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
