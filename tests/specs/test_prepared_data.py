"""May batches by tokens be said as they are read, and does nothing else change its key?"""

from dataclasses import replace

import pytest

from broadgauge.messages.tasks import PreparedText, SynthesizedText, TokenBudget
from broadgauge.specs.errors import ExperimentError
from broadgauge.specs.reading import read_experiment
from broadgauge.specs.tasks import train_task
from broadgauge.specs.workload import Packing, PreparedData, TrainWorkload

PLAIN = {"kind": "train"}
PREPARED = PLAIN | {"data": {"prepared": "set"}}
PACKING = {"max_batch_len": 35_000, "effective_batch_size": 3840}


def test_a_packed_training_is_read_and_told_to_ranks() -> None:
    workload = TrainWorkload.model_validate(PREPARED | {"packing": PACKING})
    assert workload.data == PreparedData(prepared="set")
    assert workload.packing == Packing(**PACKING)
    task = train_task(workload)
    assert task.text == PreparedText(path="set")
    assert task.packing == TokenBudget(**PACKING)


def test_made_up_samples_are_told_to_ranks_with_nothing_left_to_choose() -> None:
    samples = {"samples": 9872, "mean_tokens": 1483}
    keys = PLAIN | {"model": {"seq_len": 8192}, "data": {"synthesized": samples}}
    workload = TrainWorkload.model_validate(keys | {"packing": PACKING})
    told = SynthesizedText(samples=9872, total_tokens=14_640_176, longest=8192)
    assert train_task(workload).text == told
    keys["data"] = {"synthesized": samples | {"max_tokens": 4096}}
    assert train_task(TrainWorkload.model_validate(keys)).text == replace(told, longest=4096)


def test_new_keys_that_are_not_said_are_in_no_form() -> None:
    assert TrainWorkload.model_validate(PLAIN).model_dump(exclude_defaults=True) == PLAIN


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            "packing: {max_batch_len: 9, effective_batch_size: 2}",
            "of `data: {prepared: FOLDER}` or",
        ),
        (
            "data: {synthesized: {samples: 9, mean_tokens: 65}}\n  model: {seq_len: 64}",
            "mean_tokens (65) <= max_tokens (64) <= the model's seq_len (64)",
        ),
        (
            "data: {synthesized: {samples: 9, mean_tokens: 9, max_tokens: 65}}\n"
            "  model: {seq_len: 64}",
            "mean_tokens (9) <= max_tokens (65) <= the model's seq_len (64)",
        ),
        (
            "data: {synthesized: {samples: 200000, mean_tokens: 1001}}",
            "200,200,000 tokens, and every rank holds all of them",
        ),
        ("reduce_each_micro_batch: true", "`reduce_each_micro_batch` is FSDP's and HSDP's"),
        (
            "data: {prepared: a}\n  packing: {max_batch_len: 9, effective_batch_size: 2}\n"
            "  batch_per_rank: 8",
            "`packing` decides `batch_per_rank`",
        ),
        (
            "data: {prepared: a}\n  packing: {max_batch_len: 9, effective_batch_size: 2}\n"
            "  epoch_samples: 8",
            "`packing` decides `epoch_samples`",
        ),
        (
            "data: {prepared: a}\n  packing: {max_batch_len: 1, effective_batch_size: 2}",
            "takes a number of 2 or more",
        ),
        ("data: {prepared: a}\n  packing: {max_batch_length: 9}", "did you mean `max_batch_len`"),
        ("text: a\n  data: {prepared: a}", "one of `text` and `data`"),
    ],
)
def test_what_does_not_go_together_is_said(changes: str, words: str) -> None:
    text = f"name: x\nworkloads:\n- kind: train\n  {changes}\ncluster: {{shapes: [1x1]}}\n"
    with pytest.raises(ExperimentError) as refused:
        read_experiment(text, "x.yaml")
    assert words in str(refused.value)
