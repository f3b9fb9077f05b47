"""Two machines with sshd that stay while tests come and go, and the tool on a machine beside them?

The rig of rig.py runs a program that waits. A test's command is run in its namespaces, in a folder
of the test's own; what it leaves on the machines is asked afterwards.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.driving import only_run, records_of, wait_until
from tests.platforms.hosts.rig import SHARED, TEMPORARY, RigPlan, command_line, run_beside

ROOT = Path(__file__).parents[3]
TOOL = (sys.executable, "-m", "broadgauge")
SCRIPTED = (sys.executable, "-m", "tests.e2e.without_torch")
"""The same with ranks that start in no time and make up what they measure."""
TOOL_WITHOUT_PATIENCE = (sys.executable, "-m", "tests.platforms.hosts.without_patience")
SIGNALS = "INT,HUP,TERM"
IGNORING = 'trap "" INT HUP TERM; exec "$0" "$@"'
"""What enters the namespaces outlives what it is to tell the end of."""
HANG_S = 300.0
"""Longer than anything here takes on any machine."""
LOOK_EVERY_S = 0.25
"""To read all of /proc takes some hundredths of a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """Something that runs on the machines."""

    pid: int
    """As seen from here."""
    machine: str
    line: str


@dataclass(frozen=True, slots=True)
class Hold:
    """A file that ranks, or a script, stay for."""

    path: Path

    @property
    def there(self) -> str:
        """Its path on the machines."""
        return f"{SHARED}/{self.path.name}"

    def let_go(self) -> None:
        self.path.unlink(missing_ok=True)


ROOM_BYTES = 1 << 18


@dataclass(slots=True)
class Machines:
    """The rig while it lives."""

    folder: Path
    root_pid: int
    """The rig's PID 1, as seen from here."""

    def processes(self, word: str = "", machine: str = "") -> list[Process]:
        """What lives there and holds this word in its command line; no sshd, nor the rig."""
        mine = _namespace(self.root_pid, "pid")
        names = {_namespace(pid, "uts"): name for name, pid in self._servers().items()}
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == self.root_pid:
                continue
            try:
                if _namespace(int(entry.name), "pid") != mine:
                    continue
                words = (entry / "cmdline").read_bytes().split(b"\0")
                name = names.get(_namespace(int(entry.name), "uts"), "tool")
            except OSError:
                continue
            line = b" ".join(words).decode(errors="replace").strip()
            if line and not line.startswith(("sshd", "/usr/sbin/sshd", "sleep infinity")):
                found.append(Process(pid=int(entry.name), machine=name, line=line))
        return [each for each in found if word in each.line and machine in each.machine]

    def temporary(self, machine: str) -> list[str]:
        """Files in its temporary folder."""
        folder = Path(f"/proc/{self._servers()[machine]}/root/run/temporary")
        return [str(path.relative_to(folder)) for path in folder.rglob("*")]

    def on(self, machine: str, *command: str) -> None:
        """Run a command as root of this machine (`tool`: where the tool is)."""
        pid = self.root_pid if machine == "tool" else self._servers()[machine]
        subprocess.run(["nsenter", "-t", str(pid), "-a", *command], check=True, timeout=30)

    def entry(self, machine: str) -> tuple[str, ...]:
        """Words before a command that is to see its files."""
        return ("nsenter", "-t", str(self._servers()[machine]), "-m")

    def cut_off(self, machine: str) -> None:
        """What is sent to or from it on the control network is dropped; no side is told."""
        self._set_port(machine, "disabled")

    def join(self, machine: str) -> None:
        """Again."""
        self._set_port(machine, "forwarding")

    def _set_port(self, machine: str, state: str) -> None:
        number = {"disabled": "0", "forwarding": "3"}[state]
        port = machine.replace("node", "c")
        self.on("tool", "bridge", "link", "set", "dev", port, "state", number)

    def fill_disk(self, machine: str) -> None:
        """Its temporary folder takes ROOM_BYTES more, less than a rank that lingered writes.

        When that rank's log is gone, what follows it has this room.
        """
        filler = f"{TEMPORARY}/filler"
        self.on(machine, "mount", "-o", "remount,size=16m", TEMPORARY)
        self.on(machine, "sh", "-c", f"cat /dev/zero > {filler} || true")
        self.on(machine, "truncate", "--size", f"-{ROOM_BYTES}", filler)

    def free_disk(self, machine: str) -> None:
        """Again."""
        self.on(machine, "rm", "-f", f"{TEMPORARY}/filler")
        self.on(machine, "mount", "-o", "remount,size=50%", TEMPORARY)

    def left_over(self, patience_s: float = HANG_S) -> list[str]:
        """What is there after a while that should not be."""
        end_s = time.monotonic() + patience_s
        while True:
            found = [f"{each.machine}: {each.line[:200]}" for each in self.processes()]
            found += [f"{name}: {p}" for name in self._servers() for p in self.temporary(name)]
            if not found or time.monotonic() > end_s:
                return found
            time.sleep(LOOK_EVERY_S)

    def wait_for_end(self, word: str = "", machine: str = "") -> None:
        """Until no such process is there."""
        wait_until(lambda: not self.processes(word, machine), HANG_S, LOOK_EVERY_S)

    def wait_for_end_of(self, pids: set[int]) -> None:
        """Until none of these is there."""
        wait_until(lambda: not pids & {each.pid for each in self.processes()}, HANG_S, LOOK_EVERY_S)

    def wait_for(self, word: str, machine: str = "") -> None:
        """Until there is one."""
        wait_until(lambda: bool(self.processes(word, machine)), HANG_S, LOOK_EVERY_S)

    @contextmanager
    def held(self, name: str = "hold") -> "Iterator[Hold]":
        """There is a file that something on the machines waits for the end of."""
        hold = Hold(self.folder / name)
        hold.path.touch()
        try:
            yield hold
        finally:
            hold.let_go()

    def clear(self) -> None:
        """So that one test's fault is not the next one's."""
        for process in self.processes():
            os.kill(process.pid, signal.SIGKILL)
        for name in self._servers():
            self.on(name, "find", "/run/temporary", "-mindepth", "1", "-delete")

    def _servers(self) -> dict[str, int]:
        found = {}
        for pid in _children(self.root_pid):
            line = command_line(pid)
            if line.startswith("sshd") or "/usr/sbin/sshd" in line:
                found[line.split("/")[-1].split(".sshd")[0]] = pid
        return found


@dataclass(slots=True)
class Tool:
    """A command of the tool beside the machines, in a folder of its own."""

    machines: Machines
    folder: Path
    num_started: int = 0

    def start(
        self, *arguments: str, command: tuple[str, ...] = SCRIPTED, **variables: str
    ) -> "Started":
        """In a session of its own, as in a terminal's: signals reach it and its children."""
        environment = {
            **os.environ,
            "PATH": f"{self.machines.folder}/bin:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT}/src:{ROOT}",
            "COLUMNS": "200",
            "PYTHONUNBUFFERED": "1",
            **variables,
        }
        enter = ("sh", "-c", IGNORING, "nsenter", "-t", str(self.machines.root_pid), "-a")
        there = ("env", f"--default-signal={SIGNALS}", "sh", "-c", 'cd "$0" && exec "$@"')
        self.num_started += 1
        words = self.folder / f"said{self.num_started}"
        with words.open("w") as output:
            process = subprocess.Popen(
                [*enter, *there, str(self.folder), *command, *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return Started(process, words)

    def run(self, *arguments: str, code: int = 0, timeout_s: float = HANG_S, **options: Any) -> str:
        """To its end; what it said."""
        return self.start(*arguments, **options).end(code, timeout_s)

    def write(self, text: str) -> None:
        (self.folder / "e.yaml").write_text(text)

    @property
    def records(self) -> list[dict[str, Any]]:
        return records_of(only_run(self.folder))

    def wait_for_ranks(self, number: int = 2, words: str = "lingers") -> None:
        """Until so many ranks stand where LINGER_IN says, as their logs on the machines do."""
        wait_until(lambda: self._count_logs(words) >= number, HANG_S, LOOK_EVERY_S)

    def _count_logs(self, words: str) -> int:
        found = 0
        for pid in self.machines._servers().values():
            for path in Path(f"/proc/{pid}/root/run/temporary").glob("broadgauge-*/logs/*"):
                try:
                    found += words in path.read_text(errors="replace")
                except OSError:  # it ended meanwhile
                    continue
        return found


@dataclass(slots=True)
class Started:
    """The tool while it runs."""

    process: "subprocess.Popen[bytes]"
    words: Path
    """The file of its output."""

    @property
    def said(self) -> str:
        """Up to now."""
        return self.words.read_text()

    @property
    def pid(self) -> int:
        """Of the tool, and not of what entered the namespaces."""
        wait_until(lambda: bool(_children(self.process.pid)), HANG_S)
        return _children(self.process.pid)[0]

    def interrupt(self, number: int = signal.SIGINT) -> None:
        """As a terminal does: the tool and all in its process group."""
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait(HANG_S)

    def end(self, code: int | None = 0, timeout_s: float = HANG_S) -> str:
        """Its exit code and what it said."""
        ended = self.process.wait(timeout_s)
        assert code is None or ended == code, (ended, self.said)
        return self.said


@contextmanager
def machines_in(folder: Path, **plan: Any) -> Iterator[Machines]:
    """The rig in this folder, until the end."""
    up = folder / "up"
    command = ("sh", "-c", f"touch {up}; exec sleep infinity")
    beside = run_beside(RigPlan(folder=str(folder), **plan), command, cwd=ROOT)
    try:
        wait_until(lambda: up.exists() or beside.process.poll() is not None, HANG_S)
        assert beside.process.poll() is None, "the rig ended"
        (root_pid,) = _children(beside.process.pid)
        yield Machines(folder=folder, root_pid=root_pid)
    finally:
        for pid in _children(beside.process.pid):
            os.kill(pid, signal.SIGKILL)  # PID 1: all in its namespace ends with it
        beside.process.wait()


def host(name: str, python: str = sys.executable, **more: str) -> str:
    """An entry of `hosts`."""
    told = {"ssh": name, "python": python, **more}
    return "{" + ", ".join(f"{key}: {value}" for key, value in told.items()) + "}"


def experiment(
    *hosts: str,
    shapes: str = "2x1",
    launches: int = 2,
    more: str = "",
    platform: str = "hosts",
) -> str:
    """Two trials a launch, of ranks that make up what they measure."""
    listed = ", ".join(hosts or (host("node0"), host("node1")))
    return f"""\
name: hosts-test
platform: {platform}
hosts: [{listed}]
cluster: {{shapes: [{shapes}], device: cpu}}
networks:
  - {{name: slow, rate_gbps: 200 Mbit/s, found: {{interface: eth0}}}}
workloads:
  - {{kind: collectives, name: one, ops: [all_reduce], sizes: [1 MiB], budget_s: 200 ms{more}}}
  - {{kind: collectives, name: two, ops: [all_reduce], sizes: [2 MiB], budget_s: 200 ms{more}}}
launches: {launches}
"""


def wrapped_python(folder: Path, name: str, script: str) -> str:
    """A `python:` that is this script; `$PYTHON` in it is the true one."""
    path = folder / name
    path.write_text("#!/bin/sh\n" + script.replace("$PYTHON", sys.executable) + "\n")
    path.chmod(0o755)
    return str(path)


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _namespace(pid: int, kind: str) -> str:
    return str(Path(f"/proc/{pid}/ns/{kind}").readlink())
