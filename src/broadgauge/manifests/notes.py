"""What should be known of a rendered job before it is applied?"""

from collections.abc import Iterator

from broadgauge.manifests.pod_template import CPUS_PER_GPU_RANK
from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.security import locks_memory, needs_ipc_lock
from broadgauge.manifests.volumes import shm_bytes
from broadgauge.specs.attached import HOST_RDMA, MADE_BY_US, Attached
from broadgauge.specs.kubernetes import OWN_IMAGE
from broadgauge.wording.amounts import show_size

_NO_USER_NAMED = (
    "; under one that admits any user name `kubernetes.run_as_user`: no range gives the ranks one, "
    "and an image of root's is refused"
)


def notes_on(request: JobRequest) -> tuple[str, ...]:
    """Each a sentence or two, without place."""
    return tuple(_notes(request))


def locked_memory(request: JobRequest) -> str | None:
    """How RDMA comes to the memory that it pins. None: it pins none, the nodes are said to allow
    it, or a runtime that is there says it."""
    if not locks_memory(request) or is_of_runtime(request):
        return None
    if needs_ipc_lock(request):
        return (
            "the pods run as root with the capability IPC_LOCK, for RDMA: a policy must allow both "
            "(Pod Security `privileged`, on OpenShift an SCC that has them)"
        )
    return (
        "RDMA locks more memory than most nodes let a process lock. Raise memlock on the nodes "
        "(CRI-O's `default_ulimits` by a MachineConfig, containerd's LimitMEMLOCK) and say "
        "`kubernetes.memlock_is_raised: true`, or take `kubernetes.run_as_user: 0`: the capability "
        "IPC_LOCK has an effect in root's processes only, so it is not asked for"
    )


def is_of_runtime(request: JobRequest) -> bool:
    """Are the pods as a TrainJob's runtime says, that is there?"""
    return request.settings.runtime is not None and request.kind == "trainjob"


def _notes(request: JobRequest) -> Iterator[str]:
    settings = request.settings
    yield from _notes_on_memory(request)
    if request.gpus_per_pod and settings.cpus is None:
        yield (
            f"each pod asks for {CPUS_PER_GPU_RANK * request.ranks_per_pod} CPUs, "
            f"{CPUS_PER_GPU_RANK} a rank, and has no limit: `kubernetes.cpus` sets both, where "
            "loader workers or offloading need more"
        )
    if request.kind == "pytorchjob" and request.num_pods > 1:
        yield (
            "training-operator adds an init container to workers, whose image (alpine:3.10, or its "
            "flag --pytorch-init-container-image) the cluster must be able to pull. It waits about "
            "200 s for the first pod, and runs as root, which Pod Security `restricted` refuses: "
            "there, and where images take longer, `job: jobset` or `job: job` of `kubernetes`"
        )
    if settings.image == OWN_IMAGE:
        yield (
            f"no `kubernetes.image` is named: {OWN_IMAGE} is what the repository's Containerfile "
            "builds, and must be where the nodes look for it"
        )
    locked = locked_memory(request)
    if locked is not None:
        yield locked
    if request.address_map is not None:
        named = "" if settings.run_as_user is not None else _NO_USER_NAMED
        yield (
            "the init container `addresses` runs as root with NET_ADMIN alone: a policy must allow "
            f"it (Pod Security `privileged`, on OpenShift an SCC that has NET_ADMIN{named})"
        )
    if request.num_pods > 1:
        for volume in settings.volumes:
            if volume.size_bytes is not None and volume.access == "ReadWriteOnce":
                yield (
                    f"volume {volume.name}: a ReadWriteOnce claim is mounted on one node only, and "
                    f"{request.num_pods} pods on as many nodes mount it: all but one wait for "
                    "ever. `access: ReadWriteMany`, of a storage class that has it"
                )
    if is_of_runtime(request):
        yield (
            f"security context, priority, runtime class and limits of time are the runtime's, "
            f"{settings.runtime}: a TrainJob can't set them"
        )
    yield from _notes_on_networks(request)


def _notes_on_memory(request: JobRequest) -> Iterator[str]:
    """What is asked for and why, or what is known of the need where that is less or more."""
    need, said_bytes = request.memory_need, request.memory_bytes
    if said_bytes is None and need.total_bytes is not None:
        yield (
            f"each pod asks for {show_size(need.total_bytes)} of memory, without a limit: "
            f"{need.words}. Nothing is offloaded and no loader workers run. "
            "`kubernetes.memory_bytes` sets request and limit"
        )
    elif said_bytes is None:
        of_which = f" (of {', '.join(need.unknown)})" if need.unknown else ""
        beside = f"; known is {need.words}" if need.unknown else ""
        yield (
            f"no memory is asked for: what the ranks need is unknown{of_which}{beside}. "
            "`kubernetes.memory_bytes` sets request and limit: it keeps others from the nodes' "
            "memory, and a namespace's LimitRange from setting less. Offloaded weights, loader "
            "workers and /dev/shm count"
        )
    elif shm_bytes(request) >= said_bytes:
        yield (
            f"/dev/shm may take {show_size(shm_bytes(request))}, and counts against the pod's "
            f"{show_size(said_bytes)} of memory (`kubernetes.memory_bytes`)"
        )
    elif need.known_bytes > said_bytes:
        yield (
            f"the pods' {show_size(said_bytes)} of memory (`kubernetes.memory_bytes`) are less "
            f"than the {show_size(need.known_bytes)} that they may need: {need.words}"
        )


def _notes_on_networks(request: JobRequest) -> Iterator[str]:
    """What several networks share is said once, with their names."""
    names_by_note: dict[str, list[str]] = {}
    for network in request.networks:
        for note in _notes_on_network(network.kubernetes, request.num_pods):
            names_by_note.setdefault(note, []).append(network.name)
    for note, names in names_by_note.items():
        yield f"network{'s' * (len(names) > 1)} {', '.join(names)}: {note}"


def _notes_on_network(attached: Attached | None, num_pods: int) -> Iterator[str]:
    if attached is None:
        return
    if attached.is_rdma and attached.rdma_namespace is None and attached.attachment in HOST_RDMA:
        yield (
            "on nodes whose RDMA namespace mode is `exclusive` (`rdma system`) a pod sees no "
            "adapter unless the `rdma` CNI plugin moves it: `rdma_namespace: exclusive` adds it"
        )
    if attached.attachment in MADE_BY_US:
        if attached.ipam is None:
            yield (
                "no `ipam` is named, so that NICs get no address "
                "(`ipam: {kind: whereabouts, ranges: 10.20.0.0/24}`)"
            )
        if attached.transport in ("roce", "infiniband") and not attached.resources:
            yield "RDMA, and no `resources` of a device plugin, which give a pod /dev/infiniband"
    if attached.ipam is not None and attached.ipam.kind == "host-local" and num_pods > 1:
        yield (
            "`host-local` knows one node only, so pods on two nodes "
            "may get the same address: whereabouts or nv-ipam gives each its own"
        )
