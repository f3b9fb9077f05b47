"""How large does a rank's micro-batch become where packed samples are padded to its longest?

Memory follows from the padded rows, and these from the lengths: of made-up samples they are known.
A prepared set need not be on this machine: it is taken for made-up samples of the mean length that
takes most. (The most that any lengths can take, one long sample and as many of two tokens as fit,
is hundreds of times a budget: no pod that is asked to hold it finds a node.)
"""

from collections.abc import Iterator
from functools import cache

from broadgauge.engine.kinds.training import longest_sample
from broadgauge.messages.synthetic_lengths import (
    SMALLEST_SAMPLE,
    SyntheticLengths,
    lengths_by_quantile,
)
from broadgauge.probes.training.packing import pack_step
from broadgauge.specs.workloads.workload import Packing, SyntheticData, TrainWorkload

MOST_SAMPLES = 20_000
"""That are packed to see it: a step with more of them has rows that are more alike."""


def padded_tokens(train: TrainWorkload, packing: Packing, world_size: int) -> int:
    """About as many has the largest micro-batch of any rank, padding counted."""
    samples = min(packing.effective_batch_size, MOST_SAMPLES)
    budget = packing.max_batch_len
    if isinstance(train.data, SyntheticData):
        mean, longest = train.data.mean_length, train.data.longest(train.model.seq_len)
        return _largest(_usual(min(samples, train.data.samples), mean, longest), budget, world_size)
    longest = longest_sample(train.model.seq_len, packing)
    sets = (_usual(samples, mean, longest) for mean in _means(longest))
    return max(_largest(asked, budget, world_size) for asked in sets)


def _means(longest: int) -> Iterator[int]:
    """Mean lengths that a set may have, each twice the one before."""
    mean = SMALLEST_SAMPLE
    while mean < longest:
        yield mean
        mean *= 2
    yield longest


def _usual(samples: int, mean: int, longest: int) -> SyntheticLengths:
    return SyntheticLengths(num_samples=samples, num_tokens=samples * mean, longest=longest)


@cache
def _largest(asked: SyntheticLengths, budget: int, world_size: int) -> int:
    """Of a step that has each length as often as the set; the budget where no sample fits it. Cases
    of one experiment ask the same again and again, and it takes up to a second."""
    lengths = lengths_by_quantile(asked)
    packed = pack_step(lengths, world_size, budget)
    sizes = (
        len(taken) * max(lengths[place] for place in taken)
        for micro_batch in packed.micro_batches
        for taken in micro_batch
        if taken
    )
    return max(sizes, default=budget)
