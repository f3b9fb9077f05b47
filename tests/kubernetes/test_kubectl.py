"""Proves that kubectl applies and removes what `render` and `patch` write, as the screen says.

Kubectl reads YAML by itself, so this is where odd words meet the reader that users have.
"""

import base64
import subprocess
from pathlib import Path

import pytest
from tests.kubernetes import samples
from tests.kubernetes.cluster.api import Manifest
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.programs import program
from tests.kubernetes.cluster.scratch import Scratch

from broadgauge.agent import bundle
from broadgauge.cli.main import main
from broadgauge.manifests.yaml_text import yaml_text

pytestmark = [pytest.mark.kubernetes, pytest.mark.usefixtures("operators")]

ODD = ("0o14", "12:30", "no", "1_000", "~", "=eth0", "$(HOME) $$x", "a\nb: c\n---\n- d", "\u2028 é")
CASE = "40-job/own-script-pod-2x1"
NAME = "pods-own-script-pod-2x1"


class Kubectl:
    """As the admin, in a namespace."""

    def __init__(self, control_plane: ControlPlane, scratch: Scratch, home: Path) -> None:
        self._words = [str(program("kubectl")), f"--kubeconfig={control_plane.kubeconfig}",
                       f"--namespace={scratch.namespace}"]  # fmt: skip
        self._home = home

    def __call__(self, *words: str) -> str:
        """What it printed; its own complaint where it fails."""
        done = subprocess.run(
            [*self._words, *words],
            env={"HOME": str(self._home)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def kubectl(control_plane: ControlPlane, scratch: Scratch, tmp_path: Path) -> Kubectl:
    return Kubectl(control_plane, scratch, tmp_path)


def rendered(folder: Path, scratch: Scratch, *overrides: str) -> Path:
    """The example, written by the command."""
    out = folder / "manifests"
    changes = (f"kubernetes.namespace={scratch.namespace}", *overrides)
    sets = [word for change in changes for word in ("--set", change)]
    assert main(["render", "pods", "--out", str(out), *sets]) == 0
    return out


def names(scratch: Scratch, version: str, kind: str) -> list[str]:
    """Ours, of this kind."""
    found = scratch.find(version, kind, "app.kubernetes.io/managed-by=broadgauge")
    return sorted(each["metadata"]["name"] for each in found)


def test_one_command_starts_a_job_and_one_removes_it(
    kubectl: Kubectl, scratch: Scratch, tmp_path: Path
) -> None:
    claim = "kubernetes.volumes=[{name: data, mount: /data, size_bytes: 1 GiB}]"
    out = rendered(tmp_path, scratch, claim)
    kubectl("apply", "-k", str(out / "30-storage"))
    kubectl("apply", "-k", str(out / CASE))
    assert names(scratch, "batch/v1", "Job") == [NAME]
    assert names(scratch, "v1", "Service") == [NAME]
    maps = {each["metadata"]["name"]: each for each in scratch.find("v1", "ConfigMap")}
    sent = base64.b64decode(maps[f"{NAME}-program"]["binaryData"]["broadgauge.zip"])
    assert sent == bundle.build(bundle.POD_PARTS)
    kubectl("apply", "-k", str(out / CASE))  # the same once more changes nothing that can't be
    kubectl("delete", "-k", str(out / CASE), "--wait=false")
    left = [each for kind in ("ConfigMap", "Service") for each in names(scratch, "v1", kind)]
    assert left == []
    assert names(scratch, "v1", "PersistentVolumeClaim") == ["data"]


@pytest.mark.parametrize("kind", ["job", "pytorchjob"])
def test_one_command_starts_all_cases(
    kubectl: Kubectl, scratch: Scratch, tmp_path: Path, kind: str
) -> None:
    out = rendered(tmp_path, scratch, f"kubernetes.job={kind}")
    kubectl("apply", "-k", str(out))
    version, word = ("batch/v1", "Job") if kind == "job" else ("kubeflow.org/v1", "PyTorchJob")
    assert names(scratch, version, word) == [
        *("pods-collectives-pod-2x1", "pods-own-script-1x1", NAME),
    ]


def test_a_runtime_comes_before_its_job(kubectl: Kubectl, scratch: Scratch, tmp_path: Path) -> None:
    """Kustomize keeps the order that is written: by itself it sorts kinds that it does not know."""
    out = rendered(tmp_path, scratch, "kubernetes.job=trainjob")
    text = kubectl("kustomize", str(out))
    kinds = [line.removeprefix("kind: ") for line in text.splitlines() if line.startswith("kind: ")]
    assert kinds.count("TrainJob") == 3
    for number, kind in enumerate(kinds):
        assert kind != "TrainJob" or kinds[number - 1] == "TrainingRuntime"


def test_odd_words_arrive_as_they_were_written(
    kubectl: Kubectl, scratch: Scratch, tmp_path: Path
) -> None:
    words = {f"ODD_{number}": word for number, word in enumerate(ODD)}
    experiment = {
        "name": "odd",
        "kubernetes": {"namespace": scratch.namespace},
        "cluster": {"shapes": ["1x1"], "device": "cpu"},
        "workloads": [
            {
                "kind": "command",
                "command": ["train.py", *ODD],
                "environment": words,
                "metrics": [{"name": "step_time_s", "json_key": "s"}],
            }
        ],
    }
    path, out = tmp_path / "odd.yaml", tmp_path / "odd"
    (tmp_path / "train.py").touch()
    path.write_text(yaml_text(experiment))
    assert main(["render", str(path), "--out", str(out)]) == 0
    kubectl("apply", "-k", str(out))
    (job,) = scratch.find("batch/v1", "Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    doubled = [word.replace("$", "$$") for word in ODD]
    assert container["args"][container["args"].index("train.py") + 1 :] == doubled
    assert variables(container).items() >= dict(zip(words, doubled, strict=True)).items()


def variables(container: Manifest) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}


@pytest.mark.parametrize("sample", ["job", "pytorch_job"])
def test_an_overlay_puts_a_job_on_the_pod_network(
    kubectl: Kubectl, scratch: Scratch, tmp_path: Path, sample: str
) -> None:
    manifest = getattr(samples, sample)()
    path, out = tmp_path / "job.yaml", tmp_path / "overlays"
    path.write_text(yaml_text(manifest))
    assert main(["patch", str(path), "--network", "pod", "--out", str(out)]) == 0
    kubectl("apply", "-k", str(out / "overlays/pod"))
    spec = (scratch.read(manifest) or {})["spec"]
    replicas = spec.get("pytorchReplicaSpecs", {"": spec})
    for each in replicas.values():
        (container,) = each["template"]["spec"]["containers"]
        assert variables(container)["NCCL_SOCKET_IFNAME"] == "=eth0"
        assert container["command"] == ["sh", "-c", "exit 0"]
