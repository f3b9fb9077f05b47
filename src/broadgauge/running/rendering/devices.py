"""What has a cluster for ranks to run on, as far as an experiment says? No cluster is asked."""

from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.machines.cluster import split_shape
from broadgauge.specs.platforms import Devices


def pod_devices(experiment: Experiment) -> Devices:
    """As many GPUs and cores as its pods ask for: the same file renders alike everywhere.

    Whether nodes have them is the scheduler's to say. `auto` is one rank a CPU node, and else a
    rank for each of `kubernetes.gpus_per_pod`. Raises InputError where that does not say it, and
    for GPUs that the ranks of a shape can't share evenly.
    """
    settings = experiment.kubernetes
    texts = [split_shape(shape)[1] for shape in experiment.cluster.shapes]
    ranks = [int(text) for text in texts if text.isdigit()]
    if "auto" in texts or not ranks:
        ranks.append(_auto(experiment))
    most_ranks = max(ranks)
    _check_gpus(experiment, ranks)
    asked = experiment.cluster.cores_per_node
    has = most_ranks if settings.cpus is None else max(1, int(settings.cpus))
    return Devices(
        place="a pod",
        num_gpus=0 if experiment.cluster.device == "cpu" else most_ranks,
        num_cores=has if asked == "auto" else asked,
        are_shared=False,
        finds_networks=True,
    )


def _auto(experiment: Experiment) -> int:
    """Raises InputError."""
    gpus = experiment.kubernetes.gpus_per_pod
    if experiment.cluster.device == "cpu":
        return 1
    if gpus is None:
        raise InputError(
            f"cluster.shapes: {', '.join(experiment.cluster.shapes)}: on Kubernetes no cluster is "
            "asked how many GPUs a node has",
            hint="`kubernetes.gpus_per_pod: 8`, or shapes in numbers: `2x8` for two nodes of eight",
        )
    return gpus


def _check_gpus(experiment: Experiment, ranks: list[int]) -> None:
    """Raises InputError."""
    gpus = experiment.kubernetes.gpus_per_pod
    if gpus is None or experiment.cluster.device == "cpu":
        return
    for each in ranks:
        if gpus % each:
            raise InputError(
                f"kubernetes.gpus_per_pod: {gpus} GPUs are not shared evenly by {each} ranks "
                f"(cluster.shapes: {', '.join(experiment.cluster.shapes)})",
                hint="a multiple of the ranks a node, or leave it out: one GPU a rank",
            )
