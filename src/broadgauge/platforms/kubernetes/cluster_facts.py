"""What of a cluster do a run's figures depend on? For the environment of its records.

Read once for each job, with whatever rights there are: what may not be read is None. Which nodes a
case had stands with its nodes.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from broadgauge.platforms.kubernetes.inventory import ClusterNode, Inventory, NotKnown
from broadgauge.platforms.kubernetes.inventory_reading import read_inventory
from broadgauge.platforms.kubernetes.pod_states import PodState
from broadgauge.platforms.kubernetes.running_job import RunningJob
from broadgauge.specs.errors import PlatformError

Facts = dict[str, str | None]


@dataclass(slots=True)
class FactsOfJobs:
    """Of the cluster that each job of a run was in."""

    _known: dict[str, Facts] = field(default_factory=dict)

    def of(self, job: RunningJob | None) -> Facts:
        """The same for all launches of a job. An API that is away then tells nothing."""
        if job is None:
            return {}
        if job.name not in self._known:
            try:
                pods = list(job.pods().values())
                inventory = read_inventory(job.api, job.place.namespace)
            except PlatformError:
                return {"kubernetes": None}
            self._known[job.name] = cluster_facts(inventory, pods)
        return dict(self._known[job.name])


def cluster_facts(inventory: Inventory, pods: Sequence[PodState]) -> Facts:
    """By name; None: could not be read. Without a key: the cluster has none."""
    facts: Facts = {"kubernetes": _told(inventory.version)}
    openshift = inventory.openshift
    if not isinstance(openshift, NotKnown) or openshift.may_be_there:
        facts["openshift"] = _told(openshift)
    operators = inventory.operators
    if isinstance(operators, NotKnown):
        facts["operators"] = None
    else:
        facts |= operators
    return facts | _of_nodes(inventory.nodes, pods) | _of_pods(pods)


def _of_nodes(nodes: tuple[ClusterNode, ...] | NotKnown, pods: Sequence[PodState]) -> Facts:
    """Of those that the pods are on."""
    if isinstance(nodes, NotKnown):
        return {"instance types": None, "zones": None, "GPU driver": None}
    wanted = {pod.node for pod in pods}
    used = [node for node in nodes if node.name in wanted]
    return {
        "instance types": _counted(node.instance_type for node in used),
        "zones": _counted(node.zone for node in used),
        "GPU driver": _distinct(node.driver for node in used),
    }


def _of_pods(pods: Sequence[PodState]) -> Facts:
    """The image with its digest, as the nodes' container engine names it."""
    return {"image": _distinct(pod.image_id for pod in pods)}


def _told(value: str | NotKnown) -> str | None:
    return None if isinstance(value, NotKnown) else value


def _counted(values: Iterable[str | None]) -> str | None:
    """`gx3d-160x1792x8h100 x 2`; None where one is unknown."""
    found = Counter(values)
    if not found or None in found:
        return None
    return ", ".join(f"{value} x {found[value]}" for value in sorted(map(str, found)))


def _distinct(values: Iterable[str | None]) -> str | None:
    found = set(values)
    return None if not found or None in found else ", ".join(sorted(map(str, found)))
