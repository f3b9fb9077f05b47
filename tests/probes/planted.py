"""A worker with a fault planted in it: `python planted.py FAULT`, in the place of the worker."""

import os
import sys
import time
from dataclasses import replace

import torch
import torch.distributed as dist

from broadgauge.probes import worker
from broadgauge.probes.collectives import operation, pairwise, probe
from broadgauge.probes.training import ddp, shards, trainer
from broadgauge.probes.training import probe as training_probe

DELAY_S = 0.023


def corrupt_all_reduce() -> None:
    """One element of each result is one too large."""
    all_reduce = dist.all_reduce

    def wrong(tensor, *arguments, **keywords):
        work = all_reduce(tensor, *arguments, **keywords)
        if tensor.numel() > 5:
            tensor[5] += 1
        return work

    operation.dist.all_reduce = wrong


def delay_messages_to_rank_2() -> None:
    """Each takes a tenth of a second more."""
    give = pairwise.OneWay._give

    def late(self, tensor):
        if self.peer == 2 and tensor is self.message:
            time.sleep(0.1)
        give(self, tensor)

    pairwise.OneWay._give = late


def delay_and_corrupt_messages_to_rank_2() -> None:
    delay_messages_to_rank_2()
    corrupt_messages_to_rank_2()


def corrupt_messages_to_rank_2() -> None:
    """One element of each is lost on the way."""
    give = pairwise.OneWay._give

    def wrong(self, tensor):
        if self.peer == 2 and tensor is self.message:
            tensor[77] = 0
        give(self, tensor)

    pairwise.OneWay._give = wrong


def compare_with_raw_calls() -> None:
    """After each measurement, the same buffer by bare calls: one pair of events around all."""
    measure = probe.time_iterations

    def measure_both(call, iterations, align, device):
        seconds = measure(call, iterations, align, device)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(iterations):
            dist.all_reduce(call.given)
        end.record()
        end.synchronize()
        raw_s = begin.elapsed_time(end) / 1e3 / iterations
        mean_s = sum(seconds) / iterations
        sys.stderr.write(f"raw {iterations} {raw_s} measured {mean_s}\n")
        return seconds

    probe.time_iterations = measure_both


def sleep_in_every_second_step() -> None:
    step = trainer.Trainer.step

    def delayed(self, index):
        if index % 2:
            time.sleep(DELAY_S)
        return step(self, index)

    trainer.Trainer.step = delayed


def sleep_when_communicating() -> None:
    step = trainer.Trainer.step

    def delayed(self, index):
        if self.communication.is_on:
            time.sleep(DELAY_S)
        return step(self, index)

    trainer.Trainer.step = delayed


def train_apart() -> None:
    """This rank's weights are not those of the others at the end."""
    checksum = trainer.Trainer.parameter_checksum
    trainer.Trainer.parameter_checksum = lambda self: checksum(self) * 1.001


def leave_before_the_first_step() -> None:
    def leave(*_):
        os._exit(7)

    trainer.Trainer.timed_steps = leave


def raise_before_the_first_step() -> None:
    def fail(*_):
        raise ValueError("planted")

    trainer.Trainer.timed_steps = fail


def use_plain_ddp() -> None:
    """DDP's own all-reduce and the loss as it is: what the switchable hook must equal."""

    def register_nothing(self, *_):
        return None

    def plain_step(self, index):
        tokens, next_tokens = self.batches.draw(
            self.seed, index, self.task.batch_per_rank, self.identity
        )
        self.optimizer.zero_grad()
        loss = self.model(tokens, next_tokens)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    ddp.DistributedDataParallel.register_comm_hook = register_nothing
    trainer.Trainer.step = plain_step


def tell_gradients() -> None:
    """After each step, how large the gradients were that the optimizer saw: AdamW's own steps are
    the same for any multiple of them."""
    step = trainer.Trainer.step

    def telling(self, index):
        loss = step(self, index)
        squares = [shards.whole_of(p.grad).square().sum() for p in self.model.parameters()]
        sys.stderr.write(f"gradients {sum(squares).sqrt().item()}\n")
        return loss

    trainer.Trainer.step = telling


def read_another_set() -> None:
    """What lies under the same path on another machine."""
    read = training_probe.read_data

    def other(source, vocabulary):
        return read(replace(source, path=f"{source.path}-elsewhere"), vocabulary)

    training_probe.read_data = other


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    sys.exit(worker.main())
