"""Drives the installed command from outside, as a user would, and finds what it leaves behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.own_machine import interfaces, mounts
from tests.timeouts import HANG_S

COMMAND = (sys.executable, "-m", "broadgauge")
WITHOUT_TORCH = (sys.executable, str(Path(__file__).with_name("without_torch.py")))
"""The same with ranks that start in no time and make up what they measure."""
TAG_VARIABLE = "END_TO_END_TEST_TAG"
RANK, SCRIPTED_RANK = "broadgauge.probes.", "scripted_worker.py"
SUPERVISOR = "broadgauge.agent.supervisor"
"""Words of their command lines."""

TINY = """\
name: tiny
platform: {platform}
cluster: {{shapes: [{shapes}], device: cpu}}
networks:
  - {{name: slow, rate_gbps: 100 Mbit/s}}
  - {{name: reference}}
workloads:
  - kind: collectives
    ops: [all_reduce]
    sizes: [4 KiB, 1 MiB]
    budget_s: 50 ms
    max_iterations: 5
  - kind: train
    model: {{layers: 1, hidden: 64, heads: 2, seq_len: 32}}
    steps: 4
    block_steps: 2
    warm_up_steps: 1
launches: {launches}
"""


def tiny(platform: str = "emulated", shapes: str = "2x1", launches: int = 1) -> str:
    """An experiment of seconds."""
    return TINY.format(platform=platform, shapes=shapes, launches=launches)


def run_command(
    *arguments: str,
    folder: Path,
    timeout_s: float = HANG_S,
    command: tuple[str, ...] = COMMAND,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """The command in `folder`, to its end."""
    return subprocess.run(
        [*command, *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", **environment},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def only_run(folder: Path) -> Path:
    """The one run folder under `folder`/runs."""
    (run,) = (path for path in (folder / "runs").iterdir() if path.is_dir())
    return run


def records_of(run: Path) -> list[dict[str, Any]]:
    """Every record, each line having to be whole."""
    text = (run / "records.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def wait_until(is_so: Callable[[], bool], timeout_s: float = HANG_S, every_s: float = 0.02) -> None:
    """Raises AssertionError when it does not become so in time."""
    end_s = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < end_s, "waited in vain"
        time.sleep(every_s)


@dataclass
class Background:
    """The command while it runs, found again in every process by a tag in its environment."""

    arguments: tuple[str, ...]
    folder: Path
    command: tuple[str, ...] = COMMAND
    environment: Mapping[str, str] = field(default_factory=dict)
    tag: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __enter__(self) -> "Background":
        self.before = MachineState.now()
        self.temporary = Path(tempfile.mkdtemp(prefix="bg"))
        self.process = subprocess.Popen(
            [*self.command, *self.arguments],
            cwd=self.folder,
            env={
                **os.environ,
                "TMPDIR": str(self.temporary),
                **self.environment,
                TAG_VARIABLE: self.tag,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        return self

    def __exit__(self, *unused: object) -> None:
        for pid in self.pids():
            kill_if_there(pid)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        shutil.rmtree(self.temporary)

    def pids(self, word: str = "") -> list[int]:
        """Living processes of this command, those whose command line holds `word`."""
        return [pid for pid, line in tagged_processes(self.tag) if word in line]

    def wait_for_ranks(self, number: int) -> list[int]:
        """Pids of the ranks, once that many live."""
        wait_until(lambda: len(self.pids(RANK)) >= number)
        return self.pids(RANK)

    def wait_for_logs(self, words: str, number: int) -> None:
        """Until the logs of so many ranks say it."""

        def is_said() -> bool:
            logs = self.folder.glob("runs/*/logs/*")
            return sum(words in path.read_text(errors="replace") for path in logs) >= number

        wait_until(is_said)

    def end(self, timeout_s: float = HANG_S) -> tuple[int, str]:
        """Exit code and output."""
        output, _ = self.process.communicate(timeout=timeout_s)
        return self.process.returncode, output

    def assert_nothing_is_left(self) -> None:
        """No process, interface, mount, shared memory, or file outside the run folder."""
        wait_until(lambda: not self.pids())
        wait_until(lambda: MachineState.now().links == self.before.links)
        after = MachineState.now()
        assert after.mounts == self.before.mounts
        assert after.shared_memory <= self.before.shared_memory
        assert [path.name for path in self.temporary.iterdir()] == []


def kill_if_there(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def tagged_processes(tag: str) -> Iterator[tuple[int, str]]:
    """Living processes with the tag in their environment, and their command lines."""
    wanted = f"{TAG_VARIABLE}={tag}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if wanted in environment.split(b"\0") and state != "Z":
            yield int(entry.name), line


@dataclass(frozen=True)
class MachineState:
    """What a run might leave where the tests run: see tests/own_machine.py."""

    links: frozenset[str]
    mounts: frozenset[str]
    shared_memory: frozenset[str]

    @classmethod
    def now(cls) -> "MachineState":
        ours = ("broadgauge", "torch", "nccl", "gloo")
        names = (path.name for path in Path("/dev/shm").iterdir())
        return cls(
            links=interfaces(),
            mounts=mounts(),
            shared_memory=frozenset(name for name in names if name.lower().startswith(ours)),
        )
