"""Is a step in pods the emulated platform's step, where the network between them is the same?

The pods' nodes are namespaces with the same line rate and the same cores as emulated nodes have:
what differs is all that Kubernetes brings. Both are arms of one run, block by block. What the
hypervisor takes only makes a step longer: the lower quartile of an arm's steps is judged.
"""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import pytest
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.operators import Operators
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import Fabric, Image, KubeletConfig, NodeSpec, host_image
from tests.kubernetes.test_runs import ANY_UID, User, user  # noqa: F401  a fixture
from tests.one_sided import lower_quartile
from tests.stolen_trials import judging

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.root,
    pytest.mark.namespaces,
    pytest.mark.measuring,
    pytest.mark.needs_cores,
]
RATE_GBPS = 0.2
STEPS_WITHIN = 0.03
BYTES_WITHIN = 0.01
HEADERS = 66 / 1448
"""Ethernet, IP and TCP with timestamps, of a full packet's payload."""
LAUNCHES, STEPS = 3, 8
MODEL = {"layers": 2, "hidden": 256, "heads": 4, "vocabulary": 1024, "seq_len": 16}


@pytest.fixture(scope="module")
def kubelet(
    control_plane: ControlPlane,
    operators: Operators,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Kubelet]:
    """`indirect`: do the pods' interfaces count each packet, as a NIC does?"""
    del operators
    counts_each_packet = getattr(request, "param", False)
    folder = tmp_path_factory.mktemp("k")
    resources = {"cpu": "8", "memory": "16Gi"}
    config = KubeletConfig(
        kubeconfig=control_plane.kubeconfig(),
        folder=folder / "k",
        nodes=[NodeSpec(name=f"worker-{n}", resources=resources, cores=(n,)) for n in range(2)],
        pod_network=Fabric(name="pods", rate_gbps=RATE_GBPS, counts_each_packet=counts_each_packet),
        default_image=Image(env=host_image().env, user=ANY_UID),
    )
    with Kubelet.start(config) as started:
        yield started


def test_a_shaped_step_in_pods_is_the_emulated_platforms(
    user: User,  # noqa: F811
    kubelet: Kubelet,
    control_plane: ControlPlane,
) -> None:
    found = measured(user, MODEL, LAUNCHES)
    assert {len(steps) for steps in found.steps_s.values()} == {LAUNCHES * STEPS}
    # Segments that go together count their headers once in a pod.
    bytes_ratio = ratio(median, found.sent_bytes)
    assert 1 / (1 + HEADERS) - BYTES_WITHIN < bytes_ratio < 1 + BYTES_WITHIN, found.sent_bytes
    with judging(found.records):
        assert ratio(lower_quartile, found.steps_s) == pytest.approx(1.0, abs=STEPS_WITHIN), found


@pytest.mark.thorough
@pytest.mark.parametrize("kubelet", [True], indirect=True, ids=["each packet"])
def test_as_many_bytes_cross_the_pods_network_where_each_packet_is_counted(
    user: User,  # noqa: F811
    kubelet: Kubelet,
    control_plane: ControlPlane,
) -> None:
    sent_bytes = measured(user, MODEL, 1).sent_bytes
    assert ratio(median, sent_bytes) == pytest.approx(1.0, abs=BYTES_WITHIN), sent_bytes


@pytest.mark.thorough
def test_what_a_compute_bound_step_in_pods_costs_is_reported(
    user: User,  # noqa: F811
    kubelet: Kubelet,
    control_plane: ControlPlane,
    record_property: Callable[[str, object], None],
) -> None:
    """The control plane, the kubelet and the pods share this machine's cores."""
    before_s = sum(control_plane.cpu_s().values()) + kubelet.cpu_s()
    began_s = time.monotonic()
    found = measured(user, {**MODEL, "hidden": 32, "layers": 8, "seq_len": 256}, 2)
    busy_s = sum(control_plane.cpu_s().values()) + kubelet.cpu_s() - before_s
    cores = busy_s / (time.monotonic() - began_s)
    steps_ratio = ratio(median, found.steps_s)
    record_property("compute_bound_ratio", steps_ratio)
    record_property("kubernetes_cores", cores)
    assert 0.5 < steps_ratio < 2.0


Figures = dict[str, list[float]]
"""By platform, of all its launches."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a run of both platforms measured."""

    records: list[dict[str, Any]]
    steps_s: Figures
    """Each timed step."""
    sent_bytes: Figures
    """That left node 0 in what was timed, a launch each."""


def measured(
    user: User,  # noqa: F811
    model: dict[str, int],
    launches: int,
) -> Found:
    user.write(
        platform=["emulated", "kubernetes"],
        cluster={"shapes": ["2x1"], "device": "cpu", "cores_per_node": 1},
        networks=[{"name": "slow", "kubernetes": "pod", "rate_gbps": RATE_GBPS}],
        workloads=[{"kind": "train", "steps": STEPS, "model": model}],
        launches=launches,
    )
    output = user.run()
    records = user.records()
    assert [record["status"] for record in records] == ["ok"] * 2 * launches, output
    environments = {
        path.stem: json.loads(path.read_text())["platform"]
        for path in (user.run_folder / "environments").iterdir()
    }
    steps_s: Figures = defaultdict(list)
    sent_bytes: Figures = defaultdict(list)
    for record in records:
        platform = environments[record["environment"]]
        steps_s[platform] += np.load(user.run_folder / record["series"]["step_time_s"]).tolist()
        sent_bytes[platform].append(sum(nic["tx_bytes"] for nic in record["nodes"][0]["nics"]))
    return Found(records, steps_s, sent_bytes)


def ratio(middle: Callable[[Sequence[float]], float], figures: Figures) -> float:
    """Pods over emulated nodes."""
    return middle(figures["kubernetes"]) / middle(figures["emulated"])
