"""Which node of the job is a pod? By the labels that each operator puts on it.

Source: training-operator 1.9, training.kubeflow.org/replica-type and replica-index; Kubernetes,
label batch.kubernetes.io/job-completion-index (of indexed Jobs, JobSets and TrainJobs).
"""

from broadgauge.platforms.kubernetes.pod_states import PodState

_TYPE = "training.kubeflow.org/replica-type"
_INDEX = "training.kubeflow.org/replica-index"
_COMPLETION = "batch.kubernetes.io/job-completion-index"


def number_of(pod: PodState) -> int | None:
    """From 0; None: no node of a job, as pods of others are."""
    kind, index = pod.label(_TYPE), pod.label(_INDEX)
    if kind is not None and index is not None and index.isdecimal():
        return 0 if kind.lower() == "master" else int(index) + 1
    completion = pod.label(_COMPLETION)
    return int(completion) if completion is not None and completion.isdecimal() else None


def by_number(pods: list[PodState], num_pods: int | None = None) -> dict[int, PodState]:
    """Of pods with the same number the one that is not over: operators replace what failed.

    `num_pods`: of the job; None: not known.
    """
    found: dict[int, PodState] = {}
    for pod in pods:
        number = number_of(pod)
        if number is None or (num_pods is not None and number >= num_pods):
            continue
        if number not in found or found[number].has_ended:
            found[number] = pod
    return found
