"""How do tests start a process kubelet, and what do they ask of it?"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.kubernetes.kubelet.config import KubeletConfig
from tests.kubernetes.kubelet.main import CONTROL

_REPOSITORY = Path(__file__).parents[3]
_START_LIMIT_S = 120.0
_GOODBYE_S = 30.0


class KubeletFailedError(RuntimeError):
    """It did not start, or refused a request; the text says why."""


@dataclass(frozen=True, kw_only=True)
class PodProcesses:
    """Where a pod is on this machine."""

    ip: str
    node: str
    pids: dict[str, int]
    """Container to its first process, as this machine numbers it."""

    @property
    def netns(self) -> str:
        """A path that nsenter takes."""
        return f"/proc/{next(iter(self.pids.values()))}/ns/net"


class Kubelet:
    """A running one. Leaving the context takes its nodes away and ends it."""

    def __init__(self, config: KubeletConfig, process: subprocess.Popen[bytes]) -> None:
        self.config, self._process = config, process

    @classmethod
    def start(cls, config: KubeletConfig) -> "Kubelet":
        """Returns when all nodes are registered. Raises KubeletFailedError."""
        config.folder.mkdir(parents=True, exist_ok=True)
        control = config.folder / CONTROL
        control.unlink(missing_ok=True)
        settings = config.folder / "config.json"
        settings.write_text(config.to_json())
        paths = [str(_REPOSITORY), str(_REPOSITORY / "src")]
        with (config.folder / "kubelet.log").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.kubernetes.kubelet.main", str(settings)],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
                stdout=output,
                stderr=output,
            )
        kubelet = cls(config, process)
        until = time.monotonic() + _START_LIMIT_S
        while not _listens(control):
            if process.poll() is not None or time.monotonic() > until:
                kubelet.kill()
                raise KubeletFailedError(f"the kubelet did not start:\n{kubelet.log()[-3000:]}")
            time.sleep(0.01)
        return kubelet

    def __enter__(self) -> "Kubelet":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the nodes away, where the API server still answers, and end all that runs."""
        try:
            if self._process.poll() is None:
                self._ask("unregister", limit_s=_GOODBYE_S)
        except TimeoutError:
            return  # no API server answers, so nothing will be scheduled
        finally:
            self.kill()

    def kill(self) -> None:
        """SIGKILL; all that it ran goes with it."""
        self._process.kill()
        self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def log(self) -> str:
        """What it said of itself."""
        return (self.config.folder / "kubelet.log").read_text()

    def kill_container(
        self, namespace: str, pod: str, container: str | None = None, signal: int = signal.SIGKILL
    ) -> None:
        """Send a signal to the container's first process."""
        self._ask("kill_container", namespace=namespace, pod=pod, container=container,
                  signal_number=int(signal))  # fmt: skip

    def oom(self, namespace: str, pod: str, container: str | None = None) -> None:
        """Kill a container, reason OOMKilled."""
        self._ask("oom", namespace=namespace, pod=pod, container=container)

    def evict(self, namespace: str, pod: str) -> None:
        """Evict a pod as a kubelet under memory pressure does."""
        self._ask("evict", namespace=namespace, pod=pod)

    def node_gone(self, node: str, *, is_deleted: bool = True) -> None:
        """The machine is dead: no process of it is left and nobody tells."""
        self._ask("node_gone", node=node, is_deleted=is_deleted)

    def node_not_ready(self, node: str, *, ready: bool = False) -> None:
        """Mark a node not ready, or ready again; its pods go on."""
        self._ask("node_not_ready", node=node, is_ready=ready)

    def cut_log_streams(self) -> int:
        """Close every stream of logs as a lost connection does; says how many."""
        return int(self._ask("cut_log_streams"))

    def rotate_logs(self, namespace: str, pod: str, container: str | None = None) -> None:
        """Begin a new log file now."""
        self._ask("rotate_logs", namespace=namespace, pod=pod, container=container)

    def delay_pulls(self, delay_s: float) -> None:
        """Images take this long to pull from now on."""
        self._ask("delay_pulls", delay_s=delay_s)

    def fail_mounts(self, number: int = 1) -> None:
        """The next mounts of a claim fail; they are tried again."""
        self._ask("fail_mounts", number=number)

    def pod_network(self, node: str, *, up: bool) -> None:
        """Cut a node off the pod network, or join it again."""
        self._ask("pod_network", node=node, is_up=up)

    def fabric_port(self, fabric: str, node: str, *, up: bool) -> None:
        """Take the switch's ports to a node at one fabric down, or up again."""
        self._ask("fabric_port", fabric=fabric, node=node, is_up=up)

    def shape(self, fabric: str, rate_gbps: float | None, node: str | None = None) -> None:
        """Give a fabric another line rate."""
        self._ask("shape", fabric=fabric, rate_gbps=rate_gbps, node=node)

    def counters(self, fabric: str, node: str) -> dict[str, int]:
        """Bytes and packets of a node's link, and packets of foreign sources that were dropped."""
        return dict(self._ask("counters", fabric=fabric, node=node))

    def pod(self, namespace: str, pod: str) -> PodProcesses:
        """Its address and processes."""
        said = self._ask("pod", namespace=namespace, pod=pod)
        inside = {inner: outer for outer, inner in self._descendants().items()}
        pids = {name: inside[pid] for name, pid in said["pids"].items()}
        return PodProcesses(ip=said["ip"], node=said["node"], pids=pids)

    def cpu_s(self) -> float:
        """CPU time of the kubelet's own processes: kubelet, spawner and keepers; not of pods."""
        ticks = os.sysconf("SC_CLK_TCK")
        total = 0.0
        for pid in (self._process.pid, *self._descendants(own_only=True)):
            try:
                text = Path(f"/proc/{pid}/stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended meanwhile
            total += sum(map(int, text.rpartition(")")[2].split()[11:13])) / ticks
        return total

    def _descendants(self, *, own_only: bool = False) -> dict[int, int]:
        """Processes below the started one: number here to number in the kubelet's PID namespace.

        `own_only` leaves out what runs in containers, which has a third number.
        """
        parents, numbers = {}, {}
        for path in Path("/proc").glob("[0-9]*/status"):
            try:
                text = path.read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
            pid = int(path.parent.name)
            parents[pid], numbers[pid] = (
                int(fields["PPid"]),
                list(map(int, fields["NSpid"].split())),
            )
        depth = len(numbers.get(self._process.pid, [0]))
        found = {}
        for pid, inside in numbers.items():
            above = pid
            while above in parents and above != self._process.pid:
                above = parents[above]
            is_own = len(inside) == depth + 1
            if above == self._process.pid and len(inside) > depth and (is_own or not own_only):
                found[pid] = inside[depth]
        return found

    def _ask(self, call: str, *, limit_s: float | None = None, **arguments: Any) -> Any:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(limit_s)
            connection.connect(str(self.config.folder / CONTROL))
            connection.sendall(json.dumps({"call": call, "arguments": arguments}).encode() + b"\n")
            with connection.makefile("rb") as answers:
                said = json.loads(answers.readline())
        if "error" in said:
            raise KubeletFailedError(f"{call}: {said['error']}")
        return said["result"]


def _listens(control: Path) -> bool:
    """The file is there a moment before anybody listens."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(control))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
    return True
