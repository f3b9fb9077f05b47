"""What is one training step, and how long does each of a block of steps take?"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from broadgauge.probes.alignment import Alignment
from broadgauge.probes.devices import Device
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.training.communication import CommunicationSwitch, reduce_if_on
from broadgauge.probes.training.data import Batches, Text
from broadgauge.probes.training.model import Gpt
from broadgauge.probes.training.snapshot import Snapshot
from broadgauge.probes.trial import RefusedError
from broadgauge.specs.workload import GptModel, TrainWorkload

STATE_BYTES_PER_PARAMETER = 16
"""Weight, gradient and AdamW's two moments, float32 each."""


class Trainer:
    """Model, optimizer and data of one rank. One rank alone trains the plain model, without DDP,
    as a user would."""

    def __init__(
        self,
        workload: TrainWorkload,
        seed: int,
        identity: RankIdentity,
        device: Device,
        text: Text,
    ) -> None:
        self.workload, self.seed, self.identity, self.device = workload, seed, identity, device
        self.batches = Batches(text, workload.model.seq_len, device.torch_device)
        refuse_what_cannot_fit(workload.model, identity, device)
        torch.manual_seed(seed)
        with device.torch_device:
            self.plain_model = Gpt(workload.model)
        self.communication = CommunicationSwitch()
        self.model = self._distributed() if identity.world_size > 1 else self.plain_model
        self.optimizer = torch.optim.AdamW(
            self.plain_model.parameters(), lr=workload.learning_rate, fused=True
        )

    def step(self, index: int) -> Any:
        """Trains on the batch of step `index`. Returns this rank's loss, still on the device."""
        tokens_bt, next_tokens_bt = self.batches.draw(
            self.seed, index, self.workload.batch_per_rank, self.identity
        )
        self.optimizer.zero_grad()
        with torch.autocast(
            self.device.torch_device.type,
            dtype=torch.bfloat16,
            enabled=self.workload.dtype == "bfloat16",
        ):
            loss = self.model(tokens_bt, next_tokens_bt)
        # Divided, so that the sum of the ranks' gradients is their mean (communication.py).
        (loss / self.identity.world_size).backward()
        self.optimizer.step()
        return loss.detach()

    def timed_steps(self, indexes: range) -> tuple[tuple[float, ...], tuple[float | None, ...]]:
        """How long does each step take, and what are its losses?

        A step ends when the device has done its optimizer's work, and the next begins there: the
        times add up to the block's. The ranks begin together; the losses are read afterwards.
        """
        if self.identity.world_size > 1:
            Alignment(self.device)()
        clock = self.device.clock()
        clock.tick()
        losses = []
        for index in indexes:
            losses.append(self.step(index))
            clock.tick()
        seconds = clock.intervals_s()
        return seconds, tuple(map(_finite, torch.stack(losses).tolist()))

    @contextmanager
    def without_communication(self) -> Iterator[None]:
        """Steps in here are alone, their losses are wrong, and they leave no trace."""
        snapshot = Snapshot(self.plain_model, self.optimizer, self.device)
        self.communication.is_on = False
        yield
        self.communication.is_on = True
        snapshot.restore()

    def parameter_checksum(self) -> float | None:
        """The sum of all parameters: equal on ranks that trained together. None: not finite."""
        sums = [p.detach().sum(dtype=torch.float64) for p in self.plain_model.parameters()]
        total = float(torch.stack(sums).sum().item())
        return total if math.isfinite(total) else None

    @property
    def num_parameters(self) -> int:
        return sum(p.numel() for p in self.plain_model.parameters())

    @property
    def gradient_bytes(self) -> int:
        return sum(p.numel() * p.element_size() for p in self.plain_model.parameters())

    def _distributed(self) -> Any:
        cap_bytes = self.workload.bucket_cap_bytes
        model = DistributedDataParallel(
            self.plain_model,
            bucket_cap_mb=None if cap_bytes is None else cap_bytes / 2**20,
            gradient_as_bucket_view=True,
        )
        model.register_comm_hook(self.communication, reduce_if_on)
        return model


def refuse_what_cannot_fit(model: GptModel, identity: RankIdentity, device: Device) -> None:
    """Is there memory for weights, gradients and optimizer? On a host all its ranks share it."""
    sharers = identity.local_world_size if device.torch_device.type == "cpu" else 1
    needed_bytes = STATE_BYTES_PER_PARAMETER * model.parameters * sharers
    free_bytes = device.free_memory_bytes()
    if needed_bytes > free_bytes:
        raise RefusedError(
            f"out of memory: {model.parameters:,} parameters need {needed_bytes / 1e9:.2f} GB for "
            f"weights, gradients and AdamW of {sharers} rank(s); {free_bytes / 1e9:.2f} GB are free"
        )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
