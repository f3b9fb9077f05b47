"""Is an epoch's time marked as what it is: measured, or extrapolated?"""

from types import SimpleNamespace

import pytest

from broadgauge.report.epoch_words import epoch_words
from broadgauge.report.kinds.training import TrainingInReport


def summary(**values):
    return SimpleNamespace(value=values.get, good=())


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (1.0, "the second epoch's 267 s are measured, every step of it"),
        (0.0, "267 s are extrapolated from the measured steps: none of that epoch was measured"),
        (0.25, "267 s are extrapolated from the measured steps: 25 % of that epoch was measured"),
    ],
)
def test_it_is_said_which(measured, words):
    made = summary(epoch_time_s=266.83, epoch_measured_ratio=measured)
    said = epoch_words(made)
    assert said.replace("4.45 min", "267 s").endswith(words)
    assert said in str(TrainingInReport().details_on_page(made)).replace("&#x27;", "'")


def test_a_training_without_epochs_says_nothing():
    assert epoch_words(summary(step_time_s=1.0)) is None
    assert not str(TrainingInReport().details_on_page(summary()))
