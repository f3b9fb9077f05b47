"""What is written for a cluster, and what becomes of it when it is planned and rendered."""

import json
from pathlib import Path
from typing import Any

from tests.platforms.kubernetes.inventory.made_up import answers

from broadgauge.platforms.kubernetes.inventory.cluster_inventory import Inventory
from broadgauge.running.experiments import load_text
from broadgauge.running.first_experiment_on_cluster import (
    FirstOnCluster,
    first_experiment_on_cluster,
)
from broadgauge.running.first_networks import MAP_FILE
from broadgauge.running.rendering.experiment import RenderedExperiment, render_experiment
from broadgauge.running.rendering.pod_attachments import attach_for_run
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.networks.pod_networks import PodNetwork, SecondaryNetwork

NETWORKS = "k8s.v1.cni.cncf.io"


def written(
    found: Inventory, *, cluster: str = "c", namespace: str = "training", context: str | None = None
) -> FirstOnCluster:
    return first_experiment_on_cluster(found, cluster=cluster, namespace=namespace, context=context)


def rendered(found: FirstOnCluster, folder: Path) -> tuple[Experiment, RenderedExperiment]:
    """What `run --dry-run` and `render` make of it, of both files."""
    path = folder / "experiment.yaml"
    if found.address_map is not None:
        (folder / MAP_FILE).write_text(found.address_map)
    loaded = load_text(found.text, path, ())
    files = render_experiment(loaded)
    cases = [job.case for job in files.jobs]
    assert attach_for_run(loaded.experiment.kubernetes, cases, "c", folder)  # in the same pods
    return loaded.experiment, files


def loaded(found: FirstOnCluster, folder: Path) -> Experiment:
    return rendered(found, folder)[0]


def faces(experiment: Experiment) -> dict[str, SecondaryNetwork]:
    """By network; the first is what every pod has."""
    first, *others = experiment.networks
    assert isinstance(getattr(first, "kubernetes", None), PodNetwork)
    return {each.name: face for each in others if (face := getattr(each, "kubernetes", None))}


def device(
    name: str, device_name: str, *, space: str = "training", **config: Any
) -> dict[str, Any]:
    """A definition that moves a device of the node into a pod."""
    return definition(name, space=space, type="host-device", device=device_name, **config)


def definition(
    name: str, *, space: str = "training", resource: str | None = None, **config: Any
) -> dict[str, Any]:
    """Of one plugin."""
    about: dict[str, Any] = {"name": name, "namespace": space}
    if resource is not None:
        about["annotations"] = {f"{NETWORKS}/resourceName": resource}
    return {"metadata": about, "spec": {"config": json.dumps(config)}}


def of_networks(items: list[dict[str, Any]], name: str = "own_switch") -> dict[str, Any]:
    """A cluster with these definitions in the place of its own."""
    data = answers(name)
    data["attachments"]["items"] = items
    return data
