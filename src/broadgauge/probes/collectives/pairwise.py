"""How long does a message take from each end to each other, one ordered pair at a time?

An iteration, on the two ranks of the pair alone:

    receiver: "ready" ──▶ sender        outside of the timed part
    sender:   message ──▶ receiver      timed by the sender's clock alone, from the first byte given
    receiver: "have it" ──▶ sender      to the acknowledgement taken

No clocks are compared. The time holds one way of the message and one way of a 4-byte
acknowledgement: for large messages it is the transfer, for those of a few bytes a round trip.
All other ranks wait meanwhile at a mark, outside of the network.
"""

import sys
from typing import Any

import torch
import torch.distributed as dist

from broadgauge.messages.pair_order import RankPair, ordered_pairs
from broadgauge.messages.rank import CollectiveBlock
from broadgauge.messages.tasks import CollectivesTask
from broadgauge.messages.vocabulary import DATA_TYPE_BYTES, CollectiveOp, DataType, Phase
from broadgauge.probes.alignment import Alignment
from broadgauge.probes.collectives import patterns
from broadgauge.probes.collectives.iterations import affordable_iterations
from broadgauge.probes.collectives.operation import TORCH_TYPES
from broadgauge.probes.collectives.sizes import even_size_bytes
from broadgauge.probes.devices import Device
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.trial import Trial
from broadgauge.wording.amounts import show_size

OP: CollectiveOp = "send_recv"


def measure_pairs(trial: Trial, task: CollectivesTask, device: Device) -> None:
    """Every data type and size, the smallest first, over every pair."""
    pairs = ordered_pairs(trial.layout.nodes, trial.layout.ranks_per_node)
    trial.begin_phase(Phase.WARM_UP, "all ranks")
    Alignment(device)()  # NCCL's communicator is made by all ranks together
    device.synchronize()
    for dtype in task.dtypes:
        sizes = (
            even_size_bytes(OP, trial.identity.world_size, wanted, DATA_TYPE_BYTES[dtype])
            for wanted in sorted(task.sizes_bytes)
        )
        for size_bytes in dict.fromkeys(sizes):
            for pair in pairs:
                _measure_pair(trial, (task, device), pair, (dtype, size_bytes))


def _measure_pair(
    trial: Trial,
    how: tuple[CollectivesTask, Device],
    pair: RankPair,
    what: tuple[DataType, int],
) -> None:
    task, device = how
    dtype, size_bytes = what
    name = f"{pair[0]}-{pair[1]}"
    detail, label = f"{name} {dtype} {show_size(size_bytes)}", f"{OP}/{dtype}/{size_bytes}/{name}"
    way = None
    if trial.identity.rank in pair:
        way = OneWay(pair, trial.identity, (dtype, size_bytes), device)
    trial.begin_phase(Phase.WARM_UP, detail)
    iterations = 0 if way is None else _warm_up(way, task)
    trial.begin_phase(Phase.MEASURE, detail)
    with trial.between_marks(label):
        seconds = () if way is None else way.time_iterations(iterations)
    trial.say(
        CollectiveBlock(
            trial_id=trial.trial_id,
            label=label,
            op=OP,
            dtype=dtype,
            size_bytes=size_bytes,
            seconds=seconds,
            is_correct=way.check() if way is not None and task.check else None,
            from_rank=pair[0],
            to_rank=pair[1],
        )
    )


class OneWay:
    """Messages from one rank of a pair to the other; made on these two ranks."""

    def __init__(
        self,
        pair: RankPair,
        identity: RankIdentity,
        what: tuple[DataType, int],
        device: Device,
    ) -> None:
        self.sender, receiver = pair
        self.ranks, self.device = identity.world_size, device
        self.is_sender = identity.rank == self.sender
        self.peer = receiver if self.is_sender else self.sender
        self.dtype, size_bytes = what
        elements, here = size_bytes // DATA_TYPE_BYTES[self.dtype], device.torch_device
        self.message = torch.zeros(elements, dtype=TORCH_TYPES[self.dtype], device=here)
        self.token = torch.zeros(1, device=here)

    def time_iterations(self, iterations: int) -> tuple[float, ...]:
        """How long was each message under way, its acknowledgement with it? Empty on the receiver.

        Returns when the device has done its part.
        """
        clock = self.device.clock()
        for _ in range(iterations):
            if self.is_sender:
                self._take(self.token)
                clock.tick()
                self._give(self.message)
                self._take(self.token)
                clock.tick()
            else:
                self._give(self.token)
                self._take(self.message)
                self._give(self.token)
        self.device.synchronize()
        return clock.intervals_s()[::2]

    def tell(self, number: int) -> int:
        """What the sender says, on both."""
        self.token.fill_(number)
        if self.is_sender:
            self._give(self.token)
        else:
            self._take(self.token)
        return int(self.token.item())

    def check(self) -> bool | None:
        """Does the message arrive as it was sent? Known to the receiver alone; None elsewhere."""
        k = patterns.period(OP, self.ranks, self.dtype)
        assert k is not None
        table = patterns.contribution(self.sender, self.ranks, k, self.message.device)
        if self.is_sender:
            patterns.fill(self.message, table, 0)
        else:
            self.message.fill_(-1)
        self.time_iterations(1)
        if self.is_sender:
            return None
        wrong = patterns.first_difference(self.message, table, 0)
        if wrong is not None:
            sys.stderr.write(f"{OP} {self.dtype}: element {wrong} of the message is wrong\n")
        return wrong is None

    def _give(self, tensor: Any) -> None:
        _move(dist.P2POp(dist.isend, tensor, self.peer))

    def _take(self, tensor: Any) -> None:
        _move(dist.P2POp(dist.irecv, tensor, self.peer))


def _warm_up(way: OneWay, task: CollectivesTask) -> int:
    """How often is it measured? The sender says, by its warm-up; the same number on both."""
    seconds = way.time_iterations(task.warm_up_iterations)
    wanted = 0
    if way.is_sender:
        counted_s = seconds[1:] or seconds
        wanted = affordable_iterations(task, sum(counted_s) / len(counted_s))
    return way.tell(wanted)


def _move(half: Any) -> None:
    """As a batch of one: NCCL then uses the group's communicator instead of one for each pair."""
    for work in dist.batch_isend_irecv([half]):
        work.wait()
