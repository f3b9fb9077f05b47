"""Which rank takes which samples of a step, in which micro-batch?

As InstructLab does it: a step has `effective_batch_size` samples, taken in the order of the epoch's
shuffle (the epoch's last step has what is left), and no rank takes more than `max_batch_len` tokens
in a micro-batch. The step's samples are sorted, longest first. Each goes to the rank that has the
fewest tokens so far; where even that rank has no room, a micro-batch is full and the next begins.
So the number of micro-batches (the gradient accumulation) follows from the lengths, step by step,
and is the same on all ranks; in a step's last one a rank may have nothing. Samples longer than
`max_batch_len` are left out, and counted.

Source: instructlab-training 0.16.2, sampler.py (MaxTokensPerRankCollator, EpochSampler,
get_data_loader) and batch_packer.py. It searches for the longest run of samples that fits by
bisection and places each run again; since a longer run begins as the shorter one does, placing them
once and stopping at the first that does not fit is the same.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.messages.epochs import steps_per_epoch

MicroBatch = tuple[tuple[int, ...], ...]
"""By rank: the samples that it takes, as positions in the sequence of lengths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedStep:
    micro_batches: tuple[MicroBatch, ...]
    left_out: tuple[int, ...]
    """Too long for any rank."""


def pack_step(lengths: Sequence[int], num_ranks: int, max_batch_len: int) -> PackedStep:
    """Samples of these lengths, spread over ranks and micro-batches. Ties go by position, then to
    the lower rank."""
    by_length = sorted(range(len(lengths)), key=lambda each: -lengths[each])
    fitting = [each for each in by_length if lengths[each] <= max_batch_len]
    micro_batches = []
    begin = 0
    while begin < len(fitting):
        micro_batch, end = _fill(fitting, begin, lengths, (num_ranks, max_batch_len))
        micro_batches.append(micro_batch)
        begin = end
    too_long = by_length[: len(by_length) - len(fitting)]
    return PackedStep(micro_batches=tuple(micro_batches), left_out=tuple(too_long))


def _fill(
    fitting: Sequence[int], begin: int, lengths: Sequence[int], room: tuple[int, int]
) -> tuple[MicroBatch, int]:
    """One micro-batch, and where the next begins."""
    num_ranks, max_batch_len = room
    loads = [(0, rank) for rank in range(num_ranks)]  # a heap: its first has the fewest tokens
    taken: list[list[int]] = [[] for _ in range(num_ranks)]
    for place in range(begin, len(fitting)):
        load, rank = loads[0]
        load += lengths[fitting[place]]
        if load > max_batch_len:
            return tuple(map(tuple, taken)), place
        heapq.heapreplace(loads, (load, rank))
        taken[rank].append(fitting[place])
    return tuple(map(tuple, taken)), len(fitting)


def samples_of_step(num_samples: int, effective_batch_size: int, step: int) -> tuple[int, range]:
    """The epoch that the step is in, from 0, and which places of its shuffle the step reads."""
    epoch, number = divmod(step, steps_per_epoch(num_samples, effective_batch_size))
    begin = number * effective_batch_size
    return epoch, range(begin, min(begin + effective_batch_size, num_samples))
