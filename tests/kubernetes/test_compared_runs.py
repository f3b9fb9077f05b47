"""Are runs in pods compared, gated and asked what their networks' rates decide, as any others?"""

import json
import sys
from collections.abc import Iterator

import pytest
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import Fabric, Image, KubeletConfig, NodeSpec, host_image
from tests.kubernetes.test_runs import ANY_UID, User, user  # noqa: F401  a fixture
from tests.stolen_trials import judging

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.root,
    pytest.mark.namespaces,
    pytest.mark.measuring,
    pytest.mark.thorough("compared runs"),
    pytest.mark.timeout(900),
]
RATES_GBPS = {"pod": 0.1, "vnic": 0.3, "fast": 0.9}
DEVICES = {"vnic": ("ens13", 13), "fast": ("ens14", 14)}
STEP_BYTES = 1_000_000
COMPUTE_S = 0.05
SCRIPT = f"""\
import json, sys, time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, payload, answer = dist.get_rank(), torch.zeros({STEP_BYTES}, dtype=torch.uint8), torch.ones(1)
for step in range(10):
    start = time.perf_counter()
    time.sleep({COMPUTE_S})
    if rank == 0:
        dist.send(payload, 1)
        dist.recv(answer, 1)
        print(json.dumps({{"step": step, "step_time_s": time.perf_counter() - start}}), flush=True)
    else:
        dist.recv(payload, 0)
        dist.send(answer, 0)
dist.destroy_process_group()
"""
"""A step of known compute and bytes, over the network that Gloo is told to use."""


@pytest.fixture(scope="module")
def kubelet(
    control_plane: ControlPlane, crds: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubelet]:
    del crds
    config = KubeletConfig(
        kubeconfig=control_plane.kubeconfig(),
        folder=tmp_path_factory.mktemp("k") / "k",
        nodes=NodeSpec.several(2, resources={"cpu": "8", "memory": "16Gi"}),
        pod_network=Fabric(name="pods", rate_gbps=RATES_GBPS["pod"]),
        fabrics=[
            Fabric(name=name, device=device, rate_gbps=RATES_GBPS[name])
            for name, (device, _) in DEVICES.items()
        ],
        default_image=Image(env=host_image().env, user=ANY_UID),
    )
    with Kubelet.start(config) as started:
        yield started


def write(user: User, *, words: tuple[str, ...] = (), networks: tuple[str, ...]) -> None:  # noqa: F811
    faces: dict[str, object] = {"pod": "pod"} | {
        name: {
            "attachment": "host-device",
            "devices": [device],
            "ipam": {"kind": "whereabouts", "ranges": f"10.{number}.0.0/24"},
        }
        for name, (device, number) in DEVICES.items()
    }
    metrics = [{"name": "step_time_s", "json_key": "step_time_s", "skip_first": 2}]
    command = {"kind": "command", "name": "step", "command": ["mine.py", *words]}
    user.write(
        networks=[{"name": name, "kubernetes": faces[name]} for name in networks],
        workloads=[command | {"metrics": metrics}],
        launches=2,
    )


def judged(user: User, *arguments: str, exit_code: int) -> str:  # noqa: F811
    """What it says; arguments of another command than `run`."""
    ended = user.ended(sys.executable, "-m", "broadgauge", *arguments)
    said = ended.stdout + ended.stderr
    assert ended.returncode == exit_code, said
    return " ".join(said.split())


@pytest.mark.needs_cores
def test_networks_are_a_ladder_and_a_later_run_is_gated_against_it(user: User) -> None:  # noqa: F811
    (user.folder / "mine.py").write_text(SCRIPT)
    write(user, networks=tuple(RATES_GBPS))
    user.run()
    earlier = user.run_folder
    (ladder,) = json.loads(judged(user, "sensitivity", "last", "--json", exit_code=0))["ladders"]
    with judging(user.records()):
        check_ladder(ladder)

    write(user, words=("--changed",), networks=("pod",))
    output = user.run("experiment.yaml", "--against", "last", "--fail-above", "200%")
    records = user.records()
    assert [record["status"] for record in records] == ["ok"] * 6, output
    assert len({record["case_key"] for record in records}) == 2, output  # an arm each
    assert user.left() == []

    both = str(earlier), str(user.run_folder)
    told = judged(user, "compare", *both, "--fail-above", "200%", exit_code=7)
    assert "step 2x1" in told, told


def check_ladder(ladder: dict[str, object]) -> None:
    rungs = ladder["rungs"]
    assert isinstance(rungs, list)
    rates = [rung["rate_gbps"] for rung in rungs]
    assert rates == pytest.approx(sorted(RATES_GBPS.values()), rel=0.2), ladder
    critical = ladder["critical_bytes"]
    assert isinstance(critical, dict)
    assert critical["estimate"]["value"] == pytest.approx(STEP_BYTES, rel=0.25), ladder
