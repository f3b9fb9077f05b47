"""Holds on two GPUs: samples taken by tokens, also as InstructLab does, train as on one GPU."""

import pytest

from .training_ways import Trained, train

pytestmark = [pytest.mark.gpu, pytest.mark.measuring, pytest.mark.timeout(900)]

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


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    workloads = (WORKLOAD.replace("NAME", name) + keys for name, keys in WAYS.items())
    return train(tmp_path_factory.mktemp("packed"), workloads)


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
