"""How long does a step wait for its batch? Told by this rank's clock alone, without other ranks."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torch.utils.data import DataLoader

from broadgauge.probes.storage.process_io import io_since, process_io
from broadgauge.probes.storage.stopwatch import Stopwatch, Timed

Batch = Any
"""int64[batch] and uint8[batch, sample_bytes]: numbers and payloads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch(Timed):
    """One pass over this rank's samples.

    Parts: `start`: the data set is opened and its workers are started, until the first batch is
    there. `wait`: for all further ones. `compute`: the steps. `end`: of the workers."""

    waits_s: tuple[float, ...]
    """Of each step, the first one included; they add up to `start` and `wait`."""
    samples: int
    payload_bytes: int
    device_bytes: int | None
    """Read from block devices by this rank and its workers; None: the kernel does not say, or not
    of workers that nobody knows."""

    @property
    def stall_s(self) -> float:
        return sum(self.waits_s)


def read_epoch(make: Callable[[], "DataLoader[Any]"], step: Callable[[Batch], None]) -> Epoch:
    """`make`: a loader of this epoch alone; `step`: what is computed with a batch. Raises whatever
    a worker raises."""
    before = process_io()
    waits_s: list[float] = []
    samples = payload_bytes = 0
    watch = Stopwatch()
    loader = make()
    batches = iter(loader)
    for batch in batches:
        waits_s.append(watch.ends("wait" if waits_s else "start"))
        numbers, payloads = batch
        samples += len(numbers)
        payload_bytes += payloads.numel()
        step(batch)
        watch.ends("compute")
    of_workers = _workers_device_bytes(batches, loader.num_workers)
    own = io_since(before)  # while they are there: what they read is ours, too, once they ended
    del loader, batches  # its workers end with it
    watch.ends("end")
    device_bytes = None
    if own is not None and of_workers is not None:
        device_bytes = own.device_read_bytes + of_workers
    return Epoch(
        parts_s=watch.parts_s,
        operations_count=None,
        waits_s=tuple(waits_s),
        samples=samples,
        payload_bytes=payload_bytes,
        device_bytes=device_bytes,
    )


def sleeping(step_time_s: float) -> Callable[[Batch], None]:
    """A step that leaves its cores to the workers, as one does that waits for its GPU."""

    def step(batch: Batch) -> None:
        del batch
        if step_time_s:
            time.sleep(step_time_s)

    return step


def _workers_device_bytes(batches: Iterator[Batch], num_workers: int) -> int | None:
    """They have read nothing before this epoch, and are still there. torch has no public name for
    them: None where it gives them another."""
    workers = getattr(batches, "_workers", ()) if num_workers else ()
    counted = [process_io(worker.pid) for worker in workers]
    if len(counted) < num_workers:
        return None
    total = 0
    for each in counted:
        if each is None:
            return None
        total += each.device_read_bytes
    return total
