"""What has a cluster for ranks to run on, as far as an experiment says? No cluster is asked."""

from broadgauge.specs.cluster import split_shape
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.platforms import Devices


def kubernetes_devices(experiment: Experiment) -> Devices:
    """As many GPUs and cores as its pods ask for: the same file renders alike everywhere.

    Whether nodes have them is the scheduler's to say. Raises InputError for `auto`, which means
    what is there.
    """
    shapes = [split_shape(shape) for shape in experiment.cluster.shapes]
    ranks = [int(text) for _, text in shapes if text.isdigit()]
    if any(text == "auto" for _, text in shapes) or not ranks:
        raise InputError(
            "cluster.shapes: on Kubernetes the number of ranks a node is said, not found",
            hint="`2x8` for two nodes of eight GPUs; `broadgauge init --from-cluster` reads them",
        )
    most_ranks, settings = max(ranks), experiment.kubernetes
    asked = experiment.cluster.cores_per_node
    has = most_ranks if settings.cpus is None else max(1, int(settings.cpus))
    return Devices(
        place="a pod",
        num_gpus=0 if experiment.cluster.device == "cpu" else most_ranks,
        num_cores=has if asked == "auto" else asked,
        are_shared=False,
        finds_networks=True,
    )
