"""What has a cluster of SkyPilot for ranks to run on, as far as an experiment says? No cloud is
asked."""

from broadgauge.manifests.skypilot.budget import hold_limit_s
from broadgauge.specs.cluster import split_shape
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.platforms import Devices


def skypilot_devices(experiment: Experiment) -> Devices:
    """GPUs as `accelerators` names them; cores as asked for.

    Raises InputError, also where the money does not pay for the largest of its clusters.
    """
    settings = experiment.skypilot
    shapes = [split_shape(shape) for shape in experiment.cluster.shapes]
    ranks = [int(text) for _, text in shapes if text.isdigit()]
    needs_number = any(text == "auto" for _, text in shapes) and not settings.gpus_per_node
    if needs_number or (experiment.cluster.device == "cuda" and not settings.gpus_per_node):
        raise InputError(
            "skypilot.accelerators: which GPUs has a node? The experiment does not say",
            hint="`skypilot: {accelerators: H100:8}`; on CPUs `device: cpu` and shapes as `2x4`",
        )
    hold_limit_s(experiment, max(nodes for nodes, _ in shapes))
    asked = experiment.cluster.cores_per_node
    named = 0 if settings.cpus is None else int(settings.cpus.rstrip("+"))
    return Devices(
        place="a node of the cloud",
        num_gpus=0 if experiment.cluster.device == "cpu" else settings.gpus_per_node,
        num_cores=(named or max(ranks, default=1)) if asked == "auto" else asked,
        are_shared=False,
        finds_networks=True,
    )
