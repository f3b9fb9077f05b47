"""What is an experiment? One file: workloads x networks x storages x cluster sizes."""

from typing import Any

from pydantic import Field, field_validator, model_validator

from broadgauge.specs.base import (
    Name,
    Spec,
    did_you_mean,
    not_yet,
    placed_error,
)
from broadgauge.specs.cost import Cost
from broadgauge.specs.hypothesis import Hypothesis, PublishedFigure
from broadgauge.specs.kubernetes.settings import Kubernetes
from broadgauge.specs.machines.cluster import MAX_NODES, Cluster, split_shape
from broadgauge.specs.machines.hosts import AnyHost
from broadgauge.specs.networks.network import FEWER_NICS, AnyNetwork, Network
from broadgauge.specs.platforms import PLANNED_PLATFORMS, PlatformKind
from broadgauge.specs.secrets.variables import EnvironmentVariables
from broadgauge.specs.selector import SkippedCases
from broadgauge.specs.storages.storage import Storage
from broadgauge.specs.time_limits import TimeLimits
from broadgauge.specs.workloads.workload import Workload


class Experiment(Spec):
    """The matrix, how often it is run, and where."""

    name: Name
    """Names the run's folder."""
    description: str = ""
    """One line for the report."""
    platform: PlatformKind | tuple[PlatformKind, ...] = "emulated"
    """`emulated`: nodes on this machine with networks between them. `local`: this machine as one
    node. `hosts`: machines that your ssh reaches. `kubernetes`: pods, which `broadgauge render`
    writes manifests for. A list is an axis: every case on each of them, block by block."""
    hosts: tuple[AnyHost, ...] = Field(default=(), max_length=MAX_NODES)
    """Of the platform `hosts`: a shape of N nodes takes the first N. Each an object, or its `ssh`
    alone."""
    kubernetes: Kubernetes = Kubernetes()
    """Of the platform `kubernetes`: image, resources, volumes, and where the pods may be placed."""
    cluster: Cluster = Cluster()
    """Nodes, ranks, and what computes."""
    networks: tuple[AnyNetwork, ...] = Field(default=(), max_length=64)
    """Between the nodes (`rate_gbps`, …), or paths inside one (`path`)."""
    storages: tuple[Storage, ...] = Field(default=(), max_length=64)
    """Where files may be, of workloads of the kind `storage`."""
    workloads: tuple[Workload, ...] = Field(min_length=1, max_length=64)
    """What runs on the ranks; `kind` says which: collectives, train, storage, command."""
    launches: int = Field(default=5, ge=1, le=1000)
    """How often each case's ranks are started: the repeat unit of every interval."""
    trials_per_launch: int = Field(default=1, ge=1, le=1000)
    """Measurements of a case in one launch; they describe its spread and widen no evidence."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of the schedule, the weights and the data order."""
    limits: TimeLimits = TimeLimits()
    """How long each phase of a launch may last."""
    environment: EnvironmentVariables = Field(default_factory=dict)
    """Variables for every rank."""
    preflight: bool = True
    """On hosts and in pods: before the first launch, do all machines reach each other over each
    network, and are they alike? Launches that would fail are not started then."""
    best_effort: bool = False
    """Leave out delay and loss where the kernel can't emulate them, and say so, instead of
    refusing the experiment."""
    skip_if: tuple[SkippedCases, ...] = Field(default=(), max_length=64)
    """Cases that any of these matches are not run."""
    hypotheses: tuple[Hypothesis, ...] = Field(default=(), max_length=64)
    """Statements with bounds; the report says of each: supported, refuted or can't tell."""
    published: tuple[PublishedFigure, ...] = Field(default=(), max_length=200)
    """Figures of others that stand beside ours in the report."""
    cost: Cost | None = None
    """What is paid by the hour; tables show dollars where it is known. Without it GPUs have the
    catalog's price."""

    @field_validator("platform", mode="before")
    @classmethod
    def _refuse_planned_platforms(cls, platform: Any) -> Any:
        for each in platform if isinstance(platform, list) else (platform,):
            if each in PLANNED_PLATFORMS:
                raise ValueError(not_yet(str(each), "a platform"))
        return platform

    @field_validator("platform")
    @classmethod
    def _some_platform(
        cls, platform: PlatformKind | tuple[PlatformKind, ...]
    ) -> PlatformKind | tuple[PlatformKind, ...]:
        if isinstance(platform, tuple) and len(set(platform)) != max(1, len(platform)):
            raise ValueError("at least one platform, and each once")
        return platform

    @property
    def platforms(self) -> tuple[PlatformKind, ...]:
        """The axis, of one where one is named."""
        return self.platform if isinstance(self.platform, tuple) else (self.platform,)

    @model_validator(mode="after")
    def _hosts_are_named(self) -> "Experiment":
        if "hosts" in self.platforms and not self.hosts:
            raise placed_error(
                "`platform: hosts` needs to know them",
                ("platform",),
                "`hosts: [gpu1, gpu2]`, as `ssh gpu1` reaches them",
            )
        names = [host.ssh for host in self.hosts]
        for i, name in enumerate(names):
            if name in names[:i]:
                raise placed_error(f"host `{name}` stands twice", ("hosts", i))
        return self

    @model_validator(mode="after")
    def _names_are_unique(self) -> "Experiment":
        for key, items in (
            ("networks", self.networks),
            ("storages", self.storages),
            ("workloads", self.workloads),
            ("hypotheses", self.hypotheses),
        ):
            names = [item.name for item in items]
            for i, name in enumerate(names):
                if name in names[:i]:
                    raise placed_error(
                        f"two {key} are named `{name}`", (key, i, "name"), "give one another `name`"
                    )
        return self

    @model_validator(mode="after")
    def _networks_exist(self) -> "Experiment":
        known = [network.name for network in self.networks]
        for i, workload in enumerate(self.workloads):
            for j, name in enumerate(workload.networks or ()):
                if name not in known:
                    path = ("workloads", i, "networks", j)
                    hint = did_you_mean(name, known)
                    raise placed_error(f"no network is named `{name}`", path, hint)
        return self

    @model_validator(mode="after")
    def _storages_exist(self) -> "Experiment":
        known = [storage.name for storage in self.storages]
        for i, workload in enumerate(self.workloads):
            names = workload.named_storages
            if names is None and not known:
                raise placed_error(
                    f"`kind: {workload.kind}` needs at least one storage under `storages`",
                    ("workloads", i),
                    "storages: [{name: disk, path: /mnt/data}]",
                )
            for j, name in enumerate(names or ()):
                if name not in known:
                    path = ("workloads", i, "storages", j)
                    hint = did_you_mean(name, known)
                    raise placed_error(f"no storage is named `{name}`", path, hint)
        return self

    @model_validator(mode="after")
    def _several_nodes_need_a_network(self) -> "Experiment":
        most_nodes = max(split_shape(shape)[0] for shape in self.cluster.shapes)
        if self.platforms == ("local",) and most_nodes > 1:
            raise placed_error(
                "the local platform is one node",
                ("cluster", "shapes"),
                "shapes are `1x1`, `1x2`, …; several nodes need `platform: emulated`",
            )
        if most_nodes > 1 and not any(isinstance(each, Network) for each in self.networks):
            raise placed_error(
                "several nodes need at least one network between nodes under `networks`",
                ("cluster", "shapes"),
            )
        for i, network in enumerate(self.networks):
            trouble = network.why_not_on(most_nodes) if isinstance(network, Network) else None
            if trouble is not None:
                raise placed_error(trouble, ("networks", i, "nics_per_node"), FEWER_NICS)
        return self
