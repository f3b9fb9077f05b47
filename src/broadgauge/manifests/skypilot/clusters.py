"""Which clusters does an experiment need on SkyPilot? One for each number of nodes and tier.

What else a cluster is made of (accelerators, disks, storages) is the experiment's own, and so the
same for all: cases that differ in workload, storage or ranks share one.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from broadgauge.specs.case import Case
from broadgauge.specs.skypilot import NetworkTier

LONGEST_NAME = 40
"""Of a cluster: clouds take 63 characters, and SkyPilot adds a hash of the user and a number."""
_LONGEST_WORD = 20


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ClusterKey:
    """What must be equal for two cases to run on one cluster."""

    nodes: int
    network_tier: NetworkTier

    @property
    def word(self) -> str:
        """`2-nodes-best`: its file, and the end of its name."""
        return f"{self.nodes}-node{'s' * (self.nodes > 1)}-{self.network_tier}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCases:
    """A cluster, and what runs on it."""

    key: ClusterKey
    cases: tuple[Case, ...]


def cluster_key(case: Case) -> ClusterKey:
    """On which cluster does it run? Where there is nothing between nodes, no tier is paid for."""
    found = None if case.link is None else case.link.found
    tier = None if found is None else found.network_tier
    return ClusterKey(nodes=case.nodes, network_tier=tier or "standard")


def clusters_of(cases: Iterable[Case]) -> tuple[ClusterCases, ...]:
    """In the order in which the cases first need them."""
    groups: dict[ClusterKey, list[Case]] = {}
    for case in cases:
        groups.setdefault(cluster_key(case), []).append(case)
    return tuple(ClusterCases(key=key, cases=tuple(group)) for key, group in groups.items())


def cluster_name(experiment: str, run: str, key: ClusterKey) -> str:
    """As SkyPilot and clouds take it: letters, digits and dashes, a letter first.

    Source: SkyPilot 0.14.1, `CLUSTER_NAME_VALID_REGEX`. `run`: tells the runs of one experiment
    apart; empty: it is for the user to do.
    """
    words = re.sub(r"[^a-z0-9]+", "-", experiment.lower()).strip("-")
    parts: Sequence[str] = ("bg", words[:_LONGEST_WORD].strip("-"), run, key.word)
    return "-".join(part for part in parts if part)
