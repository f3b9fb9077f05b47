"""Do the keys of samples and packing say what ranks are told, and which don't go together?"""

import re
from typing import Any

import pytest
from pydantic import ValidationError, model_validator

from broadgauge.messages.training_data import PreparedSamples, SyntheticSamples, TokenBudget
from broadgauge.specs.base import Spec
from broadgauge.specs.workloads.prepared_data import (
    Packing,
    PreparedData,
    SyntheticData,
    check_samples,
)

PACKING = {"max_batch_len": 35_000, "effective_batch_size": 3840}
SAMPLES = {"samples": 9872, "mean_length": 1483}


class Training(Spec):
    """As a training has these keys."""

    batch_per_rank: int = 2
    accumulation: int = 1
    epoch_samples: int | None = None
    seq_len: int = 8192
    data: PreparedData | SyntheticData | None = None
    packing: Packing | None = None

    @model_validator(mode="after")
    def _samples_go_together(self) -> "Training":
        check_samples(self, data=self.data, packing=self.packing, seq_len=self.seq_len)
        return self


def read(**keys: Any) -> Training:
    return Training.model_validate(keys)


def test_packed_prepared_samples_are_told_to_ranks() -> None:
    training = read(data={"prepared": "set"}, packing=PACKING)
    assert isinstance(training.data, PreparedData)
    assert training.data.for_ranks == PreparedSamples(path="set")
    assert training.packing is not None
    assert training.packing.for_ranks == TokenBudget(**PACKING)


def test_synthetic_samples_are_told_with_nothing_left_to_choose() -> None:
    told = SyntheticSamples(samples=9872, total_tokens=14_640_176, longest=8192)
    for extra, longest in (({}, 8192), ({"max_length": 4096}, 4096)):
        data = read(data=SAMPLES | extra).data
        assert isinstance(data, SyntheticData)
        assert data.for_ranks(8192).longest == longest
    assert read(data=SAMPLES).data.for_ranks(8192) == told  # type: ignore[union-attr]


def test_keys_that_are_not_given_are_in_no_form() -> None:
    assert read().model_dump(exclude_defaults=True) == {}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"packing": PACKING}, "`packing` takes whole samples, and a text has none"),
        (
            {"data": SAMPLES, "seq_len": 1024},
            "`mean_length` is 1483, and no sample is longer than 1024",
        ),
        (
            {"data": SAMPLES | {"max_length": 9000}},
            "`max_length` is 9000, and the model takes 8192 tokens (`seq_len`)",
        ),
        (
            {"data": {"samples": 200_000, "mean_length": 1001}},
            "200,200,000 tokens, and every rank holds all of them: 200,000,000 at most",
        ),
        (
            {"data": SAMPLES, "packing": PACKING, "batch_per_rank": 8},
            "`packing` decides `batch_per_rank`: one of them",
        ),
        (
            {"data": SAMPLES, "packing": PACKING, "accumulation": 8},
            "`packing` decides `accumulation`",
        ),
        (
            {"data": {"prepared": "a"}, "packing": PACKING, "epoch_samples": 8},
            "`packing` decides `epoch_samples`",
        ),
        ({"data": {"prepared": "a"}, "packing": PACKING | {"max_batch_len": 1}}, "equal to 2"),
        ({"data": {"samples": 9, "mean_length": 1}}, "equal to 2"),
        ({"data": {"prepared": ""}}, "at least 1 character"),
    ],
)
def test_what_does_not_go_together_is_said(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(words)):
        read(**keys)


def test_a_key_that_there_is_not_is_refused() -> None:
    for model in (Packing, SyntheticData, PreparedData):
        assert issubclass(model, Spec)
    with pytest.raises(ValidationError, match="max_batch_length"):
        Packing.model_validate({"max_batch_length": 9, "effective_batch_size": 2})
