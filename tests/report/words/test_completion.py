"""Does a reader know how long a training takes, and how much of that was seen?"""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from broadgauge.report.words.completion import completion_words
from broadgauge.results.model import CaseSummary
from broadgauge.specs.workloads.workload import TrainWorkload

EPOCH = {"epoch_samples": 35_456}
PACKED = {
    "data": {"samples": 100, "mean_length": 20},
    "packing": {"max_batch_len": 200, "effective_batch_size": 10},
}


def said_of(epochs: int = 1, keys: Any = EPOCH, **metrics: float) -> list[str]:
    train = TrainWorkload.model_validate({"kind": "train", "epochs": epochs} | keys)
    summary = cast("CaseSummary", SimpleNamespace(value=metrics.get))
    return list(completion_words(train, summary))


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (1.0, "all of the second epoch was measured"),
        (0.25, "extrapolated: 25 % of the second epoch was measured"),
        (0.0, "extrapolated: none of the second epoch was measured"),
    ],
)
def test_an_epoch_says_whether_it_was_measured(measured: float, words: str) -> None:
    said = said_of(epoch_time_s=266.83, epoch_measured_ratio=measured)
    assert said == [f"an epoch of 35,456 samples: 4.45 min, {words}"]


def test_a_completion_says_its_parts_and_what_was_run() -> None:
    epoch = {"epoch_time_s": 60.0, "epoch_measured_ratio": 0.0}
    parts = {"start_up_time_s": 5.0, "load_time_s": 15.0, "training_time_s": 600.0}
    whole = {"completion_time_s": 620.0, "completion_measured_ratio": 0.004}
    _, said = said_of(10, **epoch, **parts, **whole)
    assert said == (
        "to completion of 10 epochs: 10.3 min (start-up 5 s, loading 15 s, training 10 min), "
        "extrapolated: 0.4 % of its steps were run"
    )
    _, said = said_of(**epoch, **parts, **whole | {"completion_measured_ratio": 1})
    assert said.startswith("to completion of 1 epoch: ")
    assert said.endswith("), all of its steps were run")


def test_nothing_is_said_where_nobody_said_how_long_an_epoch_is() -> None:
    assert said_of(step_time_s=1.0) == []


def test_an_epoch_of_packed_samples_is_told_without_their_number() -> None:
    """Which the set has, and the record's `data` says."""
    (said,) = said_of(keys=PACKED, epoch_time_s=60.0, epoch_measured_ratio=0.0)
    assert said == "an epoch: 60 s, extrapolated: none of the second epoch was measured"
