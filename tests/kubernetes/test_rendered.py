"""Proves manifests/ by the real API server: it takes all that is rendered, strictly, with the
webhooks of the real operators."""

from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.operators import Operators
from tests.kubernetes.cluster.strict import dry_run
from tests.manifests.requests import KINDS, ROCE, VNIC, experiment_of, request_of

from broadgauge.manifests.labels import JobKind
from broadgauge.manifests.prepare import prepare_file
from broadgauge.manifests.rbac import facts_file, rights_file
from broadgauge.manifests.rendering import render_job
from broadgauge.running.experiments import example_names, load
from broadgauge.running.rendering import ON_KUBERNETES, render_experiment
from broadgauge.specs.network import Network

pytestmark = pytest.mark.kubernetes

VOLUMES = [{"name": "storage", "mount": "/mnt/storage", "size_bytes": "10 GiB"}]
MAP = "worker-0:ens13:net1:10.0.1.9\nworker-1:ens13:net1:10.0.1.10\n"
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "one-pod": {"shape": "1x2"},
    "everything": {
        "image_pull_policy": "Always",
        "image_pull_secrets": ["registry"],
        "cpus": 2.5,
        "node_selector": {"gpu": "h100"},
        "tolerations": ["nvidia.com/gpu", {"key": "team", "operator": "Equal", "value": "a"}],
        "priority_class": "system-node-critical",
        "service_account": "default",
        "runtime_class": "nvidia",
        "annotations": {"team": "a: b\nc"},
        "labels": {"team": "a"},
        "volumes": VOLUMES,
        "results": "storage",
        "fs_group": 2000,
        "secrets": {"HF_TOKEN": {"secret": "hf", "key": "token"}},
        "working_folder": "/workspace",
        "deadline_s": 3600,
    },
    "root": {"run_as_user": 0, "networks": [{"name": "roce", "kubernetes": ROCE}]},
    "kueue": {"queue": {"kueue": "team"}},
    "volcano": {"queue": {"volcano": "team"}},
    "networks": {
        "networks": [
            {"name": "pod", "kubernetes": "pod"},
            {"name": "vnic", "nics_per_node": 2, "kubernetes": VNIC},
            {"name": "sriov", "kubernetes": {"attachment": "sriov", "resources": "a.io/vf"}},
        ]
    },
}


def has_face(example: str) -> bool:
    """Does a network of it say what is attached to pods?"""
    networks = load(example, ()).experiment.networks
    return any(isinstance(each, Network) and each.kubernetes for each in networks)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kind", KINDS)
def test_api_server_takes_every_object(
    control_plane: ControlPlane, operators: Operators, namespace: str, kind: JobKind, variant: str
) -> None:
    experiment = experiment_of(namespace=namespace, **VARIANTS[variant])
    objects = render_job(request_of(experiment, kind, files={"src/train.py": b"print()\n"})).objects
    assert dry_run(control_plane, objects) == []


@pytest.mark.parametrize("kind", KINDS)
def test_api_server_takes_the_address_map(
    control_plane: ControlPlane, operators: Operators, namespace: str, kind: JobKind
) -> None:
    by_map = {"attachment": "host-device", "devices": "ens13"}
    by_map |= {"ipam": {"kind": "address-map", "map": "map.yaml"}}
    networks = [{"name": "vnic", "kubernetes": by_map}]
    experiment = experiment_of(namespace=namespace, networks=networks)
    objects = render_job(request_of(experiment, kind, address_map=MAP)).objects
    assert dry_run(control_plane, objects) == []


def test_api_server_takes_a_job_of_a_runtime_that_is_there(
    control_plane: ControlPlane, operators: Operators, namespace: str
) -> None:
    experiment = experiment_of(namespace=namespace, runtime="torch-distributed")
    assert dry_run(control_plane, render_job(request_of(experiment, "trainjob")).objects) == []


def test_api_server_takes_what_fetches_model_and_data(
    control_plane: ControlPlane, operators: Operators, namespace: str
) -> None:
    prepare = {"volume": "storage", "model": "me/tiny", "command": ["python", "tokenise.py"]}
    experiment = experiment_of(namespace=namespace, volumes=VOLUMES, prepare=prepare)
    file = prepare_file(request_of(experiment, files={"tokenise.py": b"print()\n"}))
    assert file is not None
    assert dry_run(control_plane, file.objects) == []


@pytest.mark.parametrize("kind", KINDS)
def test_api_server_takes_the_rights(
    control_plane: ControlPlane, operators: Operators, namespace: str, kind: JobKind
) -> None:
    request = request_of(experiment_of(namespace=namespace, volumes=VOLUMES), kind)
    objects = [*rights_file(request).objects, *facts_file(request).objects]
    assert dry_run(control_plane, objects) == []


@pytest.mark.parametrize("profile", ["efa", "gpudirect-tcpxo", "gpudirect-tcpx"])
@pytest.mark.parametrize("kind", KINDS)
def test_api_server_takes_a_clouds_fabric(
    control_plane: ControlPlane, operators: Operators, namespace: str, kind: JobKind, profile: str
) -> None:
    networks = [{"name": "net", "kubernetes": {"profile": profile}}]
    experiment = experiment_of(namespace=namespace, networks=networks)
    assert dry_run(control_plane, render_job(request_of(experiment, kind)).objects) == []


@pytest.mark.parametrize("kind", KINDS)
def test_api_server_takes_all_that_an_example_renders(
    control_plane: ControlPlane, operators: Operators, namespace: str, kind: JobKind, tmp_path: Path
) -> None:
    """Those that have a face of Kubernetes, and the one that docs/experiments.md shows."""
    names = [str(shown_experiment(tmp_path)), *filter(has_face, example_names())]
    for name in names:
        loaded = load(name, (ON_KUBERNETES, f"kubernetes.namespace={namespace}"))
        refused = dry_run(control_plane, render_experiment(loaded, kind).objects)
        assert (name, refused) == (name, [])


def shown_experiment(folder: Path) -> Path:
    """With the file that it names."""
    page = (Path(__file__).parents[2] / "docs/experiments.md").read_text()
    part = page.partition("## On Kubernetes and OpenShift")[2]
    text = part.partition("```yaml\n")[2].partition("```")[0]
    lines = (
        f"w{node}:ens{13 + n}:net{n + 1}:10.0.{n}.{node + 9}" for n in (0, 1) for node in (0, 1)
    )
    (folder / "nodename_ip_mapping.yaml").write_text("\n".join(lines) + "\n")
    path = folder / "shown.yaml"
    path.write_text(f"name: shown\n{text}workloads: [{{kind: collectives}}]\n")
    return path
