"""Which samples does each rank see in each step, where batches are made by tokens?

A sample is a row of its micro-batch, and rows are padded to the longest of the rank's: causal
attention sees no padding, and no row sees another, so a step's loss and gradients are those of its
samples one by one. The padding is computed, and counted as nothing but `num_positions`. A step's
samples are packed in the order of their lengths, which keeps rows of one micro-batch alike.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from broadgauge.messages.training_data import TokenBudget
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.training.batch import IGNORED, Batch, idle_batch
from broadgauge.probes.training.packing import pack_step, samples_of_step
from broadgauge.probes.training.prepared import PreparedTokens, padded
from broadgauge.probes.training.step_shares import ShareSize
from broadgauge.probes.trial import RefusedError

NO_SAMPLE = (1, 2)
"""Rows and tokens that a rank without samples computes, for its collectives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepShare:
    """One rank's part of a step."""

    micro_batches: tuple[tuple[int, ...], ...]
    """Numbers of samples in the set."""
    num_predicted: int
    """Tokens that the step predicts, on all ranks."""
    size: ShareSize


class PackedBatches:
    """The set's samples by a budget of tokens. Who takes which is decided for a block of steps
    before its time is taken, as a data loader's worker does it beside the training."""

    def __init__(
        self,
        data: PreparedTokens,
        budget: TokenBudget,
        seq_len: int,
        identity: RankIdentity,
        device: Any,
    ) -> None:
        self._data, self._budget = data, budget
        self._identity, self._device = identity, device
        self._lengths = data.lengths
        self._shares: dict[tuple[int, int], StepShare] = {}
        self._sizes: dict[tuple[int, int], ShareSize] = {}
        self._order: tuple[tuple[int, int], Any] | None = None
        self._refuse_what_does_not_fit(seq_len)

    @property
    def num_left_out(self) -> int:
        """Samples of the set that are longer than a rank's budget."""
        return int((self._lengths > self._budget.max_batch_len).sum())

    @property
    def epoch_samples(self) -> int:
        return len(self._lengths)

    @property
    def taken_samples(self) -> int:
        """Of an epoch, those that are not left out."""
        return self.epoch_samples - self.num_left_out

    @property
    def description(self) -> str:
        left_out = self.num_left_out
        words = f"; {left_out:,} of them left out, longer than `max_batch_len`" if left_out else ""
        return self._data.description + words

    def refuse_empty_steps(self, seed: int, num_steps: int) -> None:
        """Has each of the first steps a sample that fits the budget? Raises RefusedError."""
        for step in range(num_steps if self.num_left_out else 0):
            self._refuse_empty(seed, step)

    def plan(self, seed: int, steps: Iterable[int]) -> None:
        """Decides these steps, and forgets others."""
        self._shares = {(seed, step): self._share(seed, step) for step in steps}
        self._sizes |= {key: share.size for key, share in self._shares.items()}

    def size(self, seed: int, step: int) -> ShareSize:
        """Of a step that was planned before, too."""
        key = (seed, step)
        return self._sizes[key] if key in self._sizes else self.share(seed, step).size

    def share(self, seed: int, step: int) -> StepShare:
        found = self._shares.get((seed, step))
        return self._share(seed, step) if found is None else found

    def micro_batches(self, seed: int, step: int) -> tuple[Batch, ...]:
        """What this rank reads in one step."""
        share = self.share(seed, step)
        return tuple(self._batch(taken, share.num_predicted) for taken in share.micro_batches)

    def _batch(self, taken: tuple[int, ...], num_predicted: int) -> Batch:
        if not taken:
            return idle_batch(NO_SAMPLE, self._device)
        samples = [self._data.sample(number) for number in taken]
        following = [self._data.following(number, IGNORED) for number in taken]
        num_predicted_here = int(self._data.num_predicted[list(taken)].sum())
        return Batch(
            tokens=padded(samples, 0).to(self._device, non_blocking=True),
            next_tokens=padded(following, IGNORED).to(self._device, non_blocking=True),
            divisor=num_predicted / num_predicted_here,
            num_samples=len(samples),
            num_tokens=sum(map(len, samples)),
        )

    def _share(self, seed: int, step: int) -> StepShare:
        self._refuse_empty(seed, step)
        numbers = self._samples_of(seed, step)
        lengths = self._lengths[numbers].tolist()
        packed = pack_step(lengths, self._identity.world_size, self._budget.max_batch_len)
        own = [batch[self._identity.rank] for batch in packed.micro_batches]
        taken = [[lengths[place] for place in places_of_rank] for places_of_rank in own]
        fits = self._lengths[numbers] <= self._budget.max_batch_len
        flat = [length for each in taken for length in each]
        return StepShare(
            micro_batches=tuple(tuple(numbers[list(each)].tolist()) for each in own),
            num_predicted=int(self._data.num_predicted[numbers[fits]].sum()),
            size=ShareSize(
                num_micro_batches=len(own),
                num_samples=len(flat),
                num_tokens=sum(flat),
                num_token_pairs=sum(length**2 for length in flat),
                num_positions=sum(
                    len(each) * max(each) if each else math.prod(NO_SAMPLE) for each in taken
                ),
            ),
        )

    def _refuse_empty(self, seed: int, step: int) -> None:
        lengths, budget = self._lengths[self._samples_of(seed, step)], self._budget.max_batch_len
        if int(lengths.min()) > budget:
            raise RefusedError(
                f"all {len(lengths)} samples of step {step} are longer than `max_batch_len`, "
                f"{budget} tokens"
            )

    def _samples_of(self, seed: int, step: int) -> Any:
        """int64[samples of the step]: their numbers in the set."""
        size = self._budget.effective_batch_size
        epoch, places = samples_of_step(self.epoch_samples, size, step)
        return self._epoch_order(seed, epoch)[places.start : places.stop]

    def _epoch_order(self, seed: int, epoch: int) -> Any:
        """int64[num_samples]: the epoch's shuffle, the same on all ranks. Source: InstructLab's
        EpochSampler seeds it with seed + epoch, too."""
        if self._order is None or self._order[0] != (seed, epoch):
            generator = torch.Generator().manual_seed(seed + epoch)
            order = torch.randperm(self.epoch_samples, generator=generator)
            self._order = ((seed, epoch), order)
        return self._order[1]

    def _refuse_what_does_not_fit(self, seq_len: int) -> None:
        longest, budget = int(self._lengths.max()), self._budget.max_batch_len
        longest_taken = self._longest_within(budget)
        if not longest_taken:
            raise RefusedError(
                f"no sample fits `max_batch_len`, {budget} tokens: the shortest has "
                f"{int(self._lengths.min())}, the longest {longest}"
            )
        if longest_taken > seq_len:
            raise RefusedError(
                f"the longest sample has {longest_taken} tokens, and the model takes {seq_len} "
                f"(`seq_len`): model: {{seq_len: {longest_taken}}}, or broadgauge data prepare "
                f"--max-length {seq_len}"
            )

    def _longest_within(self, budget: int) -> int:
        """0: every sample is longer."""
        fitting = self._lengths[self._lengths <= budget]
        return int(fitting.max()) if len(fitting) else 0
