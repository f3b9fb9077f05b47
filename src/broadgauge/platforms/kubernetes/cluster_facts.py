"""What of a cluster do a run's figures depend on? For the environment of its records.

With whatever rights there are: what may not be read is None. Source: Kubernetes, "Well-Known
Labels, Annotations and Taints"; NVIDIA GPU feature discovery, labels of nodes.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.json_shapes import JsonMap, labels_in, text
from broadgauge.platforms.kubernetes.pod_states import PodState
from broadgauge.platforms.kubernetes.resources import NODES

Facts = dict[str, str | None]
_OF_NODES = {
    "instance types": "node.kubernetes.io/instance-type",
    "zones": "topology.kubernetes.io/zone",
    "GPU driver": "nvidia.com/cuda.driver-version.full",
}


def cluster_facts(api: Api, pods: Sequence[PodState]) -> Facts:
    """By name; None: could not be read, or is not said. `pods`: those that ranks run in."""
    return {"kubernetes": _version(api), **_of_nodes(api, pods), "image": _image(pods)}


def _version(api: Api) -> str | None:
    try:
        return text(api.read("/version").get("gitVersion"))
    except ApiError:
        return None


def _of_nodes(api: Api, pods: Sequence[PodState]) -> Facts:
    """Of those that the pods are on: `gx3d-160x1792x8h100 × 2`."""
    nodes: list[JsonMap] = []
    for name in sorted({pod.node for pod in pods if pod.node is not None}):
        try:
            nodes.append(api.get(NODES, None, name))
        except ApiError:
            return dict.fromkeys(_OF_NODES)
    return {
        key: _counted(labels_in(node).get(label) for node in nodes)
        for key, label in _OF_NODES.items()
    }


def _counted(values: Iterable[str | None]) -> str | None:
    """None where one is unknown."""
    found = Counter(values)
    if not found or None in found:
        return None
    return ", ".join(f"{value} × {found[value]}" for value in sorted(map(str, found)))


def _image(pods: Sequence[PodState]) -> str | None:
    """With its digest, as the nodes' container engine names it."""
    found = {pod.image_id for pod in pods}
    return None if not found or None in found else ", ".join(sorted(map(str, found)))
