"""A real control plane, started once for all tests of a session; a namespace for each test.

    @pytest.mark.kubernetes
    @pytest.mark.usefixtures("operators")
    def test_what_is_rendered_is_accepted(scratch: Scratch) -> None:
        scratch.dry_run(*manifests)

asks the API server and all webhooks; RefusedError says what is wrong, with the field's path. Tests
of attached networks alone take `network_kinds` in its place, and those that need no kinds beyond
Kubernetes' own neither.
"""

import itertools
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from scripts.control_plane.recipes import NETWORKS, OLDER_TRAINER
from tests.kubernetes.cluster.api import Manifest
from tests.kubernetes.cluster.control_plane import GUEST, ControlPlane
from tests.kubernetes.cluster.operators import install_kinds, start
from tests.kubernetes.cluster.programs import schemas
from tests.kubernetes.cluster.scratch import Scratch
from tests.kubernetes.cluster.waiting import wait_until
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import KubeletConfig
from tests.kubernetes.pods import Pods
from tests.kubernetes.runs import User

_NUMBERS = itertools.count(1)


def namespace_manifest(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd, API server, controllers and scheduler; for tests marked `kubernetes`."""
    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as started:
        yield started


@pytest.fixture(scope="session")
def network_kinds(control_plane: ControlPlane) -> None:
    """Attached networks', by their schemas: no webhook judges, and nothing attaches."""
    install_kinds(control_plane.api(), chain.from_iterable(map(schemas, NETWORKS)))


@pytest.fixture(scope="session")
def operators(control_plane: ControlPlane, network_kinds: None) -> None:
    """Those of jobs, with their kinds and webhooks, beside the control plane, which knows attached
    networks too: what a rendered job is made of."""
    start(control_plane)


@pytest.fixture(scope="session")
def older_trainer(control_plane: ControlPlane) -> Scratch:
    """An API server that has the kinds of Trainer 2.1 and those of attached networks, by their
    schemas: no webhook judges."""
    api = control_plane.add_api_server("older-trainer")
    install_kinds(api, chain.from_iterable(map(schemas, (OLDER_TRAINER, *NETWORKS))))
    api.create(namespace_manifest("older-trainer"))
    return Scratch(api, "older-trainer")


@pytest.fixture
def scratch(control_plane: ControlPlane) -> Iterator[Scratch]:
    """The admin's requests in a namespace of this test alone, with its service account."""
    api = control_plane.api()
    name = f"test-{next(_NUMBERS)}"
    namespace = namespace_manifest(name)
    api.create(namespace)
    wait_until(lambda: control_plane.has_service_account(name), f"the service account of {name}")
    yield Scratch(api, name)
    api.delete(namespace)


@pytest.fixture
def guest(control_plane: ControlPlane, scratch: Scratch) -> Scratch:
    """The same namespace for a user without any right."""
    return Scratch(control_plane.api(GUEST), scratch.namespace)


@pytest.fixture(scope="module")
def kubelet(
    request: pytest.FixtureRequest,
    control_plane: ControlPlane,
    network_kinds: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Kubelet]:
    """Nodes that run pods: what the module's NODES says, as fields of KubeletConfig. For tests
    marked `root`, too."""
    config = KubeletConfig(
        **control_plane.for_kubelets(),
        folder=tmp_path_factory.mktemp("k"),
        **request.module.NODES,
    )
    with Kubelet.start(config) as started:
        yield started


@pytest.fixture
def pods(kubelet: Kubelet, scratch: Scratch) -> Pods:
    """The pods of this test's namespace, on the nodes of `kubelet`."""
    return Pods(scratch)


@pytest.fixture
def user(kubelet: Kubelet, scratch: Scratch, control_plane: ControlPlane, tmp_path: Path) -> User:
    """Who runs experiments on the nodes of `kubelet`, and has no rights yet."""
    return User(scratch, control_plane, tmp_path)


@pytest.fixture
def scripted(user: User) -> User:
    """Whose ranks need no torch."""
    user.have_scripted_ranks()
    return user
