"""Proves `broadgauge patch`: variables of what trains, by an overlay, and nothing else of a job."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from tests.costly import costly
from tests.running.rendering.json_patch import applied

from broadgauge.cli.main import main
from broadgauge.manifests.patching import AddedNetwork, overlay_files, patch_of
from broadgauge.specs.errors import InputError

MANIFEST = """\
# mine, with a comment
apiVersion: v1
kind: Service
metadata: {name: llama}
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: llama}
spec:
  pytorchReplicaSpecs:
    Master:
      template:
        spec:
          containers:
            - {name: sidecar, image: a}
            - name: pytorch
              image: b
              env:
                - {name: NCCL_IB_DISABLE, value: "0"}
                - {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: a, key: b}}}
    Worker: {template: {spec: {containers: [{name: pytorch, image: b}]}}}
"""
POD = {
    "GLOO_SOCKET_IFNAME": "eth0",
    "NCCL_SOCKET_IFNAME": "=eth0",
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,NET,ENV,GRAPH",
    "NCCL_NET": "Socket",
    "NCCL_NET_PLUGIN": "none",
    "NCCL_IB_DISABLE": "1",
}


ON_POD = AddedNetwork(variables=POD)


def documents(path: Path) -> list[Any]:
    return list(YAML(typ="safe", pure=True).load_all(path.read_text()))


def variables(container: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}


def run(folder: Path, *arguments: str, manifest: str = MANIFEST, code: int = 0) -> Path:
    """The command; the folder that it writes."""
    path, out = folder / "job.yaml", folder / "out"
    path.write_text(manifest)
    assert main(["patch", str(path), "--out", str(out), *arguments]) == code
    return out


def test_the_job_itself_stays_as_it_is(tmp_path: Path) -> None:
    out = run(tmp_path, "--network", "pod")
    assert (out / "base/job.yaml").read_text() == MANIFEST
    assert documents(out / "base/kustomization.yaml")[0]["resources"] == ["job.yaml"]


def test_the_overlay_sets_the_networks_variables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run(tmp_path, "--network", "pod")
    (overlay,) = documents(out / "overlays/pod/kustomization.yaml")
    assert overlay["resources"] == ["../../base"]
    (patch,) = overlay["patches"]
    assert patch["target"] == {"group": "kubeflow.org", "kind": "PyTorchJob", "name": "llama"}
    dotted = {**manifest("Job", pod({})), "metadata": {"name": "a.b", "namespace": "n"}}
    (found,) = overlay_files("j", "n", [patch_of(dotted, ON_POD) or pytest.fail("no job")])[1:]
    assert found.objects[0]["patches"][0]["target"] == {
        "group": "batch",
        "kind": "Job",
        "name": "a[.]b",
        "namespace": "n",
    }
    job = documents(tmp_path / "job.yaml")[1]
    changed = applied(job, YAML(typ="safe", pure=True).load(patch["patch"]))
    replicas = changed["spec"]["pytorchReplicaSpecs"]
    (_, master), (worker,) = (
        replicas[role]["template"]["spec"]["containers"] for role in ("Master", "Worker")
    )
    assert variables(worker) == POD
    assert variables(master) == POD | {"HF_TOKEN": {"secretKeyRef": {"name": "a", "key": "b"}}}
    screen = capsys.readouterr().err
    assert "Master, container pytorch: sets NCCL_IB_DISABLE to `1`, which was `0`" in screen
    assert f"kubectl apply -k {out}/overlays/pod" in screen


def test_a_network_of_an_experiment_brings_its_variables(tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text(
        "name: e\nworkloads: [{kind: train}]\nnetworks:\n  - {name: lan, rate_gbps: 1}\n"
        "  - {name: fast, kubernetes: pod, environment: {NCCL_NSOCKS_PERTHREAD: '4'}}\n"
    )
    experiment = ("--experiment", str(tmp_path / "e.yaml"))
    out = run(tmp_path, "--network", "fast", *experiment)
    text = (out / "overlays/fast/kustomization.yaml").read_text()
    assert "NCCL_NSOCKS_PERTHREAD" in text
    assert "NCCL_IB_DISABLE" in text


def test_overlays_of_several_networks_stand_beside_each_other(tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text(
        "name: e\nworkloads: [{kind: train}]\nnetworks: [{name: fast, kubernetes: pod}]\n"
    )
    run(tmp_path, "--network", "pod")
    out = run(tmp_path, "--network", "fast", "--experiment", str(tmp_path / "e.yaml"))
    assert sorted(path.name for path in (out / "overlays").iterdir()) == ["fast", "pod"]


@pytest.mark.parametrize(
    "variables",
    ["{A: hf_abcdefghijklmnopqrstuvwxyz0123456789}", "{HF_TOKEN: {from_environment: true}}"],
)
def test_a_secret_of_a_network_gets_into_no_overlay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], variables: str
) -> None:
    (tmp_path / "e.yaml").write_text(
        "name: e\nworkloads: [{kind: train}]\n"
        f"networks: [{{name: fast, kubernetes: pod, environment: {variables}}}]\n"
    )
    words = ("--network", "fast", "--experiment", str(tmp_path / "e.yaml"))
    out = run(tmp_path, *words, code=2)
    told = capsys.readouterr().err
    assert "is a secret" in told
    assert "abcdefghij" not in told
    assert not out.exists()


def test_what_may_be_a_secret_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    env = [{"name": name, "value": "was-this"} for name in ("A", "NCCL_DEBUG", "NCCL_TOKEN")]
    wanted = {"A": "$(HOME)", "NCCL_DEBUG": "x", "NCCL_TOKEN": "y"}
    patch = patch_of(
        manifest("Job", pod({"name": "a", "env": env})), AddedNetwork(variables=wanted)
    )
    assert patch is not None
    assert patch.operations[0]["value"]["value"] == "$$(HOME)"
    assert [("was-this" in change, "another value" in change) for change in patch.changes] == [
        *((False, True), (True, False), (False, True)),
    ]


def pod(*containers: dict[str, Any]) -> dict[str, Any]:
    return {"template": {"spec": {"containers": list(containers)}}}


def manifest(kind: str, spec: Any, version: str | None = None) -> dict[str, Any]:
    versions = {"Job": "batch/v1", "TrainJob": "trainer.kubeflow.org/v1alpha1"}
    return {
        "apiVersion": version or versions.get(kind, "kubeflow.org/v1"),
        "kind": kind,
        "metadata": {"name": "x"},
        "spec": spec,
    }


ON_HOSTS = {"hostNetwork": True, "containers": [{"name": "a"}]}
GPUS = {"resources": {"limits": {"nvidia.com/gpu": 8}}}


@pytest.mark.parametrize(
    ("document", "paths"),
    [
        (manifest("Job", pod({"name": "a"})), ["/spec/template/spec/containers/0/env"]),
        (
            manifest("Job", pod({"name": "a"}, {"name": "b", **GPUS})),
            ["/spec/template/spec/containers/1/env"],
        ),
        (manifest("TrainJob", {"trainer": {"numNodes": 2}}), ["/spec/trainer/env"]),
        (
            manifest("PyTorchJob", {"pytorchReplicaSpecs": {"a/b~": pod({"name": "pytorch"})}}),
            ["/spec/pytorchReplicaSpecs/a~1b~0/template/spec/containers/0/env"],
        ),
    ],
)
def test_what_trains_is_found(document: dict[str, Any], paths: list[str]) -> None:
    patch = patch_of(document, ON_POD)
    assert patch is not None
    assert [each["path"] for each in patch.operations] == paths
    applied(document, list(patch.operations))


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("kind: Service\n", [], ["no Job, PyTorchJob, TrainJob is in it"]),
        ("kind: [\n", [], ["job.yaml:2", "not YAML"]),
        ("a: 1\n---\nb: {c: *x}\n", [], ["job.yaml:3:8", "undefined alias"]),
        (json.dumps(manifest("Job", {}, "batch.example/v1")), [], ["`batch.example/v1`", "batch"]),
        (json.dumps({**manifest("Job", {}), "metadata": {"generateName": "x-"}}), [],
         ["`metadata.name` is missing", "`generateName`"]),
        (json.dumps(manifest("Job", pod({"name": "a"}, {"name": "b"}))), [],
         ["which of its 2 containers trains?", "`resources.limits`"]),
        (json.dumps(manifest("TrainJob", {})), [], ["no `spec.trainer`"]),
        ("kind: [Job]\n", [], ["no Job, PyTorchJob, TrainJob is in it"]),
        ("kind: List\nitems: []\n", [], ["a List of objects", "one object a document"]),
        (json.dumps(manifest("Job", {})), [], ["no container that could train"]),
        (MANIFEST + "---\n" + MANIFEST.split("---\n")[1], [], ["two are named PyTorchJob llama"]),
        (
            json.dumps(manifest("Job", {"template": {"spec": ON_HOSTS}})),
            [],
            ["`hostNetwork: true`"],
        ),
        (MANIFEST, ["--network", "my net"], ["`my net` is none", "--experiment FILE"]),
        (MANIFEST, ["--network", "pod", "--resource", "rdma/a"], ["the pod network asks for none"]),
        (MANIFEST, ["--network", "pdo", "--experiment", "pods"], ["no network `pdo`", "`pod`"]),
        (MANIFEST, ["--network", "slow", "--experiment", "own-script"],
         ["networks.slow: it does not say what is attached", "`kubernetes: pod`"]),
    ],
)  # fmt: skip
def test_what_cant_be_patched_is_told(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    arguments: list[str],
    words: list[str],
) -> None:
    out = run(tmp_path, *(arguments or ["--network", "pod"]), manifest=text, code=2)
    told = capsys.readouterr().err
    for word in words:
        assert word in told
    assert not out.exists()


NAMES = st.sampled_from(["NCCL_DEBUG", "NCCL_NET", "PATH", "A"])
ENTRIES = st.builds(lambda name, value: {"name": name, "value": value}, NAMES, st.text(max_size=5))
CONTAINERS = st.builds(
    lambda name, env, more: {"name": name, **({} if env is None else {"env": env}), **more},
    st.sampled_from(["pytorch", "a", "b"]),
    st.none() | st.lists(ENTRIES, max_size=4, unique_by=lambda each: each["name"]),
    st.sampled_from([{}, GPUS, {"image": "x", "args": ["-c"]}]),
)


@costly(60)
@given(st.lists(CONTAINERS, min_size=1, max_size=3), st.sampled_from(["Job", "PyTorchJob"]))
def test_nothing_but_these_variables_changes(containers: list[dict[str, Any]], kind: str) -> None:
    spec = pod(*containers)
    whole = spec if kind == "Job" else {"pytorchReplicaSpecs": {"Master": spec, "Worker": spec}}
    document = json.loads(json.dumps(manifest(kind, whole)))
    try:
        patch = patch_of(document, ON_POD)
    except InputError:
        return
    assert patch is not None
    changed = applied(document, list(patch.operations))
    assert without(changed, POD) == without(document, POD)
    again = patch_of(changed, ON_POD)
    assert again is not None
    assert again.operations == ()


def without(value: Any, names: dict[str, str]) -> Any:
    """Without these variables, and without lists of variables that are left empty."""
    if isinstance(value, list):
        return [
            without(each, names)
            for each in value
            if not (isinstance(each, dict) and each.get("name") in names and "value" in each)
        ]
    if isinstance(value, dict):
        found = {key: without(each, names) for key, each in value.items()}
        return {key: each for key, each in found.items() if key != "env" or each}
    return value
