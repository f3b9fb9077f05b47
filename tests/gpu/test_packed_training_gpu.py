"""Holds on two GPUs: samples taken by tokens, also as InstructLab does, train as on one GPU."""

from typing import Any

import numpy as np
import pytest
from tests.e2e.driving import only_run, records_of, run_command

pytestmark = [pytest.mark.gpu, pytest.mark.measuring, pytest.mark.timeout(600)]

EXPERIMENT = """\
name: packed
platform: local
cluster: {shapes: [1x1, 1x2], device: cuda}
workloads:
WORKLOADS
launches: 1
"""
WORKLOAD = """\
  - kind: train
    name: NAME
    model: {kind: llama, layers: 4, hidden: 512, heads: 8, kv_heads: 4, ffn_hidden: 1376}
    data: {samples: 160, mean_length: 100, max_length: 128}
    packing: {max_batch_len: 512, effective_batch_size: 32}
    steps: 10
    warm_up_steps: 2
    block_steps: 5
"""
WAYS = {
    "plain": "",
    "fsdp": "    strategy: fsdp\n",
    "instructlab": "    strategy: hsdp\n    cpu_offload: true\n    activation_checkpointing: full\n"
    "    reduce_each_micro_batch: true\n",
    "compiled": "    strategy: fsdp\n    compile: true\n",
}
Trained = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """By workload and shape: the record, its loss of each step among it."""
    folder = tmp_path_factory.mktemp("packed")
    workloads = "".join(WORKLOAD.replace("NAME", name) + keys for name, keys in WAYS.items())
    (folder / "e.yaml").write_text(EXPERIMENT.replace("WORKLOADS\n", workloads))
    ran = run_command("run", "e.yaml", folder=folder, timeout_s=500)
    assert ran.returncode == 0, ran.stderr
    run = only_run(folder)
    return {
        (record["workload"], record["shape"]): record
        | {"losses": np.load(run / record["series"]["loss"])}
        for record in records_of(run)
    }


@pytest.mark.parametrize("name", WAYS)
def test_two_gpus_train_on_the_samples_of_one(trained: Trained, name: str) -> None:
    """Weighed by tokens: the ranks' micro-batches hold as many as fit, not as many each."""
    alone, together = trained["plain", "1x1"], trained[name, "1x2"]
    assert len(together["losses"]) == 10
    assert together["losses"] == pytest.approx(alone["losses"], abs=1e-3)
    metrics = together["metrics"]
    assert metrics["samples_per_s"] > 0
    assert metrics["micro_batches_count"] > 1
    assert 0 <= metrics["padding_ratio"] < 0.5
    assert metrics["step_without_communication_s"] > 0
