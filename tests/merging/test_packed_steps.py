"""Do steps of unequal size give rates by what they held, and epochs by their samples?"""

from dataclasses import replace

import pytest

from broadgauge.merging.merge import merge
from broadgauge.specs.workload import Packing, PreparedData, TrainWorkload

from .outcomes import make_case, outcome, steps, summary

WORKLOAD = TrainWorkload(kind="train", warm_up_steps=1)
PACKED = TrainWorkload(
    kind="train",
    warm_up_steps=1,
    data=PreparedData(prepared="set"),
    packing=Packing(max_batch_len=100, effective_batch_size=8),
    epochs=2,
)


def packed_block(samples, tokens, seconds):
    block = steps("on/0", seconds, [1.0] * len(seconds))
    return replace(block, num_samples=tuple(samples), num_tokens=tuple(tokens))


def said(**changes):
    told = {"epoch_samples": 20, "micro_batches_count": 1.5, "padding_ratio": 0.25}
    return replace(summary(), **told | changes)


def test_rates_are_of_what_the_steps_held():
    """Two ranks: 8, 4 and 8 samples, in 3 s of the slowest rank each step."""
    ranks = [
        [packed_block((5, 2, 4), (50, 30, 45), (1, 0.5, 0.5)), said()],
        [packed_block((3, 2, 4), (40, 10, 50), (0.5, 1, 1)), said(padding_ratio=0.35)],
    ]
    found = merge(make_case(PACKED), outcome(ranks), None).measurement.metrics
    assert found["samples_per_s"] == pytest.approx(20 / 3)
    assert found["tokens_per_s"] == pytest.approx(225 / 3)
    assert found["micro_batches_count"] == 1.5
    assert found["padding_ratio"] == pytest.approx(0.3)
    assert found["epoch_measured_ratio"] == pytest.approx(1 / 3)
    assert found["epoch_time_s"] == pytest.approx(3)
    assert found["completion_time_s"] == pytest.approx(6)


def test_an_epoch_of_equal_sequences_is_the_workload_s():
    train = WORKLOAD.model_copy(update={"epoch_samples": 35_456, "batch_per_rank": 16})
    ranks = [[steps("on/0", (0.25, 0.25), (1.0, 1.0)), summary()]] * 2
    found = merge(make_case(train), outcome(ranks), None).measurement.metrics
    assert found["epoch_time_s"] == pytest.approx(1108 * 0.25)
    assert found["epoch_measured_ratio"] == 0
    assert found["completion_time_s"] == found["epoch_time_s"]


def test_who_says_nothing_of_epochs_has_none():
    ranks = [[steps("on/0", (0.25, 0.25), (1.0, 1.0)), summary()]] * 2
    found = merge(make_case(WORKLOAD), outcome(ranks), None).measurement
    names = {*found.metrics, *found.missing}
    assert not names & {"epoch_time_s", "completion_time_s", "padding_ratio"}
