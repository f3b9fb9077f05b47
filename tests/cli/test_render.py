"""Proves `broadgauge render`: files that can be committed, a stream that can be applied, and what
stands on the screen."""

from pathlib import Path
from typing import get_args

import pytest
from ruamel.yaml import YAML
from tests.running.rendering.experiments import EXPERIMENT

from broadgauge.cli.main import main
from broadgauge.cli.render import JOB_KINDS
from broadgauge.specs.errors import ExitCode
from broadgauge.specs.kubernetes.settings import JobKind


@pytest.fixture
def experiment(tmp_path: Path) -> str:
    (tmp_path / "train.py").write_text("print('t=1')\n")
    path = tmp_path / "experiment.yaml"
    path.write_text(EXPERIMENT)
    return str(path)


OF_A_JOB = ("10-program", "20-case", "30-files", "40-job", "kustomization")


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_the_same_file_gives_the_same_folder(
    experiment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second, first):
        assert main(["render", experiment, "--for", "kubernetes", "--out", str(folder)]) == 0
    assert contents(first) == contents(second)
    assert [path for path in contents(first) if "2x2" in path or "/" not in path] == [
        ".broadgauge-rendered",
        *(
            f"40-job/mine-pod-2x2/{name}.yaml"
            for name in ("10-program", "20-case", "30-files", "40-job")
        ),
        "40-job/mine-pod-2x2/kustomization.yaml",
        "kustomization.yaml",
    ]
    assert capsys.readouterr().out == ""


def test_the_stream_has_what_the_files_have(
    experiment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["render", experiment]) == 0
    printed = list(YAML(typ="safe", pure=True).load_all(capsys.readouterr().out))
    assert main(["render", experiment, "--out", str(tmp_path / "out")]) == 0
    written = [
        each
        for path, data in contents(tmp_path / "out").items()
        if path.endswith(".yaml") and not path.endswith("kustomization.yaml")
        for each in YAML(typ="safe", pure=True).load_all(data.decode())
    ]
    assert sorted(map(str, printed)) == sorted(map(str, written))


def test_the_screen_says_what_it_holds_and_needs(
    experiment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    changes = ["cluster.device=cuda", "cost={usd_per_gpu_hour: 2}", "kubernetes.gpus_per_pod=8"]
    sets = [word for change in changes for word in ("--set", change)]
    assert main(["render", experiment, "--out", str(out), *sets]) == 0
    screen = capsys.readouterr().err
    for line in (
        "plan       small on Kubernetes: 2 cases, a job each",
        "note       network lan is left out on kubernetes: ",
        "objects    6 ConfigMap, 2 Job, 1 Service",
        "pods       3 in all, at most 2 a job",
        "GPUs       at most 16 a job; about ",
        "(a guess: nobody knows how long your command takes)",
        "needs      2 nodes with 8 free nvidia.com/gpu each",
        "needs      image registry.example/train:1, which the nodes can pull",
        f"apply      kubectl apply -k {out}/40-job/mine-1x2 ",
    ):
        assert line in screen, screen
    assert "GPU-hours in all, $" in screen


def test_what_cant_be_rendered_leaves_no_folder(
    experiment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["render", experiment, "--out", str(out), "--set", "kubernetes.name=X"]) == 2
    assert not out.exists()
    assert "kubernetes.name" in capsys.readouterr().err


def test_kinds_of_jobs_are_those_of_experiments() -> None:
    assert get_args(JobKind) == JOB_KINDS


def test_a_run_without_a_kubeconfig_says_so_and_makes_no_folder(
    experiment: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    runs = tmp_path / "runs"
    words = ["run", experiment, "--runs-folder", str(runs), "--on", "kubernetes"]
    assert main(words) == ExitCode.BAD_INPUT
    screen = capsys.readouterr().err
    assert f"there is no kubeconfig {tmp_path / 'none'}" in screen
    assert "hint: KUBECONFIG names the file" in screen
    assert not runs.exists()


def test_a_dry_run_on_kubernetes_asks_no_cluster(
    experiment: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    assert main(["run", experiment, "--dry-run", "--on", "kubernetes"]) == 0
    screen = capsys.readouterr().out
    assert "pod 0: " in screen
    assert "MASTER_ADDR={master}" in screen.replace("'", "")


def test_the_rights_are_of_the_kinds_that_are_rendered(
    experiment: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["render", experiment, "--rbac", "--job", "pytorchjob"]
    assert main(words) == 2
    assert "--set kubernetes.namespace=training" in capsys.readouterr().err
    assert main([*words, "--set", "kubernetes.namespace=training"]) == 0
    account, role, binding = YAML(typ="safe", pure=True).load_all(capsys.readouterr().out)
    assert [each["metadata"]["namespace"] for each in (account, role, binding)] == ["training"] * 3
    kinds = {(*rule["apiGroups"], *rule["resources"]): rule["verbs"] for rule in role["rules"]}
    assert list(kinds) == [
        ("", "configmaps"),
        ("kubeflow.org", "pytorchjobs"),
        *(("", kind) for kind in ("pods", "pods/log", "events", "secrets")),
    ]
    assert kinds["", "pods"] == ["get", "list", "watch"]
    assert kinds["", "secrets"] == ["get", "create", "delete"]
    assert not any("*" in verbs for verbs in kinds.values())
