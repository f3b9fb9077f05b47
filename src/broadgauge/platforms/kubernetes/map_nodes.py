"""Has a cluster the nodes that an address map names? Pods go to no others."""

from collections.abc import Collection
from dataclasses import dataclass

from broadgauge.agent.pod.address_map import parse_map
from broadgauge.manifests.mapped_nodes import mapped_nodes
from broadgauge.manifests.run_job import RunJob
from broadgauge.specs.errors import Problem
from broadgauge.specs.networks.pod_networks import SecondaryNetwork
from broadgauge.wording.near_words import did_you_mean

MOST_SHOWN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingNodes:
    """Names of the map that are no node's."""

    problems: tuple[Problem, ...]
    """One for each of the first."""
    is_enough_left: bool
    """Has the cluster as many of the others as there are pods?"""


def missing_nodes(run: RunJob, there: Collection[str]) -> MissingNodes | None:
    """`there`: the cluster's nodes. None: it has all that the run's pods may go to."""
    named = mapped_nodes(run)
    missing = [name for name in named if name not in there]
    if not missing:
        return None
    place, path = _place_of_map(run)
    lines = {row.host: row.line for row in reversed(parse_map((run.address_map or b"").decode()))}
    num_left = len(named) - len(missing)
    return MissingNodes(
        problems=tuple(
            Problem(
                place,
                f"{path}:{lines[name]}: the cluster has no node `{name}`; {num_left} of the map's "
                f"nodes are there, for {run.num_pods} pods",
                did_you_mean(name, there),
            )
            for name in missing[:MOST_SHOWN]
        ),
        is_enough_left=num_left >= run.num_pods,
    )


def _place_of_map(run: RunJob) -> tuple[str, str]:
    """Where the experiment names the file, and how."""
    for case in run.cases:
        face = None if case.link is None else case.link.kubernetes
        if case.link is None or not isinstance(face, SecondaryNetwork) or face.ipam is None:
            continue
        if face.ipam.map is not None:
            return f"networks.{case.link.name}.kubernetes.ipam.map", face.ipam.map
    raise AssertionError("pods have a map's addresses where a network names it")
