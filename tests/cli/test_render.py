"""Proves `broadgauge render`: files that can be committed, the same bytes each time, and nobody
else's touched."""

import gzip
import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from broadgauge.cli.main import main

EXPERIMENT = """
name: two networks
platform: emulated
kubernetes:
  namespace: training
  memory_bytes: 8 GiB
  files: [notes.txt]
cluster: {shapes: [1x2, 2x2], device: cpu}
networks:
  - {name: lan, rate_gbps: 1}
  - {name: pod, kubernetes: pod}
  - name: vnic
    kubernetes: {attachment: macvlan, devices: ens13, ipam: {kind: address-map, map: map.txt}}
workloads:
  - kind: command
    command: [train.py, --steps, "3"]
    metrics: [{name: step_time_s, regex: "t=([0-9.]+)"}]
environment: {WANDB_API_KEY: {from_environment: true}}
launches: 2
""".replace("two networks", "two-networks")


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("print('t=1')\n")
    (tmp_path / "notes.txt").write_text("no\n")
    (tmp_path / "map.txt").write_text("w0:ens13:net1:10.0.1.9\nw1:ens13:net1:10.0.1.10\n")
    path = tmp_path / "experiment.yaml"
    path.write_text(EXPERIMENT)
    return path


class Render:
    """The command, in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, path: Path, *arguments: str, code: int = 0) -> str:
        """What it printed; of a refusal what it complained of."""
        found = main(["render", str(path), "--for", "kubernetes", *arguments])
        printed = self._capsys.readouterr()
        assert found == code, printed.err
        return printed.out if code == 0 else printed.err


@pytest.fixture
def rendered(capsys: pytest.CaptureFixture[str]) -> Render:
    return Render(capsys)


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def objects_in(text: str) -> list[dict[str, Any]]:
    return list(YAML(typ="safe", pure=True).load_all(text))


def test_folders_are_in_the_order_to_apply_and_bytes_are_the_same(
    rendered: Render, experiment: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    rendered(experiment, "--out", str(first))
    rendered(experiment, "--out", str(second))
    assert files_in(first) == files_in(second)
    assert list(files_in(first)) == [
        ".broadgauge-rendered",
        "20-networks/networks.yaml",
        *(f"40-job/all-cases/{name}.yaml" for name in ("10-program", "20-orders")),
        *(f"40-job/all-cases/30-{name}.yaml" for name in ("addresses", "files")),
        "40-job/all-cases/40-job.yaml",
        "README.md",
    ]
    for name, data in files_in(first).items():
        if name.endswith(".yaml"):
            assert data.startswith(b"# ")


def test_stream_has_all_that_the_folder_has(
    rendered: Render, experiment: Path, tmp_path: Path
) -> None:
    text = rendered(experiment)
    rendered(experiment, "--out", str(tmp_path / "out"))
    files = files_in(tmp_path / "out")
    in_files = [
        each
        for name, data in files.items()
        if name.endswith(".yaml")
        for each in objects_in(data.decode())
    ]
    assert sorted(map(str, objects_in(text))) == sorted(map(str, in_files))
    assert re.findall(r"^# (\S+\.yaml)$", text, re.MULTILINE)[0] == "20-networks/networks.yaml"


def test_pods_are_given_the_plans_launches_and_the_users_files(
    rendered: Render, experiment: Path
) -> None:
    found = {each["metadata"]["name"]: each for each in objects_in(rendered(experiment))}
    assert found["two-networks-files"]["data"] == {
        "notes.txt": "no\n",
        "train.py": "print('t=1')\n",
    }
    orders = found["two-networks-orders"]["binaryData"]["order-00000.json.gz"]
    told = json.loads(gzip.decompress(b64decode(orders)))
    assert len(told["jobs"]) == 2 * 3  # launches x (one node, pod, vnic)
    networks = [order["order"]["network"] for job in told["jobs"] for order in job["orders"]]
    names = {network["name"] for network in networks if network is not None}
    assert names == {"pod", "vnic"}
    assert str(experiment.parent) not in json.dumps(told)


def test_secrets_are_asked_for_and_shown_nowhere(
    rendered: Render, experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "a-very-secret-key")
    rendered(experiment, "--out", str(tmp_path / "out"))
    files = files_in(tmp_path / "out")
    assert all(b"a-very-secret-key" not in data for data in files.values())
    assert b'$(printf %s "$WANDB_API_KEY" | base64' in files["README.md"]
    assert b"name: WANDB_API_KEY" in files["40-job/all-cases/40-job.yaml"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("pytorchjob", ["PyTorchJob"]),
        ("trainjob", ["TrainingRuntime", "TrainJob"]),
        ("jobset", ["JobSet"]),
        ("job", ["Service", "Job"]),
    ],
)
def test_kind_of_job_is_chosen(
    rendered: Render, experiment: Path, kind: str, expected: list[str]
) -> None:
    kinds = [each["kind"] for each in objects_in(rendered(experiment, "--job", kind))]
    assert [each for each in kinds if each not in ("ConfigMap", "NetworkAttachmentDefinition")] == (
        expected
    )


def test_a_job_for_each_case_has_a_folder_and_names_of_its_own(
    rendered: Render, experiment: Path, tmp_path: Path
) -> None:
    rendered(experiment, "--set", "allocation=per_case", "--out", str(tmp_path / "out"))
    files = files_in(tmp_path / "out")
    folders = sorted({name.split("/")[1] for name in files if name.startswith("40-job/")})
    assert folders == ["command-1x2-one-node", "command-2x2-pod", "command-2x2-vnic"]
    names = [
        each["metadata"]["name"]
        for name, data in files.items()
        if name.endswith("40-job.yaml")
        for each in objects_in(data.decode())
    ]
    assert sorted(names) == ["two-networks-1", "two-networks-2", "two-networks-3"]
    assert "addresses.yaml" not in str([name for name in files if "2x2-pod" in name])


def test_earlier_files_go_and_those_of_others_stay(
    rendered: Render, experiment: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    rendered(experiment, "--out", str(out))
    rendered(experiment, "--set", "kubernetes.files=[]", "--job", "job", "--out", str(out))
    assert "kind: Job\n" in (out / "40-job/all-cases/40-job.yaml").read_text()
    (out / "mine.txt").write_text("keep")
    message = rendered(experiment, "--out", str(out), code=2)
    assert "mine.txt` was not written by `broadgauge render`, and is kept" in message
    (out / "mine.txt").unlink()
    readme = out / "README.md"
    readme.write_text(readme.read_text() + "mine")
    message = rendered(experiment, "--out", str(out), code=2)
    assert "README.md` was changed since it was rendered" in message


def test_folder_of_somebody_else_is_left_alone(rendered: Render, experiment: Path) -> None:
    before = files_in(experiment.parent)
    assert "was not written by" in rendered(experiment, "--out", str(experiment.parent), code=2)
    assert files_in(experiment.parent) == before


def test_least_rights_are_printed(rendered: Render, experiment: Path) -> None:
    found = objects_in(rendered(experiment, "--rbac"))
    kinds = [each["kind"] for each in found]
    assert kinds == [
        *("ServiceAccount", "Role", "RoleBinding"),
        *("ClusterRole", "ClusterRoleBinding"),
    ]
    rules = found[1]["rules"]
    assert all("*" not in str(rule) for rule in rules)
    resources = {kind for rule in rules for kind in rule["resources"]}
    assert {"pytorchjobs", "pods", "pods/log", "network-attachment-definitions"} <= resources
    assert not {"nodes", "persistentvolumeclaims", "services"} & resources
    assert {verb for rule in found[3]["rules"] for verb in rule["verbs"]} == {"get", "list"}
    message = rendered(experiment, "--rbac", "--set", "kubernetes.namespace=null", code=2)
    assert "the rights are of a namespace" in message


def test_what_is_missing_is_said(rendered: Render, experiment: Path) -> None:
    (experiment.parent / "map.txt").unlink()
    assert "map.txt can't be read" in rendered(experiment, code=2)
    message = rendered(experiment, "--set", "networks.pod.kubernetes=null", "--set",
                       "networks.vnic.kubernetes=null", code=2)  # fmt: skip
    assert "say what a pod is given" in message


def test_jobs_of_their_own_are_applied_one_after_another(
    rendered: Render, experiment: Path, tmp_path: Path
) -> None:
    rendered(experiment, "--set", "allocation=per_case", "--out", str(tmp_path / "out"))
    readme = (tmp_path / "out/README.md").read_text()
    steps = re.findall(r"(apply .*--filename \S+|wait \S+)", readme)
    assert [step.split()[-1] for step in steps] == [
        "20-networks",
        *("40-job/command-1x2-one-node", "--for=condition=Succeeded"),
        *("40-job/command-2x2-pod", "--for=condition=Succeeded"),
        *("40-job/command-2x2-vnic", "--for=condition=Succeeded"),
    ]
    assert "their launches are not paired" in readme


def test_what_is_fetched_is_waited_for_and_said(
    rendered: Render, experiment: Path, tmp_path: Path
) -> None:
    volumes = "kubernetes.volumes=[{name: storage, mount: /mnt/s, claim: mine}]"
    prepare = "kubernetes.prepare={volume: storage, model: me/tiny}"
    rendered(experiment, "--set", volumes, "--set", prepare, "--out", str(tmp_path / "out"))
    files = files_in(tmp_path / "out")
    assert "35-prepare/prepare.yaml" in files
    assert "30-storage/claims.yaml" not in files
    readme = files["README.md"].decode()
    assert readme.index("35-prepare") < readme.index("job/two-networks-prepare")
    (path,) = re.findall(r"Ranks find (\S+) as BROADGAUGE_MODEL", readme)
    assert path.startswith("/mnt/s/broadgauge/model-tiny-")
    assert f"value: {path}\n".encode() in files["40-job/all-cases/40-job.yaml"]


def test_neither_files_nor_config_maps_hold_a_secret_of_any_place(
    rendered: Render, experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the experiment's text, of the environment, of Secrets that it names; orders unpacked."""
    planted = {"HF_TOKEN": "hf_q7Zk2mPx9LwB4tVn8RcJ", "WANDB_API_KEY": "planted-in-environment"}
    monkeypatch.setenv("WANDB_API_KEY", planted["WANDB_API_KEY"])
    text = experiment.read_text().replace(
        "environment: {", f"environment: {{HF_TOKEN: {planted['HF_TOKEN']}, "
    )
    experiment.write_text(text.replace("files: [", "secrets: {S: {secret: s, key: k}}\n  files: ["))
    rendered(experiment, "--out", str(tmp_path / "out"))
    shown = b"".join(files_in(tmp_path / "out").values())
    for each in objects_in(rendered(experiment)):
        shown += b"".join(map(b64decode, each.get("binaryData", {}).values()))
        for key, data in each.get("binaryData", {}).items():
            if key.endswith(".gz"):
                shown += gzip.decompress(b64decode(data))
    assert b"train.py" in shown
    for secret in planted.values():
        assert secret.encode() not in shown


def test_a_token_in_a_command_is_refused_and_a_file_of_secrets_not_sent(
    rendered: Render, experiment: Path
) -> None:
    text, token = experiment.read_text(), "hf_q7Zk2mPx9LwB4tVn8RcJ"
    experiment.write_text(text.replace("--steps, ", f"--token, {token}, "))
    said = rendered(experiment, code=2)
    assert token not in said
    assert "hint:" in said
    assert "secrets" in said
    (experiment.parent / "secrets.env").write_text("A=1\n")
    experiment.write_text(text.replace("--steps, ", "secrets.env, "))
    assert "secrets.env" in rendered(experiment, code=2)
