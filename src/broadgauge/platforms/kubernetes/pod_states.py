"""What is a pod doing, in words, and can it still come right? Pure: from what the API says of it.

Source of the fields: Kubernetes API reference, PodStatus, ContainerState; reasons of waiting as the
kubelet writes them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from broadgauge.platforms.kubernetes.json_shapes import (
    JsonMap,
    labels_in,
    mapping,
    mappings,
    text,
    whole,
)

CONTAINERS = ("pytorch", "node")
"""The one that runs our agent, as operators want it to be named: manifests/names.py."""
LEADER = "leader"
"""In every pod of a Job, where it ends at once unless the pod is the first."""


class PodStage(StrEnum):
    """How far a pod is."""

    UNSCHEDULED = "waiting for a node"
    STARTING = "starting"
    PULLING = "pulling its image"
    INIT = "preparing"
    RUNNING = "running"
    SUCCEEDED = "done"
    FAILED = "failed"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """Who made a pod, and makes another one in its place: its owner that is its controller."""

    group: str
    """Of its API; empty: the core group."""
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    """One pod at one moment."""

    name: str
    uid: str
    node: str | None
    """None: not placed yet."""
    address: str | None
    stage: PodStage
    why: str | None = None
    """The scheduler's, the kubelet's or the container's own words."""
    is_doomed: bool = False
    """It does not come right by waiting."""
    exit_code: int | None = None
    is_leading: bool = False
    """Does its leader's container run? It outlives ranks that were killed, and has more to tell."""
    image_id: str | None = None
    """Of the container that runs, with its digest."""
    labels: tuple[tuple[str, str], ...] = ()
    controller: Controller | None = None
    """None: it was made by itself."""

    @property
    def has_ended(self) -> bool:
        """Do its ranks run no more?"""
        return self.stage in (PodStage.SUCCEEDED, PodStage.FAILED, PodStage.GONE)

    @property
    def is_tried_again(self) -> bool:
        """Has its kubelet failed in what a registry or the API server may give it later?"""
        if self.why is None or self.is_doomed:
            return False
        return self.stage is PodStage.PULLING or self.why.startswith(_CONFIG_FAILED)

    @property
    def words(self) -> str:
        """`job-worker-0 on node-b: pulling its image (…)`."""
        where = f" on {self.node}" if self.node else ""
        return f"{self.name}{where}: {self.state_words}"

    @property
    def state_words(self) -> str:
        """`pulling its image (…)`."""
        return f"{self.stage.value} ({self.why})" if self.why else self.stage.value

    def label(self, key: str) -> str | None:
        return dict(self.labels).get(key)


_PULL_FAILED = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
_NEVER = {"InvalidImageName", "ErrImageNeverPull"}
"""Nothing but a change of the manifest helps."""
_CONFIG_FAILED = "CreateContainerConfigError"
"""It may pass: "failed to sync secret cache: timed out waiting for the condition" is of a kubelet
that has just begun to watch. Source: kubernetes/kubernetes#117972."""
_ROOT_REFUSED = "runAsNonRoot"
"""In the kubelet's message where an image's user is root, or a name. Source: Kubernetes,
pkg/kubelet/kuberuntime/security_context_others.go."""
_LASTING = ("not found", "couldn't find key", _ROOT_REFUSED)
"""In the messages of such an error that does not pass."""
_ON_ITS_WAY = {"ContainerCreating", "PodInitializing"}
"""Source: Kubernetes, pkg/kubelet/kubelet_pods.go: what a container waits for before its first try.
"""
_ENDED_BY_NODE = {"Evicted", "NodeLost", "NodeShutdown", "Preempting", "Terminated"}


def pod_state(pod: JsonMap) -> PodState:
    """Of a pod as the API server gives it: it has a name, and all else may be missing."""
    metadata, status = pod["metadata"], mapping(pod.get("status"))
    stage, why, is_doomed, exit_code = _stage(metadata, status)
    return PodState(
        name=metadata["name"],
        uid=text(metadata.get("uid")) or "",
        node=text(mapping(pod.get("spec")).get("nodeName")),
        address=text(status.get("podIP")),
        stage=stage,
        why=why,
        is_doomed=is_doomed,
        exit_code=exit_code,
        is_leading=_is_leading(status),
        image_id=_image_id(status),
        labels=tuple(sorted(labels_in(pod).items())),
        controller=controller_of(metadata),
    )


def controller_of(metadata: JsonMap) -> Controller | None:
    """Of an object's metadata. There is at most one: the API server sees to that."""
    for owner in mappings(metadata.get("ownerReferences")):
        if owner.get("controller") is True:
            return Controller(
                group=(text(owner.get("apiVersion")) or "").rpartition("/")[0],
                kind=text(owner.get("kind")) or "",
                name=text(owner.get("name")) or "",
                uid=text(owner.get("uid")) or "",
            )
    return None


_WHY_INIT_ENDS = {
    "init-pytorch": "training-operator's wait for the first pod, which gives up after about 200 s "
    "(its flag --pytorch-init-container-max-tries); where images take longer to pull, pull them "
    "before, or `kubernetes: {job: job}`",
}
"""By container. Source: training-operator 1.9, pkg/config/config.go: 100 tries, 2 s apart; workers
are not started again."""
_Found = tuple[PodStage, str | None, bool, int | None]


def _stage(metadata: JsonMap, status: JsonMap) -> _Found:
    phase = text(status.get("phase")) or "Pending"
    if text(status.get("reason")) in _ENDED_BY_NODE:
        words = f"{status['reason']}: {status.get('message', 'no reason given')}"
        return PodStage.FAILED, words, True, None
    if phase == "Succeeded":
        return PodStage.SUCCEEDED, None, False, 0
    if phase == "Failed":
        return _failed(status)
    if metadata.get("deletionTimestamp"):
        return PodStage.GONE, "it is being deleted", True, None
    if phase == "Running":
        return _running(status)
    return _pending(status)


def _failed(status: JsonMap) -> _Found:
    for container in _containers(status):
        code = _exit_code(container)
        if code:
            return PodStage.FAILED, _ended_words(container), True, code
    why = text(status.get("message")) or text(status.get("reason"))
    return PodStage.FAILED, why, True, None


def _running(status: JsonMap) -> _Found:
    """Ranks that have ended make their pod's end a matter of time, as a leader that has failed."""
    for container in _containers(status):
        code, name = _exit_code(container), container.get("name")
        if code and name in (*CONTAINERS, LEADER):
            return PodStage.FAILED, _ended_words(container), True, code
        if code == 0 and name in CONTAINERS:
            return PodStage.SUCCEEDED, None, False, 0
    return PodStage.RUNNING, None, False, None


def _pending(status: JsonMap) -> _Found:
    placed = [
        each for each in mappings(status.get("conditions")) if each.get("type") == "PodScheduled"
    ]
    for condition in placed:
        if condition.get("status") == "False":
            words = text(condition.get("message")) or text(condition.get("reason"))
            return PodStage.UNSCHEDULED, words, False, None
    for container in _containers(status):
        waiting = _state(container, "waiting") or {}
        reason, code = text(waiting.get("reason")), _exit_code(container)
        if reason is not None and reason not in _ON_ITS_WAY:
            return _waiting(reason, text(waiting.get("message")) or "")
        if code:
            return PodStage.INIT, _ended_words(container), True, code
    if any(_state(each, "running") is not None for each in _init_containers(status)):
        return PodStage.INIT, None, False, None
    is_placed = any(each.get("status") == "True" for each in placed)
    return (PodStage.STARTING if is_placed else PodStage.UNSCHEDULED), None, False, None


def _waiting(reason: str, message: str) -> _Found:
    """Of a container that a kubelet could not start, and will try again."""
    words = f"{reason}: {message}".rstrip(": ")
    is_doomed = reason in _NEVER or (
        reason == _CONFIG_FAILED and any(each in message for each in _LASTING)
    )
    if _ROOT_REFUSED in words:
        words += "; `kubernetes.run_as_user` says as whom it runs, 0: as root"
    stage = PodStage.PULLING if reason in _PULL_FAILED else PodStage.STARTING
    return stage, words, is_doomed, None


def _init_containers(status: JsonMap) -> list[JsonMap]:
    return mappings(status.get("initContainerStatuses"))


def _containers(status: JsonMap) -> Iterator[JsonMap]:
    yield from _init_containers(status)
    yield from mappings(status.get("containerStatuses"))


def _state(container: JsonMap, name: str) -> JsonMap | None:
    """None: it is in another."""
    found = mapping(container.get("state")).get(name)
    return found if isinstance(found, dict) else None


def _exit_code(container: JsonMap) -> int | None:
    """None: it has not ended."""
    ended = _state(container, "terminated")
    return None if ended is None else whole(ended.get("exitCode")) or 0


def _ended_words(container: JsonMap) -> str:
    """`container pytorch: OOMKilled, exit code 137`."""
    ended = _state(container, "terminated") or {}
    reason = text(ended.get("reason"))
    reason = f"{reason}, " if reason and reason != "Error" else ""
    message = text(ended.get("message"))
    message = f": {message.strip()}" if message else ""
    signal = f" (signal {ended['signal']})" if ended.get("signal") else ""
    code = _exit_code(container)
    name = text(container.get("name"))
    why = f": {_WHY_INIT_ENDS[name]}" if name in _WHY_INIT_ENDS else ""
    return f"container {name}: {reason}exit code {code}{signal}{message}{why}"


def _is_leading(status: JsonMap) -> bool:
    found = (each for each in _containers(status) if each.get("name") == LEADER)
    return any(_state(each, "running") is not None for each in found)


def _image_id(status: JsonMap) -> str | None:
    for container in mappings(status.get("containerStatuses")):
        if container.get("name") in CONTAINERS:
            return text(container.get("imageID"))
    return None


def waits(states: list[PodState]) -> str:
    """All pods that do not run yet, in one line: equal words once, with their number."""
    seen: dict[str, int] = {}
    for state in states:
        if state.stage is not PodStage.RUNNING:
            why = f" ({state.why})" if state.why else ""
            seen[state.stage.value + why] = seen.get(state.stage.value + why, 0) + 1
    num_running = sum(state.stage is PodStage.RUNNING for state in states)
    told = [f"{number} pod{'s' * (number > 1)} {words}" for words, number in seen.items()]
    return "; ".join([*told, *([f"{num_running} running"] if num_running else [])])
