"""What is a case? One point of the matrix, resolved until nothing is left to choose."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self

from broadgauge.messages.vocabulary import Backend, Device
from broadgauge.specs.base import Spec
from broadgauge.specs.networks.network import AnyNetwork, Network, NodePath
from broadgauge.specs.platforms import PlatformKind
from broadgauge.specs.records.imported import Imported
from broadgauge.specs.secrets.variables import EnvironmentVariables
from broadgauge.specs.storages.storage import Storage
from broadgauge.specs.workloads.workload import Workload

Arm = Literal["candidate", "baseline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseName:
    """What must be equal for two cases to be the two sides of a comparison?

    Not the key: what the user changed between the two runs is in it, and is what is compared.
    """

    workload: str
    network: str
    shape: str
    backend: Backend
    platform: PlatformKind | None = None
    """None: the run has one only."""
    storage: str = ""
    """Empty: no files are written or read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """Who talks, and through what: equal where two cases differ in network or workload only."""

    shape: str
    device: Device
    backend: Backend
    arm: Arm
    platform: PlatformKind | None


class Case(Spec):
    """One workload on one network with one number of nodes and ranks."""

    workload: Workload
    network: AnyNetwork | None
    """Between the nodes, or a path inside one; None: one node as it is."""
    nodes: int
    ranks_per_node: int
    device: Device
    backend: Backend
    environment: EnvironmentVariables
    """Experiment's, network's and workload's variables, the later ones winning."""
    arm: Arm = "candidate"
    """`baseline`: of another experiment's run, repeated beside this one to compare with."""
    platform: PlatformKind | None = None
    """Where it runs, in a run that has several platforms; None: the run has one."""
    storage: Storage | None = None
    """Where the files are that are written and read; None: none are."""
    imported: Imported | None = None
    """Another program measured it, and `broadgauge import` read its output; None: we did."""

    @property
    def world_size(self) -> int:
        return self.nodes * self.ranks_per_node

    @property
    def shape(self) -> str:
        return f"{self.nodes}x{self.ranks_per_node}"

    @property
    def ranks(self) -> Ranks:
        return Ranks(
            shape=self.shape,
            device=self.device,
            backend=self.backend,
            arm=self.arm,
            platform=self.platform,
        )

    @cached_property
    def key(self) -> str:
        """The hash of the canonical resolved form: equal keys measure the same thing.

        Names and descriptions are labels and stay out, and so does where a rate was inferred from:
        renaming a network is not a new case.
        Variables count once, merged. Values left at their default stay out too, so that a key
        lives when a later version adds a field; a default, once released, never changes
        (tests/results/golden holds that).
        """
        return _key(self.model_dump(mode="json", exclude_defaults=True))

    def with_key_of(self, environment: Mapping[str, str]) -> Self:
        """The case with the key it had when values of secrets were stored, and a part of it."""
        kept = self.model_copy()
        form = self.model_dump(mode="json", exclude_defaults=True)
        kept.__dict__["key"] = _key(form | {"environment": dict(environment)})
        return kept

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """pydantic's, which would copy the key of what is not changed yet, too."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("key", None)
        return copied

    @property
    def link(self) -> Network | None:
        """The network between the nodes; None: all ranks are on one node."""
        return self.network if isinstance(self.network, Network) else None

    @property
    def has_network(self) -> bool:
        """Does its network's name say over what it ran, so that others are compared with it?"""
        return self.link is not None or self.imported is not None

    @property
    def path(self) -> NodePath | None:
        """The path inside the one node; None: not named, or several nodes."""
        return self.network if isinstance(self.network, NodePath) else None

    @property
    def network_name(self) -> str:
        """For people: on GPUs, where NCCL is what one expects, Gloo is named too; and the platform
        where there are several."""
        is_unexpected = self.device == "cuda" and self.backend == "gloo"
        where = "" if self.platform is None else f" on {self.platform}"
        name = self.plain_network_name + ("/gloo" if is_unexpected else "") + where
        if self.storage is None:
            return name
        return self.storage.name if self.network is None else f"{name}, {self.storage.name}"

    @property
    def storage_name(self) -> str:
        """Empty: no files are written or read."""
        return "" if self.storage is None else self.storage.name

    @property
    def plain_network_name(self) -> str:
        """As the experiment names it, or who imported it."""
        if self.imported is not None:
            return self.imported.label
        return "one node" if self.network is None else self.network.name

    @property
    def label(self) -> str:
        """`train 2x1 pod-like`: for people, not for matching."""
        arm = " (baseline)" if self.arm == "baseline" else ""
        return f"{self.workload.name} {self.shape} {self.network_name}{arm}"


LABELS = (
    *("name", "description", "rate_inferred_from", "networks", "storages", "platforms"),
    "environment",
)
"""Of a workload, a network or a storage, what a key leaves out; variables are the case's, merged.
"""
STORAGE_LABELS = ("like", "read_gbyte_per_s", "write_gbyte_per_s", "is_durable")
"""What others say of a storage; it is measured whatever they say."""
MODEL_LABELS = ("shape_of", "shape_of_layers")
"""Of a trained model: whose shape its sizes are."""
CONFIG_LABELS = ("file", "nnodes", "nproc_per_node")
"""Of a command's `config`: where it stood, and what the case has itself."""


def _key(form: dict[str, Any]) -> str:
    storage = form.get("storage") or {}
    for part in (form["workload"], form["network"] or {}, storage):
        for label in LABELS:
            part.pop(label, None)
    for label in STORAGE_LABELS:
        storage.pop(label, None)
    for holder in (form["workload"], form["workload"].get("sizes")):
        if isinstance(holder, dict) and isinstance(model := holder.get("model"), dict):
            holder["model"] = {k: v for k, v in model.items() if k not in MODEL_LABELS}
    if isinstance(config := form["workload"].get("config"), dict):
        form["workload"]["config"] = {k: v for k, v in config.items() if k not in CONFIG_LABELS}
    text = json.dumps(form, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def case_name(case: Case) -> CaseName:
    """The case's own."""
    return CaseName(
        workload=case.workload.name,
        network=case.plain_network_name,
        shape=case.shape,
        backend=case.backend,
        platform=case.platform,
        storage=case.storage_name,
    )


def counterpart_name(case: Case) -> CaseName:
    """That of the same case whatever the platform, and whatever side of a comparison it is on."""
    return replace(case_name(case), platform=None)
