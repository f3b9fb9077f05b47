"""What is a case? One point of the matrix, resolved until nothing is left to choose."""

import hashlib
import json
from typing import Literal

from broadgauge.specs.base import EnvironmentVariables, Spec
from broadgauge.specs.network import Network
from broadgauge.specs.workload import Workload

Device = Literal["cpu", "cuda"]
Backend = Literal["gloo", "nccl"]


class Case(Spec):
    """One workload on one network with one number of nodes and ranks."""

    workload: Workload
    network: Network | None
    """None: all ranks are on one node, so no network is between them."""
    nodes: int
    ranks_per_node: int
    device: Device
    backend: Backend
    environment: EnvironmentVariables
    """Experiment's, network's and workload's variables, the later ones winning."""

    @property
    def world_size(self) -> int:
        return self.nodes * self.ranks_per_node

    @property
    def shape(self) -> str:
        return f"{self.nodes}x{self.ranks_per_node}"

    @property
    def key(self) -> str:
        """The hash of the canonical resolved form: equal keys measure the same thing.

        Names and descriptions are labels and stay out: renaming a network is not a new case.
        Variables count once, merged. Values left at their default stay out too, so that a key
        lives when a later version adds a field; a default, once released, never changes
        (tests/results/golden holds that).
        """
        form = self.model_dump(mode="json", exclude_defaults=True)
        for part in (form["workload"], form["network"]):
            if part is not None:
                for label in ("name", "description", "networks", "environment"):
                    part.pop(label, None)
        text = json.dumps(form, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def network_name(self) -> str:
        return "one node" if self.network is None else self.network.name

    @property
    def label(self) -> str:
        """`train 2x1 pod-like`: for people, not for matching."""
        return f"{self.workload.name} {self.shape} {self.network_name}"
