"""Which container of a pod is started next, and what do its ends mean? Inits in order, then all."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.kubernetes.kubelet.api import now_text
from tests.kubernetes.kubelet.cgroups import MemoryCgroup
from tests.kubernetes.kubelet.container_order import (
    PodPlace,
    container_order,
    termination_log,
)
from tests.kubernetes.kubelet.environment import ConfigError
from tests.kubernetes.kubelet.exits import read_message
from tests.kubernetes.kubelet.log_reader import last_lines
from tests.kubernetes.kubelet.status import ContainerRecord, terminated, waiting

if TYPE_CHECKING:
    from tests.kubernetes.kubelet.pod import PodWorker

Json = dict[str, Any]
_LONGEST_BACKOFF_S = 300.0
_MOST_MESSAGE_BYTES = 4096
_RETRY_S = 1.0


class PodContainers:
    """The containers of one pod. Used by the pod's thread only."""

    def __init__(self, worker: "PodWorker") -> None:
        self._worker = worker
        self.namespace: Json | None = None
        self._place: PodPlace | None = None
        spec = worker.pod["spec"]
        inits, mains = spec.get("initContainers") or [], spec["containers"]
        self._specs: dict[str, Json] = {one["name"]: one for one in (*inits, *mains)}
        self.records = [
            ContainerRecord(
                name=one["name"],
                image=one["image"],
                is_init=one in inits,
                restarts=one in inits and one.get("restartPolicy") == "Always",
            )
            for one in (*inits, *mains)
        ]
        self._not_before: dict[str, float] = {}
        self._pulled: set[str] = set()
        self.is_stopping = False
        """What ends now is not started again."""

    @property
    def num_running(self) -> int:
        return sum(record.is_running for record in self.records)

    def all_wait(self, reason: str) -> None:
        for record in self.records:
            record.state = waiting(reason if record.is_init else self._main_reason(reason))

    def _main_reason(self, reason: str) -> str:
        return "PodInitializing" if any(one.is_init for one in self.records) else reason

    def enter(self) -> None:
        """The pod's network and volumes are there."""
        worker = self._worker
        assert worker.sandbox is not None
        self._place = PodPlace(
            pod=worker.pod,
            namespace=self.namespace,
            node=worker.node,
            sandbox=worker.sandbox,
            volumes=worker.volumes,
            folder=worker.folder,
            log_folder=worker.log_folder,
            fetch=worker.fetch,
            config=worker.kubelet.config,
        )

    def sync(self) -> float | None:
        """Start what is due; how long until something will be, None if only an event can say."""
        before = [str(record.state) for record in self.records]
        for record in self._due():
            if self._is_pulled(record):
                self._start(record)
        if before != [str(record.state) for record in self.records]:
            self._worker.push_status()
        now = time.monotonic()
        later = [self._not_before.get(record.name, 0.0) - now for record in self._due()]
        return max(0.01, min(later)) if later else None

    def _due(self) -> list[ContainerRecord]:
        """Which containers should run now and don't?"""
        for record in self.records:
            if not record.is_init or record.exit_code == 0:
                continue
            if record.restarts and record.is_running:
                continue
            if record.is_running or self._is_over(record):
                return []
            return [record]
        return [
            one for one in self.records
            if not one.is_init and not one.is_running and not self._is_over(one)
        ]  # fmt: skip

    def _is_over(self, record: ContainerRecord) -> bool:
        """Will it never be started again?"""
        policy = self._worker.record.restart_policy
        code = record.exit_code
        if code is None or record.restarts:
            return False
        if record.is_init:
            return policy == "Never"
        return policy == "Never" or (policy == "OnFailure" and code == 0)

    def _is_pulled(self, record: ContainerRecord) -> bool:
        """Pause, pull and back off as a kubelet does. True: it may be started now."""
        now = time.monotonic()
        if now < self._not_before.get(record.name, 0.0):
            return False
        config, tell = self._worker.kubelet.config, self._worker.tell
        if record.image in self._pulled:
            return True
        if record.image.startswith("missing/"):
            self._fail_pull(record)
            return False
        if record.name not in self._not_before:
            delay_s = max(config.pull_delay_s, self._worker.kubelet.faults.pull_delay_s)
            tell("Pulling", f'Pulling image "{record.image}"')
            if delay_s > 0:
                self._not_before[record.name] = now + delay_s
                return False
        self._pulled.add(record.image)
        tell("Pulled", f'Successfully pulled image "{record.image}"')
        return True

    def _fail_pull(self, record: ContainerRecord) -> None:
        name = record.image
        if record.state.get("waiting", {}).get("reason") == "ErrImagePull":
            message = f'Back-off pulling image "{name}"'
            record.state = waiting("ImagePullBackOff", message)
            self._worker.tell("BackOff", message)
        else:
            message = (
                f'failed to pull and unpack image "{name}": failed to resolve reference "{name}": '
                f"{name}: not found"
            )
            text = f"rpc error: code = NotFound desc = {message}"
            record.state = waiting("ErrImagePull", text)
            self._worker.tell("Failed", f'Failed to pull image "{name}": {text}', warning=True)
        self._not_before[record.name] = time.monotonic() + _RETRY_S

    def _start(self, record: ContainerRecord) -> None:
        worker = self._worker
        assert self._place is not None
        assert worker.sandbox is not None
        self._place.pod = worker.pod
        launch = record.launches
        try:
            order, cgroup = container_order(self._place, self._specs[record.name], launch)
        except ConfigError as error:
            self._refuse(record, "CreateContainerConfigError", str(error))
            return
        status = worker.kubelet.spawner.spawn(order, worker.sandbox.place.fd)
        said = read_message(status)
        record.launches += 1
        record.container_id = f"process://{order['id']}"
        record.memory_cgroup, record.was_oom = cgroup, False
        if said is None or "failed" in said:
            os.close(status)
            text = "the keeper ended" if said is None else said["failed"]
            self._take_failed_start(record, text)
            return
        if launch:
            record.restart_count += 1
        record.pid, record.keeper = said["pid"], said["keeper"]
        record.state = {"running": {"startedAt": now_text()}}
        worker.tell("Started", f"Started container {record.name}")
        worker.kubelet.exits.watch(status, self._telling_end(record))

    def _telling_end(self, record: ContainerRecord) -> Callable[[Json | None], None]:
        events = self._worker.queue
        return lambda said: events.put(("ended", (record, said)))

    def _refuse(self, record: ContainerRecord, reason: str, message: str) -> None:
        if record.state.get("waiting", {}).get("message") != message:
            self._worker.tell("Failed", f"Error: {message}", warning=True)
        record.state = waiting(reason, message)
        self._not_before[record.name] = time.monotonic() + _RETRY_S

    def _take_failed_start(self, record: ContainerRecord, text: str) -> None:
        """The program can't be run: exit code 128 and StartError, as containerd says."""
        message = (
            "failed to create containerd task: failed to create shim task: OCI runtime create "
            f"failed: runc create failed: unable to start container process: {text}"
        )
        self._worker.tell("Failed", f"Error: {message}", warning=True)
        record.state = terminated(record, {"exit_code": 128}, now_text(), message)
        record.state["terminated"]["reason"] = "StartError"
        self._after_end(record)

    def take_end(self, record: ContainerRecord, ended: Json | None) -> None:
        """A container has ended; None: its keeper was killed, and with it the container."""
        ended = ended or {"exit_code": 137, "signal": signal.SIGKILL}
        if record.memory_cgroup is not None:
            cgroup = MemoryCgroup(
                folder=Path(record.memory_cgroup), is_unified="memory/" not in record.memory_cgroup
            )
            if ended["exit_code"] == 137 and cgroup.num_oom_kills() > 0:
                record.was_oom = True
            cgroup.remove()
            record.memory_cgroup = None
        message = self._last_words(record, ended)
        record.state = terminated(record, ended, now_text(), message)
        record.pid = record.keeper = None
        self._after_end(record)

    def _last_words(self, record: ContainerRecord, ended: Json) -> str | None:
        assert self._place is not None
        spec = self._specs[record.name]
        text = (
            termination_log(self._place, spec)
            .read_bytes()[:_MOST_MESSAGE_BYTES]
            .decode(errors="replace")
        )
        falls_back = spec.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        if not text and falls_back and ended["exit_code"]:
            folder = self._place.log_folder / record.name / str(record.launches - 1)
            text = last_lines(folder, num_lines=80, most_bytes=2048)
        return text or None

    def _after_end(self, record: ContainerRecord) -> None:
        """Shall it run again? Then after a pause that doubles."""
        if self.is_stopping:
            return
        if self._is_over(record) or (record.is_init and record.exit_code == 0):
            self._worker.push_status_soon()
            return
        first_s = self._worker.kubelet.config.restart_backoff_s
        pause_s = min(_LONGEST_BACKOFF_S, first_s * 2.0**record.restart_count)
        self._not_before[record.name] = time.monotonic() + pause_s
        record.last_state = record.state
        message = f"back-off {pause_s:g}s restarting failed container={record.name}"
        record.state = waiting("CrashLoopBackOff", message)
        self._worker.tell("BackOff", f"Back-off restarting failed container {record.name}",
                          warning=True)  # fmt: skip
        self._worker.push_status_soon()

    def signal_all(self, number: int) -> None:
        for record in self.records:
            if record.pid is not None:
                self.signal(record, number)

    def signal(self, record: ContainerRecord, number: int) -> None:
        from tests.kubernetes.kubelet.pod import signal_process

        if record.pid is not None:
            signal_process(record.pid, number)
