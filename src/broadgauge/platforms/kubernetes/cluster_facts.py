"""What of a cluster do a run's figures depend on? For the environment of its records.

With whatever rights there are: what may not be read is None, and what a cluster has not has no key.
Source: Kubernetes, "Well-Known Labels, Annotations and Taints"; NVIDIA GPU feature discovery,
labels of nodes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import MALFORMED, ApiError
from broadgauge.platforms.kubernetes.json_shapes import (
    JsonMap,
    labels_in,
    mapping,
    mappings,
    text,
    texts,
)
from broadgauge.platforms.kubernetes.operators import OPERATORS, operator_version
from broadgauge.platforms.kubernetes.pod_states import PodState
from broadgauge.platforms.kubernetes.resources import NODES

T = TypeVar("T")
Facts = dict[str, str | None]
TYPES, ZONES, DRIVER = "instance types", "zones", "GPU driver"
INSTANCE_TYPE, ZONE = "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"
_LABELS = {TYPES: INSTANCE_TYPE, ZONES: ZONE}
_DRIVER = "nvidia.com/cuda.driver-version.full"
_OLDER_DRIVER = tuple(f"nvidia.com/cuda.driver.{part}" for part in ("major", "minor", "rev"))
_GPUS = "nvidia.com/"
"""Resources of a node with GPUs, whole or in parts, begin with it."""
OPENSHIFT = "config.openshift.io"
"""Group of the API that OpenShift serves, and no other cluster."""
OPENSHIFT_VERSION = f"/apis/{OPENSHIFT}/v1/clusterversions/version"


def cluster_facts(api: Api, pods: Sequence[PodState]) -> Facts:
    """By name. `pods`: those that ranks run in. Raises nothing: without an answer it is None."""
    reader = _Reader(api)
    return {
        "kubernetes": _text_at(reader.read("/version"), "gitVersion"),
        **_of_groups(reader),
        **_of_nodes(reader, pods),
        "image": _distinct(pod.image_id for pod in pods),
    }


@dataclass(slots=True)
class _Reader:
    """Asks once, and takes no for an answer."""

    api: Api
    is_away: bool = False
    """No server answers: each further question would wait for that again."""

    def read(self, path: str) -> JsonMap | None:
        return self.ask(partial(self.api.read, path))

    def ask(self, question: Callable[[], T]) -> T | None:
        """None: forbidden, missing, or no answer that can be read."""
        if self.is_away:
            return None
        try:
            return question()
        except ApiError as error:
            self.is_away = error.status is None and error.reason != MALFORMED
            return None


def _of_groups(reader: _Reader) -> Facts:
    """OpenShift and operators, by the groups of the API that they serve.

    The groups come first: to whoever may not read a kind it is forbidden where there is none, too.
    """
    answer = reader.read("/apis")
    if answer is None:
        return dict.fromkeys(("openshift", *OPERATORS))
    served = served_groups(answer)
    facts: Facts = {}
    if OPENSHIFT in served:
        facts["openshift"] = openshift_version(reader.read(OPENSHIFT_VERSION))
    for name, operator in OPERATORS.items():
        if operator.group in served:
            facts[name] = reader.ask(partial(operator_version, reader.api, operator))
    return facts


def served_groups(answer: JsonMap) -> set[str | None]:
    """Of the API, by its answer at `/apis`."""
    return {text(each.get("name")) for each in mappings(answer.get("groups"))}


def openshift_version(version: JsonMap | None) -> str | None:
    """That it has, by its ClusterVersion, whatever it is being updated to. Source: OpenShift,
    ClusterVersion: `history` begins with the newest."""
    for update in mappings(mapping(mapping(version).get("status")).get("history")):
        if update.get("state") == "Completed":
            return text(update.get("version"))
    return None


def _of_nodes(reader: _Reader, pods: Sequence[PodState]) -> Facts:
    """Of those that the pods are on: `gx3d-160x1792x8h100 × 2`."""
    nodes: list[JsonMap] = []
    for name in sorted({pod.node for pod in pods if pod.node is not None}):
        node = reader.ask(partial(reader.api.get, NODES, None, name))
        if node is None:
            return dict.fromkeys((*_LABELS, DRIVER))
        nodes.append(node)
    labels = [labels_in(node) for node in nodes]
    facts = {fact: _counted(each.get(label) for each in labels) for fact, label in _LABELS.items()}
    if not nodes or any(map(_has_gpus, nodes)):
        facts[DRIVER] = _distinct(map(gpu_driver, labels))
    return facts


def _has_gpus(node: JsonMap) -> bool:
    return any(
        name.startswith(_GPUS) for name in texts(mapping(node.get("status")).get("capacity"))
    )


def gpu_driver(labels: Mapping[str, str]) -> str | None:
    """Of a node, by what GPU feature discovery says."""
    parts = [labels[label] for label in _OLDER_DRIVER if labels.get(label)]
    return labels.get(_DRIVER) or ".".join(parts) or None


def _text_at(answer: JsonMap | None, key: str) -> str | None:
    return text(mapping(answer).get(key))


def _counted(values: Iterable[str | None]) -> str | None:
    """None where one is unknown."""
    found = Counter(values)
    if not found or None in found:
        return None
    return ", ".join(f"{value} × {found[value]}" for value in sorted(map(str, found)))


def _distinct(values: Iterable[str | None]) -> str | None:
    """Each once; None where one is unknown."""
    found = set(values)
    return None if not found or None in found else ", ".join(sorted(map(str, found)))
