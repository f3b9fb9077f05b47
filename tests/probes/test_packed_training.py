"""Do real ranks that take samples by tokens train as one process does, and say what they took?"""

import json
from collections import Counter

import pytest

from broadgauge.messages.rank import StepsBlock, TrainSummary
from broadgauge.specs.workloads.model_messages import fsdp_units
from broadgauge.specs.workloads.workload import Packing, PreparedData, SyntheticData
from broadgauge.tokenizing.preparing import prepare
from broadgauge.tokenizing.request import PrepareRequest

from .harness import Ranks
from .training_launch import TINY, Launch

pytestmark = [pytest.mark.measuring, pytest.mark.slow]
STEPS = {"steps": 21, "warm_up_steps": 2, "block_steps": 7}
"""Seven epochs."""
NUM_SAMPLES, BATCH, BUDGET = 22, 8, 24


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """Lengths from 2 to 16 tokens, the model's `seq_len`; 3 steps an epoch, the last of 6."""
    folder = tmp_path_factory.mktemp("data")
    texts = ["abcd" * 4] + [f"{n}: " + "ab" * (n % 6) for n in range(NUM_SAMPLES - 1)]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (folder / "data.jsonl").write_text(lines)
    made = prepare(PrepareRequest(source=str(folder / "data.jsonl"), out=folder / "set"))
    assert made.described.num_samples == NUM_SAMPLES
    return {
        "data": PreparedData(prepared=str(made.folder)),
        "packing": Packing(max_batch_len=BUDGET, effective_batch_size=BATCH),
        **STEPS,
    }


@pytest.fixture(scope="module")
def alone(packed, tmp_path_factory):
    with Ranks(1, tmp_path_factory.mktemp("one")) as ranks:
        yield Launch(ranks).train(**packed)


def test_two_ranks_train_as_one_process_and_count_samples(packed, alone, tmp_path):
    with Ranks(2, tmp_path) as ranks:
        launch = Launch(ranks)
        for strategy in ("ddp", "fsdp"):
            together = launch.train(**packed, strategy=strategy)
            assert together.error is None
            assert together.series["loss"] == pytest.approx(alone.series["loss"], abs=1e-4)
        said = [rank.of(StepsBlock) for rank in launch.said]
        summaries = [rank.last(TrainSummary) for rank in launch.said]
    by_step = [
        sum(numbers)
        for blocks in zip(*said, strict=True)
        if blocks[0].label.startswith("on/")
        for numbers in zip(*(block.num_samples for block in blocks), strict=True)
    ]
    assert Counter(by_step) == {8: 14, 6: 7}  # epochs of 8, 8 and 6
    metrics = together.measurement.metrics
    step_s = metrics["step_time_s"]
    assert metrics["samples_per_s"] == pytest.approx(sum(by_step) / (21 * step_s))
    assert metrics["tokens_per_s"] > metrics["samples_per_s"]
    assert 0 < metrics["padding_ratio"] < 0.5
    assert metrics["micro_batches_count"] > 1
    assert metrics["epoch_measured_ratio"] == 1
    *blocks, rest = fsdp_units(TINY)
    gathered = sum(
        each.count * each.size_bytes for each in summaries[0].collectives if each.op == "all_gather"
    )
    a_pass = 4 * (2 * sum(blocks) + rest)  # steps differ: what is told is their mean
    assert gathered == pytest.approx(a_pass * metrics["micro_batches_count"])
    second = together.series["step_time_s"][1:4]  # steps 3 to 5: two are of the warm-up
    assert metrics["epoch_time_s"] == pytest.approx(sum(second))
    assert {each.epoch_samples for each in summaries} == {NUM_SAMPLES}
    assert f"{NUM_SAMPLES} samples" in together.measurement.data


def test_ranks_make_up_the_same_samples(tmp_path_factory):
    """As many as are asked for, of that mean, and they train as one process on all of them."""
    asked = {
        "data": SyntheticData(samples=22, mean_length=8),
        "packing": Packing(max_batch_len=BUDGET, effective_batch_size=BATCH),
        **STEPS | {"warm_up_steps": 3},  # so that the measured ones are whole epochs
    }
    losses = {}
    for count in (1, 2):
        with Ranks(count, tmp_path_factory.mktemp("ranks")) as ranks:
            launch = Launch(ranks)
            trial = launch.train(**asked, strategy="fsdp")
            assert trial.error is None
            losses[count] = trial.series["loss"]
            blocks = [block for rank in launch.said for block in rank.of(StepsBlock)]
        taken = [block for block in blocks if block.label.startswith("on/")]
        assert sum(sum(block.num_samples) for block in taken) == 7 * 22
        assert sum(sum(block.num_tokens) for block in taken) == 7 * 22 * 8
        assert "22 samples, 176 tokens" in trial.measurement.data
    assert losses[2] == pytest.approx(losses[1], abs=1e-4)


INSTRUCTLAB = {
    "strategy": "hsdp",
    "shard_ranks": 2,
    "cpu_offload": True,
    "activation_checkpointing": "full",
    "reduce_each_micro_batch": True,
}


def test_four_ranks_train_instructlabs_way_as_one_process(packed, alone, tmp_path):
    """Batches by tokens, HYBRID_SHARD, CPU offload, gradients reduced with each micro-batch."""
    with Ranks(4, tmp_path) as ranks:
        together = Launch(ranks).train(**packed, **INSTRUCTLAB)
    assert together.error is None
    assert together.series["loss"] == pytest.approx(alone.series["loss"], abs=1e-4)
