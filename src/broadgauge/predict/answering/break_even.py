"""From which batch or model size on does a better network pay more than so much?

The step over both networks is predicted while one thing changes, and where the gain crosses the
asked-for ratio is found between the two points around it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from broadgauge.predict.answering.knee import StepTimes
from broadgauge.predict.case import Fabric, ModelShape, TrainingCase
from broadgauge.predict.facts.arrays import Times

BATCH_FACTORS = tuple(2.0 ** (k / 2) for k in range(-12, 13))
"""1/64 to 64 times the batch."""
WIDTH_FACTORS = tuple(2.0 ** (k / 2) for k in range(-6, 7))
"""1/8 to 8 times as wide: 1/64 to 64 times the parameters of layers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """Where the gain crosses: below `at` it is more, or above it."""

    at: float | None
    """Tokens a GPU and step, or parameters; None: it crosses nowhere in the range."""
    is_more_below: bool
    is_always: bool
    """Where it crosses nowhere: is the gain above that ratio everywhere?"""
    steps_per_s: float | None
    """Over the worse network, there."""
    lowest: float
    highest: float
    """The range that was looked at."""


def by_batch(
    case: TrainingCase, better: Fabric, gain_ratio: float, step_times: StepTimes
) -> BreakEven:
    """Over tokens that a GPU computes for each step, accumulation kept."""
    cases = [
        replace(
            case, micro_batch=case.micro_batch * factor, global_batch=case.global_batch * factor
        )
        for factor in BATCH_FACTORS
    ]
    tokens = [each.global_batch * each.seq_len / each.gpus for each in cases]
    return _crossing(cases, better, gain_ratio, step_times, np.array(tokens))


def by_params(
    case: TrainingCase, better: Fabric, gain_ratio: float, step_times: StepTimes
) -> BreakEven:
    """Over the model's parameters, of the same depth and batch."""
    cases = [replace(case, model=wider(case.model, factor)) for factor in WIDTH_FACTORS]
    params = [each.model.params for each in cases]
    return _crossing(cases, better, gain_ratio, step_times, np.array(params))


def wider(model: ModelShape, factor: float) -> ModelShape:
    """The same, so many times as wide: heads keep their size, layers grow with its square."""
    heads = model.heads or max(1, model.hidden // 128)
    head_size = model.hidden // heads
    new_heads = max(1, round(heads * factor))
    hidden = new_heads * head_size
    scale = hidden / model.hidden
    kv_heads = None if model.kv_heads is None else max(1, round(model.kv_heads * scale))
    table = float(model.vocabulary * model.hidden)

    def scaled(params: float) -> float:
        tables = min(table, params)
        return (params - tables) * scale**2 + tables * scale

    return replace(
        model,
        hidden=hidden,
        heads=new_heads,
        kv_heads=kv_heads,
        ffn_hidden=None if model.ffn_hidden is None else round(model.ffn_hidden * scale),
        params=scaled(model.params),
        layer_params=None,
        adapter_params=None,
        adapter_rank=None,
        adapter_inputs=None,
        active_params=scaled(model.active_params),
    )


def _crossing(
    cases: Sequence[TrainingCase],
    better: Fabric,
    gain_ratio: float,
    step_times: StepTimes,
    places: Times,
) -> BreakEven:
    """The last crossing, going up; between two points by the logarithms of both."""
    slow_s = step_times(cases)
    fast_s = step_times([replace(case, fabric=better) for case in cases])
    gains = slow_s / fast_s - 1
    is_more = gains > gain_ratio
    changes = np.flatnonzero(is_more[1:] != is_more[:-1])
    if changes.size == 0:
        return BreakEven(
            at=None,
            is_more_below=False,
            is_always=bool(is_more[0]),
            steps_per_s=None,
            lowest=float(places[0]),
            highest=float(places[-1]),
        )
    left = int(changes[-1])
    share = (gain_ratio - gains[left]) / (gains[left + 1] - gains[left])
    at = float(np.exp(np.log(places[left : left + 2]) @ np.array([1 - share, share])))
    step_s = float(np.exp(np.log(slow_s[left : left + 2]) @ np.array([1 - share, share])))
    return BreakEven(
        at=at,
        is_more_below=bool(is_more[left]),
        is_always=False,
        steps_per_s=1 / step_s,
        lowest=float(places[0]),
        highest=float(places[-1]),
    )
