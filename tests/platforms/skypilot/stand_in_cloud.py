"""The cloud of the stand-in for `sky`: a process for each cluster, which outlives whoever asked.

It is SkyPilot's server and the cluster at once: it provisions, sets autodown, runs the first node's
`setup` and `run`, and goes when it was idle for so long. Source of the order: SkyPilot 0.14.1,
execution.py (autodown after files are sent), skylet/events.py (what counts as idle).
"""

import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.manifests.skypilot.task_model import Task

FOLDER = "SKY_STAND_IN"
"""Variable: where its state is."""
SPEED = "SKY_STAND_IN_SPEED"
SSH_CONFIG = "SKY_STAND_IN_SSH_CONFIG"
"""Variable: a file of ssh's configuration that has `node0`, `node1`, …; clusters are put there."""
TICK_S = 0.02
PROVISION_S = 30.0
"""In the cloud's time."""


def speed() -> float:
    """How many seconds of the cloud a second here is."""
    return float(os.environ.get(SPEED, "1"))


def store(path: Path, state: dict[str, Any]) -> None:
    """Whole or not at all."""
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(state))
    draft.replace(path)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Nobody else changes a cluster's state meanwhile."""
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def fork_cluster(folder: Path, name: str, task: Task) -> None:
    """The server's part, and the cluster's: in a session of its own, with nothing of `sky`'s."""
    if os.fork():
        return
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    try:
        _Cluster(folder, name, task).live()
    finally:
        os._exit(0)


class _Cluster:
    """From its machines' start to their end."""

    def __init__(self, folder: Path, name: str, task: Task) -> None:
        self._folder = folder
        self._name = name
        self._task = task
        self._path = folder / "clusters" / f"{name}.json"
        self._home = folder / f"{name}.home"
        self._job: subprocess.Popen[bytes] | None = None
        self._log: Path | None = None
        self._active_s = time.monotonic()
        self._idle_minutes: int | None = None

    def live(self) -> None:
        """Until it is idle for too long. `down` kills it."""
        self._change(pid=os.getpid())
        time.sleep(PROVISION_S / speed())
        self._home.mkdir(exist_ok=True)
        _know_hosts(self._name, self._task.num_nodes)
        self._change(status="UP")
        while not self._is_over():
            self._end_job()
            if self._job is None:
                self._take()
            time.sleep(TICK_S)
        with locked(self._folder):
            self._path.unlink(missing_ok=True)
        forget_hosts(self._name)

    def _is_over(self) -> bool:
        """As SkyPilot: idle from the last job's end, or from where autostop was set."""
        if self._job is not None or self._idle_minutes is None:
            return False
        idle_s = (time.monotonic() - self._active_s) * speed()
        return idle_s >= 60 * self._idle_minutes

    def _take(self) -> None:
        """The next launch: its autodown, then its job."""
        with locked(self._folder):
            state = json.loads(self._path.read_text())
            if not state["queue"]:
                return
            order, *state["queue"] = state["queue"]
            store(self._path, state)
        log = Path(order["log"])
        fault = self._folder / "fail-launch"
        if order["run"] is not None and fault.exists():
            fault.unlink()
            _say(log, "invented: files could not be sent\nexit 1\n")
            return
        self._idle_minutes = order["idle_minutes"]
        self._change(autostop=-1 if self._idle_minutes is None else self._idle_minutes)
        self._active_s = time.monotonic()
        _say(log, f"invented: cluster {self._name} is up\n")
        if order["run"] is None:
            _say(log, "exit 0\n")
            return
        script = f"bash -c {_quoted(order['setup'] or 'true')} && bash -c {_quoted(order['run'])}"
        with log.open("ab") as file:
            self._job = subprocess.Popen(
                ["bash", "-c", script],
                stdout=file,
                stderr=file,
                env={
                    **os.environ,
                    "HOME": str(self._home),
                    "PATH": f"{self._programs()}:{os.environ['PATH']}",
                    "SKYPILOT_NODE_RANK": "0",
                    "SKYPILOT_NUM_NODES": str(self._task.num_nodes),
                },
            )
        self._log = log
        self._change(job="RUNNING")

    def _end_job(self) -> None:
        if self._job is None or self._job.poll() is None:
            return
        assert self._log is not None
        _say(self._log, f"invented: the job ended\nexit {100 if self._job.returncode else 0}\n")
        self._job, self._active_s = None, time.monotonic()
        self._change(job="ENDED")

    def _change(self, **update: Any) -> None:
        with locked(self._folder):
            if self._path.exists():
                store(self._path, json.loads(self._path.read_text()) | update)

    def _programs(self) -> Path:
        """A clock that runs SPEED times as fast, and who else runs on the machines."""
        folder = self._folder / f"{self._name}.bin"
        folder.mkdir(exist_ok=True)
        sleep, date = shutil.which("sleep"), shutil.which("date")
        scripts = {
            "sleep": f'exec {sleep} "$(awk "BEGIN {{ print $1 / {speed()} }}")"\n',
            "date": f'awk -v now="$({date} +%s.%N)" '
            f"'BEGIN {{ printf \"%d\\n\", {time.time()} + (now - {time.time()}) * {speed()} }}'\n",
        }
        if SSH_CONFIG not in os.environ:  # no machine is there for a leader: a file stands for it
            leader = self._folder / "leader"
            scripts["pgrep"] = (
                f'[ "$(cat {leader} 2>/dev/null || echo 0)" -gt "$({date} +%s%3N)" ]\n'
            )
            scripts["pkill"] = f"rm -f {leader}\n"
        for name, text in scripts.items():
            (folder / name).write_text(f"#!/bin/sh\n{text}")
            (folder / name).chmod(0o755)
        return folder


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _say(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


def _know_hosts(cluster: str, nodes: int) -> None:
    """As SkyPilot does: `ssh CLUSTER`, `ssh CLUSTER-worker1`, …"""
    if SSH_CONFIG not in os.environ:
        return
    path = Path(os.environ[SSH_CONFIG])
    text = path.read_text()
    for number in range(nodes):
        name = cluster if number == 0 else f"{cluster}-worker{number}"
        entry = text.partition(f"Host node{number}\n")[2].partition("\nHost ")[0]
        text += f"# {cluster}\nHost {name}\n{entry.rstrip()}\n"
    path.write_text(text)


def forget_hosts(cluster: str) -> None:
    """Its names lead nowhere any more."""
    if SSH_CONFIG in os.environ:
        path = Path(os.environ[SSH_CONFIG])
        path.write_text(path.read_text().partition(f"# {cluster}\n")[0])
