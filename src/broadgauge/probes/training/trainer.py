"""What is one training step, and how long does each of a block of steps take?"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from broadgauge.messages.tasks import TrainTask
from broadgauge.messages.vocabulary import DATA_TYPE_BYTES
from broadgauge.probes.alignment import Alignment
from broadgauge.probes.devices import CpuDevice, Device
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.step_watch import StepWatch
from broadgauge.probes.training.adapters import frozen_checksum
from broadgauge.probes.training.attention import refuse_missing_flash
from broadgauge.probes.training.batch import Batch, idle_batch
from broadgauge.probes.training.building import build_model
from broadgauge.probes.training.communication import Communication
from broadgauge.probes.training.compiling import SHAPES_AHEAD, begin_compiling, compiled_s
from broadgauge.probes.training.data import Batches
from broadgauge.probes.training.packed_batches import PackedBatches
from broadgauge.probes.training.prepared import PreparedTokens
from broadgauge.probes.training.shards import whole_of
from broadgauge.probes.training.snapshot import Snapshot
from broadgauge.probes.training.strategy import split, spread
from broadgauge.probes.training.text import Text
from broadgauge.probes.training.types import torch_type
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
            self.batches = Batches(data, task.model, device.torch_device)
        else:
            assert isinstance(data, PreparedTokens), data
            seq_len = task.model.seq_len
            packed = PackedBatches(data, task.packing, seq_len, identity, device.torch_device)
            packed.refuse_empty_steps(seed, task.warm_up_steps + task.steps)
            self.batches = packed
        if task.attention == "flash":
            shape = task.model
            head_dim = shape.attention_width // shape.heads
            refuse_missing_flash(head_dim, torch_type(task.dtype), device.torch_device)
        self._compiled_before_s = begin_compiling(device.torch_device) if task.compile else None
        model = build_model(task)
        holder = CpuDevice() if task.cpu_offload else device
        refuse_what_cannot_fit(model, split(task, identity).shards, identity, holder)
        self.strategy = spread(model, task, identity, device)
        draw_weights(self.model, task.model, seed, device.torch_device)
        self._frozen_checksum = frozen_checksum(self.model)
        self.optimizer = torch.optim.AdamW(
            self._trained_parameters(), lr=task.learning_rate, fused=True
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
        self._seed_dropout(index)
        self.optimizer.zero_grad()
        losses = [
            self._add_gradients(batch, reduces=self._reduces(number, len(batches)))
            for number, batch in enumerate(batches, start=1)
        ]
        self.optimizer.step()
        return torch.stack(losses).sum()

    def compile_ahead(self) -> None:
        """Has torch compile for micro-batches of every shape, where packed ones differ: else a
        measured step would wait for it.

        No step is made: gradients are dropped, nothing is sent, and each step seeds what dropout
        draws in it.
        """
        if self.packed is None or not self.task.compile:
            return
        self.communication.is_on = False
        for rows, length in SHAPES_AHEAD:
            shape = (rows, min(length, self.task.model.seq_len))
            self._add_gradients(idle_batch(shape, self.device.torch_device), reduces=True)
        self.communication.is_on = True
        self.optimizer.zero_grad()

    def micro_batches(self, index: int) -> tuple[Batch, ...]:
        """What this rank reads in step `index`: as many on every rank."""
        if isinstance(self.batches, PackedBatches):
            return self.batches.micro_batches(self.seed, index)
        rows, count = self.task.batch_per_rank, self.task.accumulation
        return self.batches.micro_batches(self.seed, index, self.identity, rows=rows, count=count)

    def _seed_dropout(self, index: int) -> None:
        """A step that is repeated, after one without communication, is the same; ranks differ."""
        if self.task.adapters is not None and self.task.adapters.dropout_ratio:
            step = self.seed * 1_000_003 + index
            torch.manual_seed(step * self.identity.world_size + self.identity.rank)

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

    def timed_steps(self, indexes: range) -> tuple[tuple[float, ...], tuple[float | None, ...]]:
        """How long does each step take, and what are its losses?

        A step ends when the device has done its optimizer's work, and the next begins there: the
        times add up to the block's. The ranks begin together; the losses are read afterwards.
        """
        if self.packed is not None:
            self.packed.plan(self.seed, indexes)
        if self.identity.world_size > 1:
            Alignment(self.device)()
        clock = self.device.clock()
        clock.tick()
        losses = []
        with self._watched() as has_stepped:
            for index in indexes:
                losses.append(self.step(index))
                clock.tick()
                has_stepped()
        seconds = clock.intervals_s()
        return seconds, tuple(map(_finite, torch.stack(losses).tolist()))

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

    @property
    def compile_s(self) -> float | None:
        """What compiling took so far; None: nothing is compiled."""
        before_s = self._compiled_before_s
        return None if before_s is None else compiled_s() - before_s

    def _trained_parameters(self) -> list[Any]:
        return [p for p in self.model.parameters() if p.requires_grad]

    @property
    def num_parameters(self) -> int:
        """Frozen ones too."""
        return sum(p.numel() for p in self.model.parameters())

    @property
    def num_trained(self) -> int:
        return sum(p.numel() for p in self._trained_parameters())

    @property
    def gradient_bytes(self) -> int:
        """Of all gradients, in the type they are reduced in."""
        return self.num_trained * DATA_TYPE_BYTES[self.task.gradient_dtype]

    def is_frozen_unchanged(self) -> bool | None:
        """Are the frozen weights that this rank holds those that were drawn? None: it has none."""
        if self.task.adapters is None:
            return None
        return frozen_checksum(self.model) == self._frozen_checksum


def state_bytes(model: Any) -> int:
    """What do weights, gradients and the optimizer need? Frozen parameters have weights alone."""
    return sum(
        p.numel() * (p.element_size() + TRAINED_BYTES * p.requires_grad) for p in model.parameters()
    )


def refuse_what_cannot_fit(model: Any, shards: int, identity: RankIdentity, holder: Device) -> None:
    """Is there memory for the model's states, each rank's part of `shards`? `holder`: where they
    are; on a host all its ranks share it."""
    sharers = identity.local_world_size if holder.torch_device.type == "cpu" else 1
    needed_bytes = state_bytes(model) * sharers / shards
    free_bytes = holder.free_memory_bytes()
    if needed_bytes > free_bytes:
        parameters = sum(p.numel() for p in model.parameters())
        raise RefusedError(
            f"out of memory: {parameters:,} parameters need {needed_bytes / 1e9:.2f} GB for "
            f"weights, gradients and AdamW of {sharers} rank(s); {free_bytes / 1e9:.2f} GB are free"
        )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
