"""What should be known of rendered jobs before they are applied?"""

from collections.abc import Iterator, Sequence

from broadgauge.manifests.job import PodJob
from broadgauge.manifests.network_needs import network_notes
from broadgauge.manifests.prepared import filled_volume
from broadgauge.manifests.resources import CPUS_PER_GPU_RANK
from broadgauge.specs.kubernetes.settings import ANY_IMAGE
from broadgauge.wording.amounts import show_size

_SCRIPTS = (".py", ".sh", ".bash")


def notes_on(jobs: Sequence[PodJob]) -> tuple[str, ...]:
    """Each once, a sentence or two without place."""
    of_each = (note for job in jobs for note in (*_on_waiting(job), *_notes(job)))
    found = (*_requested_memory(jobs), *network_notes(jobs), *of_each)
    return tuple(dict.fromkeys(found))


def _on_waiting(job: PodJob) -> Iterator[str]:
    """For what is fetched."""
    prepare = job.settings.prepare
    if prepare is None or job.preparation is None:
        return
    maker, space = job.preparation.order.maker, job.settings.namespace
    within = "" if space is None else f"--namespace {space} "
    hold = "hold their GPUs while they wait" if job.gpus_per_pod else "wait"
    yield (
        f"pods that mount {prepare.volume} {hold} for the Job {maker}: apply 35-prepare before, "
        f"and `kubectl wait {within}--for=condition=complete --timeout=2h job/{maker}`"
    )
    words = () if prepare.command is None else prepare.command.words
    for word in words:
        if (
            word.endswith(_SCRIPTS)
            and not word.startswith("/")
            and (word not in job.preparation.files)
        ):
            yield (
                f"kubernetes.prepare.command: {word} is no file beside the experiment, so that it "
                "must be in the image or on the volume"
            )
    volume = filled_volume(job.settings, prepare)
    if volume.access == "ReadWriteOnce":
        yield (
            f"volume {volume.name}: a ReadWriteOnce claim is mounted on one node at a time, so "
            "that pods that wait on another node keep 35-prepare from filling it: let that end "
            "first"
        )


def _requested_memory(jobs: Sequence[PodJob]) -> Iterator[str]:
    """Of those whose need the memory model knows, and nobody says."""
    asked = {
        f"{job.case.workload.name} {job.case.shape}": job.memory_need.total_bytes
        for job in jobs
        if job.settings.memory_bytes is None and job.memory_need.total_bytes is not None
    }
    if asked:
        each = ", ".join(f"{show_size(size)} ({label})" for label, size in asked.items())
        yield (
            f"memory that a pod asks for, by the memory model, without a limit: {each}. Its parts "
            "stand in the job's file. `kubernetes.memory_bytes` sets request and limit"
        )


def _notes(job: PodJob) -> Iterator[str]:
    settings = job.settings
    yield from _notes_on_memory(job)
    if job.gpus_per_pod and settings.cpus is None:
        yield (
            f"each pod asks for {CPUS_PER_GPU_RANK} CPUs a rank and has no limit: "
            "`kubernetes.cpus` sets both, where loader workers or offloading need more"
        )
    if settings.image == ANY_IMAGE:
        yield (
            f"`kubernetes.image` is {ANY_IMAGE}, PyTorch's own, which is also taken where none is "
            "named. It changes with time, and is root's: outside of OpenShift it needs "
            "`kubernetes.run_as_user: 1000`. Name yours"
        )
    elif settings.run_as_user is None and job.address_map is not None:
        yield (
            "the ranks' user: an SCC of OpenShift that lets the address map's container be root "
            "gives the pod no user id, so that the image must say a number other than 0, or "
            "`kubernetes.run_as_user` does"
        )
    elif settings.run_as_user is None:
        yield (
            "no rank runs as root: OpenShift gives its processes a user id, elsewhere the image "
            "must say a number other than 0, or `kubernetes.run_as_user` does"
        )
    if job.kind == "pytorchjob" and job.num_pods > 1:
        yield (
            "the training operator adds an init container to workers, whose image (alpine:3.10, or "
            "its flag --pytorch-init-container-image) the nodes must be able to pull. It waits "
            "some 200 s for the first pod, and runs as root, which Pod Security `restricted` "
            "refuses: there, and where images take longer to pull, `kubernetes.job: job`"
        )
    if job.kind == "trainjob" and settings.ttl_s is not None:
        yield (
            "`kubernetes.ttl_s` is not a TrainJob's: Trainer would make the JobSet that is deleted "
            "again, and train once more; delete it yourself"
        )
    if job.num_pods > 1:
        for volume in job.volumes:
            if volume.size_bytes is not None and volume.access == "ReadWriteOnce":
                yield (
                    f"volume {volume.name}: a ReadWriteOnce claim is mounted on one node only, and "
                    f"{job.num_pods} pods on as many nodes mount it: all but one wait for ever. "
                    "`access: ReadWriteMany`, of a storage class that has it"
                )


def _notes_on_memory(job: PodJob) -> Iterator[str]:
    """What is known of the need where nothing is asked for, or too little."""
    need, said_bytes = job.memory_need, job.settings.memory_bytes
    name = job.case.workload.name
    label = f"{name} {job.case.shape}"
    if said_bytes is None and need.total_bytes is not None:
        return
    if said_bytes is None:
        yield (
            f"{name}: no memory is asked for, since nobody knows what a command of yours needs. "
            "`kubernetes.memory_bytes` sets request and limit: it keeps others from the nodes' "
            "memory. Offloaded weights, loader workers and /dev/shm count"
        )
    elif job.shm_bytes >= said_bytes:
        yield (
            f"{label}: /dev/shm may take {show_size(job.shm_bytes)}, and counts against the pod's "
            f"{show_size(said_bytes)} of memory (`kubernetes.memory_bytes`): smaller "
            "`kubernetes.shm_bytes`, or more memory"
        )
    elif need.known_bytes > said_bytes:
        yield (
            f"{label}: the pods' {show_size(said_bytes)} of memory (`kubernetes.memory_bytes`) are "
            f"less than the {show_size(need.known_bytes)} that they may need: {need.words}"
        )
