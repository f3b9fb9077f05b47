"""How large does a rank's micro-batch become where packed samples are padded to its longest?

Memory follows from the padded rows, and these from the lengths: of made-up samples they are known,
of a prepared set, which need not be on this machine, only bounded.
"""

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
    """Of the largest micro-batch of any rank, padding counted: about as many for made-up samples,
    at most for a prepared set."""
    if isinstance(train.data, SyntheticData):
        found = _of_a_usual_step(train.data, train.model.seq_len, packing, world_size)
        if found:
            return found
    return _most(longest_sample(train.model.seq_len, packing), packing)


def _of_a_usual_step(
    data: SyntheticData, seq_len: int, packing: Packing, world_size: int
) -> int | None:
    """Of a step that has each length as often as the set has it; None: none of them fits."""
    samples = min(packing.effective_batch_size, data.samples, MOST_SAMPLES)
    asked = SyntheticLengths(
        num_samples=samples,
        num_tokens=samples * data.mean_length,
        longest=data.longest(seq_len),
    )
    lengths = lengths_by_quantile(asked)
    packed = pack_step(lengths, world_size, packing.max_batch_len)
    sizes = (
        len(taken) * max(lengths[place] for place in taken)
        for micro_batch in packed.micro_batches
        for taken in micro_batch
        if taken
    )
    return max(sizes, default=None)


def _most(longest: int, packing: Packing) -> int:
    """One long sample and others of the shortest there are, each padded to it, as the budget and
    the step have them. The product of rows and longest is largest where the long one takes half of
    the budget, or at the first number of rows that leaves no room for one that is as long."""
    budget, samples = packing.max_batch_len, packing.effective_batch_size

    def positions(rows: int) -> int:
        return rows * min(longest, budget - SMALLEST_SAMPLE * (rows - 1))

    half = (budget + SMALLEST_SAMPLE) // (2 * SMALLEST_SAMPLE)
    full = 1 + (budget - longest) // SMALLEST_SAMPLE
    numbers = (half, half + 1, full, full + 1)
    return max(positions(min(max(rows, 1), samples)) for rows in numbers)
