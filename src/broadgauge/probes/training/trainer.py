"""What is one training step, and how long does each of a block of steps take?"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch

from broadgauge.messages.model_shape import adapted_flops_per_token
from broadgauge.messages.tasks import TrainTask
from broadgauge.messages.vocabulary import DATA_TYPE_BYTES
from broadgauge.probes.alignment import Alignment
from broadgauge.probes.devices import Device
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.step_watch import StepWatch
from broadgauge.probes.training.adapters import frozen_checksum
from broadgauge.probes.training.batch import Batch
from broadgauge.probes.training.building import build_model
from broadgauge.probes.training.communication import Communication
from broadgauge.probes.training.compiling import begin_compiling
from broadgauge.probes.training.data import Batches
from broadgauge.probes.training.packed_batches import PackedBatches
from broadgauge.probes.training.prepared import PreparedTokens
from broadgauge.probes.training.shards import whole_of
from broadgauge.probes.training.snapshot import Snapshot
from broadgauge.probes.training.strategy import spread, state_shards
from broadgauge.probes.training.text import Text
from broadgauge.probes.training.timed_steps import Saver, StepMoments, TimedSteps
from broadgauge.probes.training.weights import draw_weights
from broadgauge.probes.trial import RefusedError

TRAINED_BYTES = 12
"""Of a parameter that is trained, on top: its gradient and AdamW's two moments, float32 each."""


class Trainer:
    """Model, optimizer and data of one rank."""

    def __init__(
        self,
        task: TrainTask,
        seed: int,
        identity: RankIdentity,
        device: Device,
        data: Text | PreparedTokens,
    ) -> None:
        self.task, self.seed, self.identity, self.device = task, seed, identity, device
        self.watch: StepWatch | None = None
        """Told of each step; None: nobody looks whether they still come."""
        self.batches: Batches | PackedBatches
        """By tokens; or all sequences are as long."""
        if task.packing is None:
            self.batches = Batches(
                data, task.model.seq_len, device.torch_device, task.model.vocabulary
            )
        else:
            assert isinstance(data, PreparedTokens), data
            self.batches = PackedBatches(
                data, task.packing, task.model.seq_len, identity, device.torch_device
            )
        if task.compile:
            begin_compiling(device.torch_device)
        # Without memory first: no rank holds the whole of a model that is sharded.
        model = build_model(task)
        if not task.cpu_offload or device.torch_device.type == "cpu":
            refuse_what_cannot_fit(model, state_shards(task, identity), identity, device)
        self.strategy = spread(model, task, identity, device)
        draw_weights(self.model, task.model, seed, device.torch_device)
        self._frozen_checksum = frozen_checksum(self.model)
        self.optimizer = torch.optim.AdamW(
            self.trained_parameters(), lr=task.learning_rate, fused=True
        )

    @property
    def model(self) -> Any:
        return self.strategy.model

    @property
    def packed(self) -> PackedBatches | None:
        """None: all sequences are as long."""
        return self.batches if isinstance(self.batches, PackedBatches) else None

    @property
    def communication(self) -> Communication:
        return self.strategy.communication

    def step(self, index: int) -> Any:
        """Trains on the micro-batches of step `index`. Returns this rank's loss, still on the
        device: over ranks, its mean is that of all tokens that the step predicts."""
        batches = self.micro_batches(index)
        self.communication.begin_step()
        self._prepare(index)
        self.optimizer.zero_grad()
        losses = [
            self._add_gradients(batch, reduces=self._reduces(number, len(batches)))
            for number, batch in enumerate(batches, start=1)
        ]
        self.optimizer.step()
        return torch.stack(losses).sum()

    def _prepare(self, index: int) -> None:
        """Whatever depends on the step's index, so that a step that is repeated is the same."""
        if self.task.learning_rate_warm_up_steps:
            risen = min(1.0, (index + 1) / self.task.learning_rate_warm_up_steps)
            for group in self.optimizer.param_groups:
                group["lr"] = self.task.learning_rate * risen
        if self.task.adapters is not None and self.task.adapters.dropout_ratio:
            torch.manual_seed(
                (self.seed * 1_000_003 + index) * self.identity.world_size + self.identity.rank
            )

    def micro_batches(self, index: int) -> tuple[Batch, ...]:
        """What this rank reads in step `index`."""
        if isinstance(self.batches, PackedBatches):
            return self.batches.micro_batches(self.seed, index)
        task = self.task
        return self.batches.micro_batches(
            self.seed, index, self.identity, rows=task.batch_per_rank, count=task.accumulation
        )

    def _reduces(self, number: int, count: int) -> bool:
        """Are the ranks' gradients reduced with this micro-batch of the step, counted from 1?"""
        return number == count or self.task.reduce_each_micro_batch

    def _add_gradients(self, batch: Batch, *, reduces: bool) -> Any:
        """Forward and backward of one micro-batch. Returns its part of the step's loss, so that
        ranks' mean is the step's."""
        with nullcontext() if reduces else self.strategy.without_reduction():
            with self.strategy.arithmetic():
                loss = self.model(batch.tokens, batch.next_tokens)
            # Divided, so that the sum over ranks and micro-batches is the mean.
            (loss / batch.divisor).backward()
        return loss.detach() * (self.identity.world_size / batch.divisor)

    def timed_steps(
        self,
        indexes: range,
        *,
        after_step: Callable[[], object] | None = None,
        saver: Saver | None = None,
    ) -> TimedSteps:
        """How long does each step take, and what are its losses?

        A step ends when the device has done its optimizer's work, and the next begins there, or
        after the gap in which `saver` saved: times and gaps add up to the block's. The ranks begin
        together; the losses are read afterwards. What `after_step` takes is the next step's time.
        """
        if self.packed is not None:
            self.packed.plan(self.seed, indexes)
        self._align()
        clock = self.device.clock()
        clock.tick()
        losses, moments = [], StepMoments()
        with self._watched() as has_stepped:
            for index in indexes:
                losses.append(self.step(index))
                clock.tick()
                if after_step is not None:
                    after_step()
                has_stepped()
                if saver is not None and saver.is_due(index):
                    self._save(saver, index)
                    clock.tick()
                    moments.saved(after=len(losses))
                    has_stepped()
        return moments.timed(clock.intervals_s(), torch.stack(losses).tolist())

    def _align(self) -> None:
        if self.identity.world_size > 1:
            Alignment(self.device)()

    def _save(self, saver: Saver, index: int) -> None:
        """All ranks wait for the slowest here, where it is the save's time: they would in the next
        step's first collective, where it would be the network's."""
        if self.watch is not None:
            self.watch.pause()
        saver.save(index)
        self._align()
        self.device.synchronize()

    @contextmanager
    def _watched(self) -> Iterator[Callable[[], None]]:
        if self.watch is None:
            yield lambda: None
            return
        with self.watch.steps() as has_stepped:
            yield has_stepped

    @contextmanager
    def without_communication(self) -> Iterator[None]:
        """Steps in here are alone, their losses are wrong, and they leave no trace."""
        snapshot = Snapshot(self.model, self.optimizer, self.device)
        self.communication.is_on = False
        yield
        self.communication.is_on = True
        snapshot.restore()

    def parameter_checksum(self) -> float | None:
        """The sum of all parameters: equal on ranks that trained together. None: not finite.

        Of sharded parameters every rank gathers the whole, one by one: the sum is that of one
        process's weights, and differs between ranks that do not see the same shards.
        """
        sums = [whole_of(p).sum(dtype=torch.float64) for p in self.model.parameters()]
        total = float(torch.stack(sums).sum().item())
        return total if math.isfinite(total) else None

    def trained_parameters(self) -> list[Any]:
        return [p for p in self.model.parameters() if p.requires_grad]

    @property
    def num_parameters(self) -> int:
        """Frozen ones too."""
        return sum(p.numel() for p in self.model.parameters())

    @property
    def num_trained(self) -> int:
        return sum(p.numel() for p in self.trained_parameters())

    @property
    def gradient_bytes(self) -> int:
        """Of all gradients, in the type they are reduced in."""
        return self.num_trained * DATA_TYPE_BYTES[self.task.gradient_dtype]

    @property
    def flops_per_token(self) -> float:
        """Model FLOPs: what is computed again for want of memory is none."""
        return self.flops_per_token_of(self.task.model.seq_len)

    def flops_per_token_of(self, seq_len: int) -> float:
        """The same in a sequence of so many tokens."""
        shape, adapters = replace(self.task.model, seq_len=seq_len), self.task.adapters
        return (
            shape.flops_per_token if adapters is None else adapted_flops_per_token(shape, adapters)
        )

    def is_frozen_unchanged(self) -> bool:
        """Are the frozen weights that this rank holds those that were drawn?"""
        return frozen_checksum(self.model) == self._frozen_checksum


def state_bytes(model: Any) -> int:
    """What do weights, gradients and the optimizer need? Frozen parameters have weights alone."""
    return sum(
        p.numel() * (p.element_size() + TRAINED_BYTES * p.requires_grad) for p in model.parameters()
    )


def refuse_what_cannot_fit(model: Any, shards: int, identity: RankIdentity, device: Device) -> None:
    """Is there memory for the model's states, each rank's part of `shards`? On a host all its ranks
    share it."""
    sharers = identity.local_world_size if device.torch_device.type == "cpu" else 1
    needed_bytes = state_bytes(model) * sharers / shards
    free_bytes = device.free_memory_bytes()
    if needed_bytes > free_bytes:
        parameters = sum(p.numel() for p in model.parameters())
        raise RefusedError(
            f"out of memory: {parameters:,} parameters need {needed_bytes / 1e9:.2f} GB for "
            f"weights, gradients and AdamW of {sharers} rank(s); {free_bytes / 1e9:.2f} GB are free"
        )
