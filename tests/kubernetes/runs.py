"""Somebody who runs experiments in a namespace: with a kubeconfig, a folder, the command, and the
rights that `render --rbac` prints."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from tests.kubernetes.cluster.accounts import Account
from tests.kubernetes.cluster.api import Manifest
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.scratch import Scratch
from tests.kubernetes.cluster.waiting import wait_until
from tests.timeouts import HANG_S

COLLECTIVES = {"kind": "collectives", "ops": ["all_reduce"], "sizes": ["1 MiB"]}
EXPERIMENT: dict[str, Any] = {
    "name": "pods",
    "platform": "kubernetes",
    "kubernetes": {"image": "host", "job": "job"},
    "cluster": {"shapes": ["2x1"], "device": "cpu"},
    "networks": [{"name": "pod", "kubernetes": "pod"}],
    "workloads": [COLLECTIVES],
    "launches": 1,
}


def nic(device: str, ranges: str) -> dict[str, Any]:
    """The face of a network whose NIC the pods get."""
    ipam = {"kind": "whereabouts", "ranges": ranges}
    return {"attachment": "host-device", "devices": [device], "ipam": ipam}


class User:
    """Their folder is not the checkout, and their shell is this one with a few words more."""

    def __init__(self, scratch: Scratch, control_plane: ControlPlane, folder: Path) -> None:
        self.folder, self.scratch, self.namespace = folder, scratch, scratch.namespace
        self.shell: dict[str, str] = {}
        """Variables of theirs."""
        self._program = ("-m", "broadgauge")
        self._num_started = 0
        account = Account(scratch, control_plane, f"{self.namespace}-user")
        account.write_kubeconfig(folder / "kubeconfig")
        self.subject, self.name = account.subject, account.user

    def have_scripted_ranks(self) -> None:
        """Which need no torch, and say at once what real ones measure."""
        self._program = ("-m", "tests.e2e.without_torch")
        self.shell["PYTHONPATH"] = str(Path(__file__).parents[2])

    def write(self, **changes: Any) -> None:
        """An experiment of theirs: EXPERIMENT, with these parts in place of its own."""
        experiment = dict(EXPERIMENT)
        for key, value in changes.items():
            is_merged = isinstance(experiment.get(key), dict)
            experiment[key] = experiment[key] | value if is_merged else value
        (self.folder / "experiment.yaml").write_text(json.dumps(experiment))

    def command(self, script: str, **more: Any) -> dict[str, Any]:
        """A workload that is this script of theirs, which may print `known 1`, as its figure."""
        name = "mine.py"
        (self.folder / name).write_text(script)
        metrics = [{"name": "known_count", "regex": r"known (\d)"}]
        return {"kind": "command", "name": "mine", "command": [name], "metrics": metrics, **more}

    def ranks(self) -> dict[int, int]:
        """Processes in all pods that call themselves as the namespace, by their rank."""
        found: dict[int, int] = {}
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                if (process / "comm").read_text().strip() == self.namespace:
                    told = (process / "environ").read_text().split("\0")
                    (rank,) = (each[5:] for each in told if each.startswith("RANK="))
                    found[int(rank)] = int(process.name)
        return found

    def give_rights(self, *words: str, but: tuple[str, str] | None = None) -> None:
        """Those that `render --rbac` prints for their experiment, and no more. `but`: a verb and a
        resource that they don't get."""
        space = f"kubernetes.namespace={self.namespace}"
        words = words or ("experiment.yaml",)
        printed = self.output("render", *words, "--rbac", "--set", space)
        for manifest in filter(None, yaml.safe_load_all(printed)):
            if manifest["kind"] == "RoleBinding":
                manifest["subjects"] = [self.subject]
            for rule in manifest.get("rules", ()) if but is not None else ():
                if but[1] in rule["resources"]:
                    rule["verbs"].remove(but[0])
            self.scratch.apply(manifest)

    def run(self, *words: str, exit_code: int = 0) -> str:
        """Its output, whole."""
        with self.running(*words) as run:
            return run.ended(exit_code)

    @contextmanager
    def running(self, *words: str) -> Iterator["Running"]:
        """A run; whatever happens, it is ended afterwards."""
        self._num_started += 1
        with (self.folder / f"output-{self._num_started}.txt").open("w") as output:
            tool = subprocess.Popen(
                [sys.executable, *self._program, "run", *(words or ("experiment.yaml",))],
                cwd=self.folder,
                env=self._environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield Running(tool, Path(output.name), self.records)
        finally:
            tool.kill()
            tool.wait()

    def output(self, *words: str, exit_code: int = 0) -> str:
        """What another command of theirs writes to standard output."""
        found = subprocess.run(
            [sys.executable, "-m", "broadgauge", *words],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        assert found.returncode == exit_code, found.stderr
        return found.stdout

    @property
    def _environment(self) -> dict[str, str]:
        own = {"KUBECONFIG": str(self.folder / "kubeconfig"), "COLUMNS": "200"}
        return os.environ | own | self.shell

    @property
    def run_folder(self) -> Path:
        """The newest."""
        found = filter(Path.is_dir, (self.folder / "runs").iterdir())
        return max(found, key=lambda path: path.name)

    def records(self) -> list[dict[str, Any]]:
        """Of the newest run; none where it is not there yet."""
        if not any((self.folder / "runs").glob("*/records.jsonl")):
            return []
        path = self.run_folder / "records.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    def statuses(self) -> list[str]:
        """Of all records."""
        return [record["status"] for record in self.records()]

    def place(self) -> dict[str, Any]:
        """What the newest run's folder knows of its job."""
        found: dict[str, Any] = json.loads((self.run_folder / "logs/kubernetes.json").read_text())
        return found

    def delete_job(self) -> None:
        """As somebody does who needs its GPUs."""
        self.scratch.api.delete(self.scratch.placed(self._job()))

    def end_jobs_time(self) -> None:
        """Its `deadline_s` is over now, however long it took to come up."""
        job = self._job() | {"spec": {"activeDeadlineSeconds": 1}}
        self.scratch.apply(job)

    def _job(self) -> Manifest:
        """What names it."""
        about = {"metadata": {"name": self.place()["name"]}}
        return {"apiVersion": "batch/v1", "kind": "Job", **about}

    def pods(self) -> list[Manifest]:
        """All of the namespace, by name."""
        found = self.scratch.find("v1", "Pod")
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    def containers(self) -> list[tuple[str, str]]:
        """Pod and container."""
        return [
            (str(pod["metadata"]["name"]), str(each["name"]))
            for pod in self.pods()
            for each in pod["spec"]["containers"]
        ]

    def num_running(self) -> int:
        """Pods."""
        return sum(pod["status"]["phase"] == "Running" for pod in self.pods())

    def left(self) -> list[str]:
        """What is there beside the namespace's own."""
        kinds = (("v1", "Pod"), ("v1", "ConfigMap"), ("v1", "Secret"), ("v1", "Service"))
        found = (each for version, kind in kinds for each in self.scratch.find(version, kind))
        names = [str(each["metadata"]["name"]) for each in found]
        return sorted(name for name in names if name != "kube-root-ca.crt")


class Running:
    """A run of theirs that goes on."""

    def __init__(
        self,
        tool: "subprocess.Popen[bytes]",
        output: Path,
        records: Callable[[], list[dict[str, Any]]],
    ) -> None:
        self._tool, self._output, self._records = tool, output, records

    def said(self) -> str:
        """All of its output up to now."""
        return self._output.read_text()

    def wait_for(self, is_so: Callable[[], bool], what: str) -> None:
        """AssertionError where the run ends before."""

        def is_there() -> bool:
            has_ended = self._tool.poll() is not None
            found = is_so()
            assert found or not has_ended, self.said()
            return found

        wait_until(is_there, what)

    def wait_for_a_record(self) -> None:
        """Of the newest run, with any status."""
        self.wait_for(lambda: self._records() != [], "a first record")

    def ended(self, exit_code: int | None = 0) -> str:
        """Its output, once it has ended as it should; `exit_code`: None: with any."""
        self._tool.wait(HANG_S)
        assert exit_code in (None, self._tool.returncode), self.said()
        return self.said()

    def interrupt(self) -> None:
        """Ctrl-C."""
        self._tool.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """As a machine that loses its power does."""
        self._tool.kill()
        self._tool.wait()
