"""Which operators of a cluster do a run's figures depend on, and in which version are they there?

Asked for by name, one at a time: a list of all deployments is long, and most users may not read it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.json_shapes import (
    JsonMap,
    labels_in,
    mapping,
    mappings,
    text,
)
from broadgauge.platforms.kubernetes.resources import Resource

DEPLOYMENTS = Resource(group="apps", version="v1", kind="Deployment", plural="deployments")


@dataclass(frozen=True, slots=True)
class Operator:
    """How one is known."""

    group: str
    """Of the API, that it serves."""
    deployment: str
    """As its own manifests name it."""


OPERATORS: Mapping[str, Operator] = {
    "training-operator": Operator("kubeflow.org", "training-operator"),
    "trainer": Operator("trainer.kubeflow.org", "kubeflow-trainer-controller-manager"),
    "kueue": Operator("kueue.x-k8s.io", "kueue-controller-manager"),
    "sriov-network-operator": Operator("sriovnetwork.openshift.io", "sriov-network-operator"),
    "network-operator": Operator("mellanox.com", "nvidia-network-operator-controller-manager"),
    "gpu-operator": Operator("nvidia.com", "gpu-operator"),
}
"""By the name of its fact. Source: the manifests and charts of each."""


def operator_version(api: Api, operator: Operator) -> str | None:
    """Of all that are deployed, in whichever namespaces. None: there is none of that name, or one
    whose version can't be told. Raises ApiError."""
    answer = api.list(DEPLOYMENTS, None, fields=f"metadata.name={operator.deployment}")
    found = {_version(each) for each in mappings(answer.get("items"))}
    return None if not found or None in found else ", ".join(sorted(map(str, found)))


def _version(deployment: JsonMap) -> str | None:
    """By its label, else by its image's tag; an image by digest alone has none."""
    label = labels_in(deployment).get("app.kubernetes.io/version")
    if label:
        return label
    pods = mapping(mapping(mapping(deployment.get("spec")).get("template")).get("spec"))
    for container in mappings(pods.get("containers")):
        image = (text(container.get("image")) or "").partition("@")[0]
        return image.rpartition("/")[2].partition(":")[2] or None
    return None
