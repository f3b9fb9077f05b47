"""Does a step in pods take what it takes on emulated nodes whose links are shaped alike?

One run interleaves both platforms. Ranks, cores and links are equal; what is not is all that
Kubernetes brings: the control plane and the kubelet have the same cores as the pods.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
from tests.disturbance import judging
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.scratch import Scratch
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import Fabric, KubeletConfig, NodeSpec, host_image
from tests.kubernetes.runs import User

from broadgauge.messages.vocabulary import UNDER_READ_RATIO, CounterKind
from broadgauge.results.folder.series import read_series
from broadgauge.results.model import STEP_SERIES
from broadgauge.results.run_path import read_summary

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.root,
    pytest.mark.namespaces,
    pytest.mark.measuring,
    pytest.mark.measured,
    pytest.mark.slow,
    pytest.mark.timeout(580),
]
RATE_GBPS = 0.2
TIMES_WITHIN = 0.05
"""The control plane and the kubelet take their share of the two cores that the pods have."""
BYTES_WITHIN = 0.01
TRAIN = {
    "kind": "train",
    "steps": 8,
    "model": {"layers": 2, "hidden": 256, "heads": 4, "vocabulary": 1024, "seq_len": 16},
}


@pytest.fixture(scope="module")
def kubelet(
    control_plane: ControlPlane, operators: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubelet]:
    """Two nodes with a core each, as emulated ones."""
    resources = {"cpu": "8", "memory": "16Gi"}
    config = KubeletConfig(
        **control_plane.for_kubelets(),
        folder=tmp_path_factory.mktemp("k"),
        nodes=[NodeSpec(name=f"worker-{n}", resources=resources, cores=(n,)) for n in range(2)],
        pod_network=Fabric(name="pods", rate_gbps=RATE_GBPS),
        default_image=replace(host_image(), user=12_345),
    )
    with Kubelet.start(config) as started:
        yield started


def test_a_shaped_step_takes_as_long_in_pods(
    kubelet: Kubelet, scratch: Scratch, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """What is disturbed only takes longer: the middle step of the fastest launch is judged."""
    user = User(scratch, control_plane, tmp_path)
    user.write(
        platform=["emulated", "kubernetes"],
        cluster={"cores_per_node": 1},
        networks=[{"name": "slow", "rate_gbps": RATE_GBPS, "kubernetes": "pod"}],
        workloads=[TRAIN],
        launches=3,
    )
    user.give_rights()
    output = user.run()
    assert user.statuses() == ["ok"] * 6, output
    run = read_summary(user.run_folder)
    times_s: dict[str, float] = {}
    num_bytes: dict[str, float] = {}
    for summary in run.cases:
        series = [read_series(run.folder, record, STEP_SERIES) for record in summary.good]
        platform = str(summary.case.platform)
        times_s[platform] = min(float(median(each)) for each in series)
        num_bytes[platform] = median(each.metrics["wire_bytes"] for each in summary.good)
    print(times_s, num_bytes)  # noqa: T201  for docs/measurements.md
    bytes_ratio = num_bytes["kubernetes"] / num_bytes["emulated"]
    low = (1 - UNDER_READ_RATIO[CounterKind.INTERFACE]) * (1 - BYTES_WITHIN)
    assert low <= bytes_ratio <= 1 + BYTES_WITHIN
    with judging(user.records()):
        ratio = times_s["kubernetes"] / times_s["emulated"]
        assert ratio == pytest.approx(1, abs=TIMES_WITHIN), times_s
