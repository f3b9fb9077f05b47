"""What happens to one pod, from its binding to its end? One thread a pod, which takes events."""

import logging
import os
import queue
import shutil
import signal
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.kubernetes.kubelet import cni
from tests.kubernetes.kubelet.api import RefusedError, now_text
from tests.kubernetes.kubelet.cni import CniError
from tests.kubernetes.kubelet.pod_containers import PodContainers
from tests.kubernetes.kubelet.sandbox import Sandbox
from tests.kubernetes.kubelet.security import fs_group
from tests.kubernetes.kubelet.status import PodRecord, pod_status
from tests.kubernetes.kubelet.volumes import MountError, PodVolumes

if TYPE_CHECKING:
    from tests.kubernetes.kubelet.kubelet import Kubelet

Json = dict[str, Any]
log = logging.getLogger("kubelet.pod")
_RETRY_S = 0.5
"""Between tries of a network or a volume; a real kubelet takes seconds to minutes."""
_LINGER_S = 3.0
"""A real kubelet removes a pod's network a second or more after its end."""


class GoneError(Exception):
    """The pod is to end: it was deleted, or its node went away."""


@dataclass(frozen=True, kw_only=True)
class Stop:
    """Why a pod ends as a whole, in the words of its status."""

    reason: str
    message: str


class PodWorker:
    """One pod bound to a node of ours."""

    def __init__(self, kubelet: "Kubelet", pod: Json) -> None:
        self.kubelet, self.pod = kubelet, pod
        self.node = kubelet.node_specs[pod["spec"]["nodeName"]]
        metadata = pod["metadata"]
        self.uid, self.key = metadata["uid"], (metadata["namespace"], metadata["name"])
        self.path = f"/api/v1/namespaces/{self.key[0]}/pods/{self.key[1]}"
        self.folder = kubelet.config.folder / "pods" / self.uid
        self.log_folder = kubelet.config.folder / "logs" / self.uid
        self.queue: queue.Queue[tuple[str, Any]] = queue.Queue()
        self.sandbox: Sandbox | None = None
        self.is_ended = False
        self._since: dict[str, tuple[str, str]] = {}
        self._started_s = time.monotonic()
        spec = pod["spec"]
        self.volumes = PodVolumes(
            folder=self.folder,
            pod=pod,
            fetch=self.fetch,
            fetch_token=self._token,
            claim_folder=lambda name: kubelet.claims.folder_of(self.key[0], name),
            group=None,
            allow_host_path=kubelet.config.allow_host_path,
        )
        self.containers = PodContainers(self)
        self.record = PodRecord(
            records=self.containers.records,
            host_ip=kubelet.node_address(self.node.name),
            start_time=(pod.get("status") or {}).get("startTime") or now_text(),
            restart_policy=spec.get("restartPolicy") or "Always",
        )
        self.thread = threading.Thread(target=self._run, name=f"pod {self.key}", daemon=True)

    def fetch(self, kind: str, name: str) -> Json | None:
        return self.kubelet.api.get(f"/api/v1/namespaces/{self.key[0]}/{kind}/{name}")

    def tell(self, reason: str, message: str, *, warning: bool = False) -> None:
        self.kubelet.events.tell(self.pod, reason, message, warning=warning)

    def push_status(self) -> None:
        """Tell the API server, unless the pod is gone there."""
        status = pod_status(self.record, self._since, now_text())
        body = {"metadata": {"uid": self.uid}, "status": status}
        try:
            self.kubelet.api.patch(f"{self.path}/status", body)
        except RefusedError as refused:
            if refused.status != 409:
                raise
            log.info("status of %s not taken: %s", self.key, refused)

    def push_status_soon(self) -> None:
        """Unless the pod has ended with it: then its last status says all."""
        if self.record.phase not in ("Succeeded", "Failed"):
            self.push_status()

    def _run(self) -> None:
        try:
            self._live()
        except GoneError as gone:
            self._end(tells=str(gone) != "node")
        except RefusedError as refused:
            log.error("pod %s: %s", self.key, refused)
            self._end(tells=False)

    def _live(self) -> None:
        namespace = self.kubelet.api.get(f"/api/v1/namespaces/{self.key[0]}")
        self.containers.namespace = namespace
        self.volumes.group = fs_group(self.pod, namespace)
        context = self.pod["spec"].get("securityContext") or {}
        self.volumes.group_policy = context.get("fsGroupChangePolicy")
        self.containers.all_wait("ContainerCreating")
        self.push_status()
        self._check_deleted()
        self._make_sandbox()
        self._make_volumes()
        self.containers.enter()
        while True:
            pause_s = self.containers.sync()
            if self.record.phase in ("Succeeded", "Failed"):
                break
            self._take(pause_s)
        self._finish()
        while True:
            self._take(None)

    def _take(self, pause_s: float | None) -> None:
        """Wait for the next event, or until the deadline. Raises GoneError."""
        left_s = self._left_s()
        limits = [one for one in (pause_s, left_s) if one is not None and not self.is_ended]
        try:
            kind, what = self.queue.get(timeout=max(0.0, min(limits)) if limits else None)
        except queue.Empty:
            if left_s is not None and self._left_s() == 0.0 and not self.is_ended:
                self._stop(Stop(reason="DeadlineExceeded", message="Pod was active on the node "
                                "longer than the specified deadline"))  # fmt: skip
            return
        if kind == "ended":
            self.containers.take_end(what[0], what[1])
        elif kind == "pod":
            self._take_pod(what)
        elif kind == "refresh":
            self._refresh()
        elif kind == "stop" and not self.is_ended:
            self._stop(what)
        elif kind == "gone":
            raise GoneError(what)

    def _left_s(self) -> float | None:
        limit = self.pod["spec"].get("activeDeadlineSeconds")
        return None if limit is None else max(0.0, self._started_s + limit - time.monotonic())

    def _take_pod(self, pod: Json) -> None:
        """What can change: labels, annotations, the wish to end."""
        if is_older(pod, self.pod):
            return  # it was on its way when a patch of ours was answered
        status = self.pod.get("status")
        self.pod = self.volumes.pod = pod | {"status": status}
        self._check_deleted()
        if not self.is_ended:
            self._refresh()

    def _check_deleted(self) -> None:
        if self.pod["metadata"].get("deletionTimestamp"):
            raise GoneError("deleted")

    def _refresh(self) -> None:
        try:
            self.volumes.refresh()
        except MountError as error:  # the object is gone: files stay, as with a real kubelet
            log.info("%s: %s", self.key, error)

    def _make_sandbox(self) -> None:
        told = None
        while True:
            try:
                self.sandbox = self.kubelet.make_sandbox(self.pod)
                break
            except CniError as error:
                message = cni.sandbox_failure(self.pod, error, self.uid.replace("-", ""))
                if told != message:
                    self.tell("FailedCreatePodSandBox", message, warning=True)
                told = message
                self._take(_RETRY_S)
        self.record.ip = self.sandbox.ip
        annotation = {cni.NETWORK_STATUS: cni.network_status(self.sandbox.attached)}
        body = {"metadata": {"uid": self.uid, "annotations": annotation}}
        patched = self.kubelet.api.patch(self.path, body)
        if patched is None:
            raise GoneError("deleted")
        address = {"podIP": self.sandbox.ip, "podIPs": [{"ip": self.sandbox.ip}],
                   "hostIP": self.record.host_ip}  # fmt: skip
        self.pod = self.volumes.pod = patched | {"status": address}
        self._check_deleted()

    def _make_volumes(self) -> None:
        told = None
        while True:
            try:
                self.kubelet.faults.check_mount(self.pod)
                self.volumes.set_up()
                return
            except MountError as error:
                if told != str(error):
                    self.tell("FailedMount", str(error), warning=True)
                told = str(error)
                self._take(_RETRY_S)

    def _stop(self, why: Stop) -> None:
        """End it as Failed, as a whole: its deadline, an eviction."""
        self.record.override = ("Failed", why.reason, why.message)
        self.tell(why.reason, why.message, warning=True)
        self._kill_all(grace_s=0 if why.reason == "DeadlineExceeded" else 1)

    def _finish(self) -> None:
        """All is over: what is left of it ends, its network and volumes are given back."""
        self._kill_all(grace_s=1)
        self._let_data_leave()
        self._give_back()
        self.is_ended = True
        self.push_status()

    def _let_data_leave(self) -> None:
        """What a program sent before it ended may still be on its way over a slow link."""
        until = time.monotonic() + _LINGER_S
        while self.sandbox is not None and time.monotonic() < until:
            if self.kubelet.sandboxes.unsent_bytes(self.sandbox) == 0:
                return
            time.sleep(0.05)

    def _kill_all(self, grace_s: float) -> None:
        """TERM, and after the grace KILL, until all have ended."""
        self.containers.is_stopping = True
        number = signal.SIGTERM if grace_s > 0 else signal.SIGKILL
        until = time.monotonic() + grace_s
        self.containers.signal_all(number)
        while self.containers.num_running:
            try:
                kind, what = self.queue.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                self.containers.signal_all(signal.SIGKILL)
                until = time.monotonic() + 1.0
                continue
            if kind == "ended":
                self.containers.take_end(what[0], what[1])
            elif kind == "gone":
                until = time.monotonic()

    def _give_back(self) -> None:
        if self.sandbox is not None:
            self.kubelet.sandboxes.remove(self.sandbox)
            self.sandbox = None
        self.volumes.tear_down()

    def _end(self, *, tells: bool) -> None:
        """Deleted, or gone with its node: then the API server isn't told."""
        grace = self.pod["metadata"].get("deletionGracePeriodSeconds", 0)
        if tells and self.containers.num_running:
            for record in self.record.records:
                if record.is_running:
                    self.tell("Killing", f"Stopping container {record.name}")
        self._kill_all(grace_s=grace if tells else 0)
        self._give_back()
        self.is_ended = True
        try:
            if tells:
                if self.record.phase == "Running":
                    self.push_status()
                self.kubelet.api.delete(
                    self.path, {"gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}}
                )
        finally:
            self.kubelet.forget(self)
            shutil.rmtree(self.log_folder, ignore_errors=True)

    def _token(self, projection: Json) -> str:
        account = self.pod["spec"].get("serviceAccountName") or "default"
        spec: Json = {
            "expirationSeconds": projection.get("expirationSeconds", 3600),
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": self.key[1],
                               "uid": self.uid},
        }  # fmt: skip
        if "audience" in projection:
            spec["audiences"] = [projection["audience"]]
        path = f"/api/v1/namespaces/{self.key[0]}/serviceaccounts/{account}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return str(self.kubelet.api.request("POST", path, body)["status"]["token"])


def signal_process(pid: int, number: int) -> None:
    """It may have ended meanwhile."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        log.debug("process %d has ended already", pid)


def is_older(pod: Json, known: Json) -> bool:
    """Of the same pod. Source: Kubernetes API concepts, "Resource versions"."""
    told, own = (int(each["metadata"].get("resourceVersion", 0)) for each in (pod, known))
    return told < own
