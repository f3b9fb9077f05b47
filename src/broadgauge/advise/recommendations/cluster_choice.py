"""Do more nodes, another placement or a larger batch pay? Rules on predictions."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from broadgauge.advise.recommendations.ratio_interval import ratio_interval
from broadgauge.advise.recommendations.recommendation import (
    PAYS_RATIO,
    Recommendation,
    RecommendationRule,
    Told,
    cautions,
    exposed_words,
    grouped,
    network_name,
    step_words,
)
from broadgauge.predict.answering.settings import OF_SIZE, batch_of, key_without, on_any_node
from broadgauge.predict.case import Bottleneck, TrainingCase
from broadgauge.predict.prediction import Prediction
from broadgauge.specs.units import show_count, show_ratio

NEARLY_RATIO = 0.97
"""From here on two rates are called the same: repeated measurements spread by more."""
EFFICIENCY_MISS_RATIO = 0.074
"""What predicted scaling efficiencies are off by at most, in eight of ten cases.

Source: docs/validation.md, mean absolute error 0.046 on published rows; 80 % of normal errors are
below 1.6 times their mean.
"""


def of_sizes(predictions: Sequence[Prediction], told: Told) -> Iterator[Recommendation]:
    """Does a larger cluster do less than a smaller one? One node begins every network's row."""
    batch = batch_of([each.case for each in predictions])
    for group in grouped(predictions, lambda c: (_of_any_batch(c), batch(c), _micro_batch(c))):
        alone = [each for each in group if each.case.nodes == 1]
        for fabric in dict.fromkeys(each.case.fabric for each in group if each.case.nodes > 1):
            row = alone + [each for each in group if each.case.fabric == fabric]
            row.sort(key=lambda each: each.case.nodes)
            for fewer, more in itertools.pairwise(row):
                ratio = more.tokens_per_s / fewer.tokens_per_s
                if ratio < 1 and more.case.nodes > fewer.case.nodes:
                    yield _slower(fewer, more, ratio, told(more.case))


_of_any_batch = key_without(OF_SIZE | {"recompute", "micro_batch"})


def _micro_batch(case: TrainingCase) -> float:
    """What is not whole is a mean, which nobody chose: a little more is the same."""
    if case.micro_batch == round(case.micro_batch):
        return case.micro_batch
    return -math.floor(math.log2(case.micro_batch)) - 0.5


def _slower(fewer: Prediction, more: Prediction, ratio: float, told: str) -> Recommendation:
    return Recommendation(
        rule=RecommendationRule.SLOWER,
        is_worth_it=False,
        about=network_name(more),
        words=(
            f"{more.case.nodes} nodes{told} over {network_name(more)} are "
            f"{'slower' if ratio < NEARLY_RATIO else 'no faster'} than {fewer.case.nodes}: "
            f"{show_ratio(ratio, 2)} of the throughput; a faster network first, then more nodes"
        ),
        arithmetic=(
            f"{show_count(more.tokens_per_s)} / {show_count(fewer.tokens_per_s)} tokens/s = "
            f"{ratio:.3g}",
            exposed_words(more),
        ),
        gain_ratio=ratio - 1,
        cautions=tuple(cautions(fewer, more)),
    )


def of_places(
    predictions: Sequence[Prediction], pays_ratio: float, told: Told
) -> Iterator[Recommendation]:
    """So many GPUs in one node, or over several: does it matter?"""
    for group in grouped(predictions, lambda c: (on_any_node(c), c.gpus, c.global_batch)):
        inside = [each for each in group if each.case.nodes == 1 and each.case.gpus > 1]
        for near in inside[:1]:
            for far in (each for each in group if each.case.nodes > 1):
                yield _placed(near, far, pays_ratio, told(far.case))


def _placed(near: Prediction, far: Prediction, pays_ratio: float, told: str) -> Recommendation:
    """It matters where the difference is larger than the limit and than what is not known."""
    ratio = far.step_time_s.value / near.step_time_s.value
    at_least = min(ratio_interval(far, near).low, 1 / (1 / ratio + EFFICIENCY_MISS_RATIO))
    matters = at_least > 1 + pays_ratio
    model, gpus = f"{near.case.model.name}{told}", near.case.gpus
    over = f"{far.case.nodes} over {network_name(far)}"
    if matters:
        words = f"{model}: one node of {gpus} GPUs is {ratio:.3g} times as fast as {over}"
    else:
        words = f"{model} is indifferent to {gpus} GPUs in one node or in {over}: {ratio:.3g}"
        if ratio > 1 + pays_ratio:
            words += ", less than the prediction is uncertain by"
    return Recommendation(
        rule=RecommendationRule.PLACE,
        is_worth_it=matters,
        about=network_name(far),
        words=words,
        arithmetic=(
            f"{step_words(far)} / {step_words(near)} = {ratio:.3g}",
            exposed_words(far),
        ),
        gain_ratio=ratio - 1,
    )


def of_batches(
    predictions: Sequence[Prediction], pays_ratio: float = PAYS_RATIO
) -> Iterator[Recommendation]:
    """Is throughput flat over the batch? Then neither network nor launches limit it."""

    def rest(case: TrainingCase) -> TrainingCase:
        return replace(case, micro_batch=1.0, global_batch=1.0, recompute="none", name="")

    for group in grouped(predictions, rest):
        row = sorted(group, key=lambda each: each.case.micro_batch)
        if len({each.case.micro_batch for each in row}) < 3:
            continue
        rates = [each.tokens_per_s for each in row]
        gain = max(rates) / min(rates) - 1
        is_flat = gain < pays_ratio
        bounds = {each.bound for each in row}
        kernels = "look at the kernels (fused attention, fused loss, compile)"
        if is_flat and bounds <= {Bottleneck.COMPUTE, Bottleneck.MEMORY}:
            words = (
                f"throughput is flat over the batch, so the training is compute-bound: {kernels}"
            )
        elif is_flat:
            words = "throughput is flat over the batch"
        else:
            words = f"a batch of {row[rates.index(max(rates))].case.micro_batch:g} is best: up to "
            words += f"{show_ratio(gain, 2)} more tokens/s"
        sizes = ", ".join(f"{each.case.micro_batch:g}" for each in row)
        yield Recommendation(
            rule=RecommendationRule.BATCH,
            is_worth_it=not is_flat,
            about=row[0].case.model.name,
            words=words,
            arithmetic=(
                f"{', '.join(show_count(rate) for rate in rates)} tokens/s at {sizes} sequences a "
                f"GPU: {show_count(max(rates))} / {show_count(min(rates))} = {1 + gain:.3g}",
            ),
            gain_ratio=gain,
        )
