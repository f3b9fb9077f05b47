"""Proves `broadgauge render` to its end: what it writes is applied without us, trains on two nodes,
and the pod's log has the results."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest
from lightkube.resources.core_v1 import Pod
from tests.kubernetes.cluster.control_plane import ADMIN, ControlPlane
from tests.kubernetes.cluster.objects import Manifest, Objects
from tests.kubernetes.cluster.operators import Operators
from tests.kubernetes.cluster.waiting import wait_until
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import Fabric, KubeletConfig, NodeSpec, host_image

from broadgauge.manifests.labels import JOB
from broadgauge.running.experiments import load_text
from broadgauge.running.rendered_folder import write_rendered
from broadgauge.running.rendering import ON_KUBERNETES, render_experiment

pytestmark = [pytest.mark.kubernetes, pytest.mark.namespaces, pytest.mark.measuring]

EXPERIMENT = """
name: by-hand
kubernetes: {python: python, cpus: 1, memory_bytes: 4 GiB}
cluster: {shapes: [2x1], device: cpu}
networks: [{name: pod, kubernetes: pod}]
workloads: [{kind: collectives, sizes: [64 KiB], min_iterations: 3, budget_s: 1}]
launches: 1
"""


def test_what_is_rendered_runs_without_us(
    control_plane: ControlPlane,
    operators: Operators,
    namespace: str,
    tmp_path: Path,
) -> None:
    """By the commands of its own README, as they stand there."""
    loaded = load_text(
        EXPERIMENT,
        tmp_path / "experiment.yaml",
        (ON_KUBERNETES, f"kubernetes.namespace={namespace}"),
    )
    rendered = render_experiment(loaded, "job")
    write_rendered(rendered, tmp_path / "manifests")
    make_secret, apply, look, remove = commands_of(tmp_path / "manifests" / "README.md")
    config = KubeletConfig(
        kubeconfig=control_plane.kubeconfig(ADMIN),
        folder=tmp_path / "kubelet",
        nodes=[
            NodeSpec(name=f"{namespace}-{n}", resources={"cpu": "8", "memory": "32Gi"})
            for n in range(2)
        ],
        pod_network=Fabric(name="pods", rate_gbps=1.0, mtu_bytes=1500),
        default_image=replace(host_image(), user=12_345),
    )

    def do(command: str) -> str:
        """In the folder, with no command of ours at hand."""
        tool = Path(control_plane.programs.kubectl).parent
        variables = {
            "PATH": f"{tool}:/usr/bin:/bin",
            "KUBECONFIG": str(control_plane.kubeconfig(ADMIN)),
            "HOME": str(tmp_path),
        }
        ended = subprocess.run(
            ["sh", "-euc", command],
            cwd=tmp_path / "manifests",
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    with control_plane.http() as http, Kubelet.start(config) as kubelet:
        cluster = Objects(http)
        do(make_secret)
        do(apply)
        job = rendered.objects[-1]
        wait_until(lambda: has(cluster, job, "Complete"), limit_s=200, what="the Job")
        assert do(look).count("Completed") == 2
        with control_plane.client() as client:
            pods = client.list(Pod, namespace=namespace, labels={JOB: "by-hand"})
            logs = [log_of(kubelet.config.folder, pod.metadata.uid) for pod in pods]
        do(remove)
        wait_until(lambda: do(look) == "", limit_s=60, what="the end of the pods")
    assert len(logs) == 2
    (leading,) = (log for log in logs if '"type":"jobs_done"' in log)
    ended = re.findall(r'"type":"rank_exited","rank":([0-9]),"exit_code":(\w+)', leading)
    assert sorted(ended) == [("0", "0"), ("1", "0")]


def commands_of(readme: Path) -> list[str]:
    """Its blocks of code: the Secret, the objects, and a line each to look and to remove."""
    blocks = re.findall(r"(?:^ {7}.*\n)+", readme.read_text(), re.MULTILINE)
    made, applied, shown = (dedent(block) for block in blocks)
    look, remove = shown.strip().splitlines()
    return [made, applied, look, remove]


def log_of(folder: Path, pod_uid: str) -> str:
    """As its kubelet keeps it."""
    return "".join(path.read_text() for path in (folder / "logs" / pod_uid).rglob("log"))


def has(cluster: Objects, job: Manifest, condition: str) -> bool:
    """Does the operator say so of the job?"""
    found = cluster.read(job) or {}
    conditions = found.get("status", {}).get("conditions", [])
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)
