"""What does training cost? US dollars for 10^9 tokens, from a GPU's price by the hour; and days and
dollars of a whole training."""

from dataclasses import dataclass

from broadgauge.predict.prediction import Interval, Prediction

SECONDS_AN_HOUR = 3600.0
TOKENS = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeTraining:
    """So many tokens at the predicted step, and what a named storage takes before the first one:
    without restarts, evaluation or waiting for GPUs."""

    tokens_count: float
    time_s: Interval
    usd: Interval | None
    """None: no price is known."""


def usd_per_gigatoken(
    tokens_per_s: float, gpus: int, usd_per_gpu_hour: float | None
) -> float | None:
    """GPUs × price an hour × hours of 10^9 tokens; None where no price is known.

    All GPUs are paid for as long as the training runs: 10^9 tokens take 10^9 / rate seconds.
    """
    if usd_per_gpu_hour is None or not tokens_per_s > 0:
        return None
    hours = TOKENS / tokens_per_s / SECONDS_AN_HOUR
    return gpus * usd_per_gpu_hour * hours


def whole_training(
    prediction: Prediction, tokens_count: float, usd_per_gpu_hour: float | None
) -> WholeTraining:
    """Steps of all tokens × the step's time, with the step's own interval, after the start."""
    case = prediction.case
    steps = tokens_count / (case.global_batch * case.seq_len)
    time_s = _times(prediction.step_time_s, steps)
    if case.storage_waits is not None:
        start = case.storage_waits.start
        time_s = Interval(
            value=time_s.value + start.value_s,
            low=time_s.low + start.low_s,
            high=time_s.high + start.high_s,
        )
    usd = None
    if usd_per_gpu_hour is not None:
        usd = _times(time_s, case.gpus * usd_per_gpu_hour / SECONDS_AN_HOUR)
    return WholeTraining(tokens_count=tokens_count, time_s=time_s, usd=usd)


def _times(interval: Interval, factor: float) -> Interval:
    return Interval(
        value=interval.value * factor, low=interval.low * factor, high=interval.high * factor
    )
