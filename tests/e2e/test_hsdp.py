"""Holds that HSDP sends between nodes what theory says, and beats full sharding on a slow link."""

from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driving import only_run, records_of, run_command

from broadgauge.catalog.traffic import gloo_node_bytes
from broadgauge.engine.kinds.training import step_bytes
from broadgauge.predict.system.trainer_bytes import step_bytes as sent_bytes
from broadgauge.specs.workload import GptModel, Lora, TrainWorkload

pytestmark = [
    pytest.mark.measuring,
    pytest.mark.namespaces,
    pytest.mark.thorough("hsdp between nodes"),
    pytest.mark.timeout(400),
]
MODEL = GptModel(layers=2, hidden=256, heads=4, seq_len=16)
TRAININGS = {
    "fsdp": TrainWorkload(kind="train", strategy="fsdp", model=MODEL),
    "hsdp": TrainWorkload(kind="train", strategy="hsdp", model=MODEL),
    "lora": TrainWorkload(kind="train", strategy="hsdp", model=MODEL, lora=Lora(rank=32)),
}
EXPERIMENT = """\
name: hsdp
cluster: {shapes: [2x2], device: cpu}
networks: [{name: ethernet, rate_gbps: 200 Mbit/s}]
workloads:
  - kind: train
    name: fsdp
    strategy: fsdp
    model: &model {layers: 2, hidden: 256, heads: 4, seq_len: 16}
    steps: 4
    block_steps: 2
    warm_up_steps: 1
  - kind: train
    name: hsdp
    strategy: hsdp
    model: *model
    steps: 4
    block_steps: 2
    warm_up_steps: 1
  - kind: train
    name: lora
    strategy: hsdp
    lora: {rank: 32}
    model: *model
    steps: 4
    block_steps: 2
    warm_up_steps: 1
launches: 1
"""
HEADERS_RATIO = 1514 / 1448
"""Of a full frame at MTU 1500."""


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """By workload."""
    folder: Path = tmp_path_factory.mktemp("hsdp")
    (folder / "e.yaml").write_text(EXPERIMENT)
    ran = run_command("run", "e.yaml", folder=folder, timeout_s=350)
    assert ran.returncode == 0, ran.stderr
    return {each["workload"]: each["metrics"] for each in records_of(only_run(folder))}


@pytest.mark.parametrize("name", ["hsdp", "lora"])
def test_only_the_replicas_gradients_cross_nodes(
    metrics: dict[str, dict[str, Any]], name: str
) -> None:
    """Two rings of two, each with half of the gradients: S a node. Gathering and scattering stay
    inside."""
    gradients = step_bytes(TRAININGS[name])["reduce_scatter"]
    assert sent_bytes(TRAININGS[name], "gloo", 2, 2) == gradients
    assert metrics[name]["wire_bytes"] == pytest.approx(gradients * HEADERS_RATIO, rel=0.05)
    assert metrics[name]["amplification_ratio"] == pytest.approx(HEADERS_RATIO, rel=0.05)


def test_full_sharding_sends_all_of_it(metrics: dict[str, dict[str, Any]]) -> None:
    sizes = step_bytes(TRAININGS["fsdp"]).items()
    known = sum(gloo_node_bytes(op, 4, size, ranks_per_node=2) for op, size in sizes)
    assert metrics["fsdp"]["wire_bytes"] == pytest.approx(known * HEADERS_RATIO, rel=0.05)
    assert known > 2.5 * step_bytes(TRAININGS["hsdp"])["reduce_scatter"]


def test_on_a_slow_link_shards_inside_of_nodes_are_faster(
    metrics: dict[str, dict[str, Any]],
) -> None:
    """The link alone gives a factor of 2.9; what is computed is the same."""
    assert metrics["hsdp"]["step_time_s"] < 0.6 * metrics["fsdp"]["step_time_s"]
    assert metrics["lora"]["step_time_s"] < metrics["hsdp"]["step_time_s"]
