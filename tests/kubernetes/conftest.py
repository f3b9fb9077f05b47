"""A real control plane, started once for all tests of a session; a namespace for each test."""

import itertools
from collections.abc import Iterator

import pytest
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.crds import OF_JOBS, OF_NETWORKS, apply_crds
from tests.kubernetes.cluster.operators import OPERATORS, Operators
from tests.kubernetes.cluster.waiting import wait_until
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import KubeletConfig
from tests.kubernetes.pods import Pods

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """etcd, API server, controllers and scheduler; for tests marked `kubernetes`."""
    with ControlPlane() as started:
        yield started


@pytest.fixture(scope="session")
def crds(control_plane: ControlPlane) -> list[str]:
    """Names of the definitions of all kinds of jobs and networks, installed."""
    return apply_crds(control_plane, (*OF_JOBS, *OF_NETWORKS))


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """Of this test alone, with its service account; its objects are deleted after it."""
    name = f"test-{next(_NUMBERS)}"
    with control_plane.client() as client:
        client.create(Namespace(metadata=ObjectMeta(name=name)))
        wait_until(
            lambda: control_plane.has_service_account(name),
            limit_s=60,
            what=f"the default service account of {name}",
        )
        yield name
        client.delete(Namespace, name)


@pytest.fixture(scope="session")
def operators(control_plane: ControlPlane, crds: list[str]) -> Iterator[Operators]:
    """training-operator, jobset and trainer, with their webhooks and runtimes."""
    started = Operators(control_plane)
    started.start(*OPERATORS)
    yield started
    started.close()


@pytest.fixture(scope="module")
def kubelet(
    request: pytest.FixtureRequest,
    control_plane: ControlPlane,
    crds: list[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Kubelet]:
    """Nodes that run pods: what the module's NODES says, as fields of KubeletConfig."""
    config = KubeletConfig(
        kubeconfig=control_plane.kubeconfig(),
        folder=tmp_path_factory.mktemp("k") / "k",
        **request.module.NODES,
    )
    with Kubelet.start(config) as started:
        yield started


@pytest.fixture
def pods(control_plane: ControlPlane, kubelet: Kubelet, namespace: str) -> Iterator[Pods]:
    """The pods of this test's namespace, on the nodes of `kubelet`."""
    with control_plane.http() as http:
        yield Pods(http, namespace)
