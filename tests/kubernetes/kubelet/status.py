"""What does a pod's status say, given what its containers do?

Pure: from records of containers to the JSON of PodStatus. Source: Kubernetes, "Pod Lifecycle".
"""

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(kw_only=True)
class ContainerRecord:
    """What is known of one container of a pod."""

    name: str
    image: str
    is_init: bool = False
    restarts: bool = False
    """A sidecar: an init container that is kept running."""
    state: Json = field(default_factory=lambda: {"waiting": {"reason": "PodInitializing"}})
    last_state: Json = field(default_factory=dict)
    restart_count: int = 0
    container_id: str | None = None
    memory_cgroup: str | None = None
    pid: int | None = None
    keeper: int | None = None
    launches: int = 0
    was_oom: bool = False

    @property
    def is_running(self) -> bool:
        return "running" in self.state

    @property
    def exit_code(self) -> int | None:
        ended = self.state.get("terminated")
        return None if ended is None else int(ended["exitCode"])


def waiting(reason: str, message: str | None = None) -> Json:
    what = {"reason": reason} if message is None else {"reason": reason, "message": message}
    return {"waiting": what}


def terminated(record: ContainerRecord, ended: Json, finished_at: str, message: str | None) -> Json:
    """`ended` has exit_code and signal of the container's first process."""
    reason = "Completed" if ended["exit_code"] == 0 else "Error"
    if record.was_oom:
        reason = "OOMKilled"
    started = (record.state.get("running") or {}).get("startedAt", finished_at)
    what = {
        "exitCode": ended["exit_code"],
        "reason": reason,
        "startedAt": started,
        "finishedAt": finished_at,
        "containerID": record.container_id,
    }
    if ended.get("signal"):
        what["signal"] = ended["signal"]
    if message:
        what["message"] = message
    return {"terminated": what}


@dataclass(kw_only=True)
class PodRecord:
    """What is known of one pod."""

    records: list[ContainerRecord]
    host_ip: str
    start_time: str
    ip: str | None = None
    restart_policy: str = "Always"
    override: tuple[str, str, str] | None = None
    """Phase, reason and message of what ended it as a whole: evicted, deadline."""

    @property
    def inits(self) -> list[ContainerRecord]:
        return [one for one in self.records if one.is_init]

    @property
    def mains(self) -> list[ContainerRecord]:
        return [one for one in self.records if not one.is_init]

    @property
    def is_initialized(self) -> bool:
        return all(one.exit_code == 0 or (one.restarts and one.is_running) for one in self.inits)

    @property
    def phase(self) -> str:
        if self.override is not None:
            return self.override[0]
        codes = [one.exit_code for one in self.mains]
        for one in self.inits:
            if one.exit_code and self.restart_policy == "Never" and not one.restarts:
                return "Failed"
        if self.restart_policy != "Always" and all(code is not None for code in codes):
            if all(code == 0 for code in codes):
                return "Succeeded"
            if self.restart_policy == "Never":
                return "Failed"
        return "Running" if any(one.launches for one in self.mains) else "Pending"


def pod_status(pod: PodRecord, since: dict[str, tuple[str, str]], now: str) -> Json:
    """PodStatus. `since` remembers each condition's value and when it became so."""
    phase = pod.phase
    is_done = phase in ("Succeeded", "Failed")
    is_ready = not is_done and all(one.is_running for one in pod.mains)
    done_reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
    not_ready = done_reason if is_done else "ContainersNotReady"
    values = {
        "PodReadyToStartContainers": (pod.ip is not None and not is_done, None),
        "Initialized": (
            pod.is_initialized,
            None if pod.is_initialized else "ContainersNotInitialized",
        ),
        "Ready": (is_ready, None if is_ready else not_ready),
        "ContainersReady": (is_ready, None if is_ready else not_ready),
        "PodScheduled": (True, None),
    }
    conditions = []
    for kind, (value, reason) in values.items():
        text = "True" if value else "False"
        if since.get(kind, ("", ""))[0] != text:
            since[kind] = (text, now)
        condition = {"type": kind, "status": text, "lastTransitionTime": since[kind][1]}
        conditions.append(condition if reason is None else condition | {"reason": reason})
    status: Json = {
        "phase": phase,
        "conditions": conditions,
        "hostIP": pod.host_ip,
        "hostIPs": [{"ip": pod.host_ip}],
        "startTime": pod.start_time,
        "containerStatuses": [_container_status(one) for one in pod.mains],
    }
    if pod.inits:
        status["initContainerStatuses"] = [_container_status(one) for one in pod.inits]
    if pod.ip is not None:
        status |= {"podIP": pod.ip, "podIPs": [{"ip": pod.ip}]}
    if pod.override is not None:
        status |= {"reason": pod.override[1], "message": pod.override[2]}
    return status


def _container_status(one: ContainerRecord) -> Json:
    is_ready = one.is_running if not one.is_init or one.restarts else one.exit_code == 0
    status = {
        "name": one.name,
        "image": one.image,
        "imageID": one.image,
        "state": one.state,
        "lastState": one.last_state,
        "ready": is_ready,
        "started": one.is_running,
        "restartCount": one.restart_count,
    }
    return status if one.container_id is None else status | {"containerID": one.container_id}
