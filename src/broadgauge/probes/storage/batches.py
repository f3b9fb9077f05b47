"""How long does a training wait for its batches, and does each sample come exactly once?

Ranks meet before and after an epoch, and never in it: a rank that is late is no wait of another's.
"""

import gc
from pathlib import Path
from typing import Any

import torch.distributed as dist

from broadgauge.messages.storage import BatchesPhase, FileAccess
from broadgauge.messages.vocabulary import Phase
from broadgauge.probes.storage.batch_datasets import loader_of, readers_of
from broadgauge.probes.storage.batch_epoch import Batch, Epoch, read_epoch, sleeping
from broadgauge.probes.storage.batch_files import (
    payload_of,
    refuse_missing_package,
    write_samples,
)
from broadgauge.probes.storage.cache_proof import SeenRead, proof_of
from broadgauge.probes.storage.file_systems import file_system_of
from broadgauge.probes.storage.held_files import held_ratio
from broadgauge.probes.storage.page_cache import cached_of_files, fill_cache, sync_file_system
from broadgauge.probes.storage.shared_files import CacheSharers, host_group, shared_folder
from broadgauge.probes.trial import RefusedError, Trial


class BatchesMeasurement:
    """Epochs of one trial, over files that one rank writes, or the first one of each node."""

    def __init__(self, trial: Trial, phase: BatchesPhase, own: Path) -> None:
        """`own`: this rank's folder, empty. Raises RefusedError where a package is missing."""
        refuse_missing_package(phase.source)
        self.trial, self.phase = trial, phase
        self.group = host_group(trial)
        self.shared = shared_folder(own, trial.identity, self.group)
        self.folder = self.shared.path / "samples"
        self.file_system = file_system_of(own)

    def measure(self, repetitions: int) -> None:
        """The first epoch's samples are compared with what was written. Raises OSError, and
        RefusedError where they are not that."""
        if self.shared.is_written_here:
            self.folder.mkdir()
            readers = readers_of(self.phase, self.trial.identity.world_size)
            write_samples(self.folder, self.phase, readers)
            sync_file_system(self.folder)
        dist.barrier(self.group)
        self.sharers = CacheSharers(self.folder, self.group)
        self.files = _files_of(self.folder) if self.sharers.is_first else ()
        total_bytes = sum(path.stat().st_size for path in self.files)
        self.files_bytes = self.sharers.told_by_first(total_bytes)
        self.held_ratio = self.sharers.told_by_first(held_ratio(self.files))
        self._compare()
        self.trial.begin_phase(Phase.MEASURE)
        for number in range(repetitions):
            self._read(number)
        dist.barrier(self.group)  # whoever wrote the files removes them now

    def _compare(self) -> None:
        numbers: list[int] = []
        wrong: list[int] = []

        def step(batch: Batch) -> None:
            for number, payload in zip(batch[0].tolist(), batch[1], strict=True):
                numbers.append(number)
                if payload.numpy().tobytes() != payload_of(number, self.phase.sample_bytes):
                    wrong.append(number)

        read_epoch(lambda: self._loader(0), step)
        told: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(told, (numbers, wrong), group=self.group)
        refuse_other_samples(
            sorted(number for found, _ in told for number in found),
            sorted(number for _, found in told for number in found),
            self.phase.samples,
        )

    def _read(self, number: int) -> None:
        cached_bytes = self._cached_before()
        label = f"read/{number}"
        step = sleeping(self.phase.step_time_s)
        with self.trial.between_marks(label):
            epoch = read_epoch(lambda: self._loader(number + 1), step)
        self._say(label, epoch, cached_bytes)

    def _loader(self, epoch: int) -> Any:
        seed = self.trial.command.seed
        return loader_of(self.folder, self.phase, self.trial.identity, epoch=epoch, seed=seed)

    def _cached_before(self) -> int | None:
        """Of all files, in the page cache that this rank reads from. Files that are still mapped
        are not dropped: whatever the last epoch had is gone before."""
        gc.collect()
        dist.barrier(self.group)
        if self.phase.cache == "warm":
            fill_cache(self.files)
        cached = cached_of_files(self.files, is_let_go=self.phase.cache == "cold")
        return self.sharers.told_by_first(cached)

    def _say(self, label: str, epoch: Epoch, cached_bytes: int | None) -> None:
        seen = self._seen(epoch, cached_bytes)
        proof = proof_of(seen, self.file_system)
        is_told_by_other = cached_bytes is not None and not self.sharers.is_first
        self.trial.say(
            FileAccess(
                trial_id=self.trial.trial_id,
                label=label,
                access="read",
                size_bytes=epoch.payload_bytes,
                operations_count=epoch.operations_count,
                seconds=epoch.seconds,
                parts_s=epoch.parts_s,
                stall_s=epoch.stall_s,
                waits_s=epoch.waits_s,
                device_bytes=epoch.device_bytes,
                cached_before_bytes=0 if is_told_by_other else cached_bytes,
                cache=proof.state,
                evidence=proof.evidence,
                file_system=None if self.file_system is None else self.file_system.kind,
                held_ratio=self.held_ratio,
            )
        )

    def _seen(self, epoch: Epoch, cached_bytes: int | None) -> SeenRead:
        """By all ranks that share a page cache."""
        needed_bytes = -(-self.files_bytes * epoch.samples // self.phase.samples)
        whole = SeenRead(
            size_bytes=self.files_bytes,
            device_bytes=epoch.device_bytes,
            cached_before_bytes=cached_bytes,
        )
        return self.sharers.seen_together(needed_bytes, whole)


def refuse_other_samples(numbers: list[int], wrong: list[int], samples: int) -> None:
    """`numbers`: of the samples that all ranks got, sorted; `wrong`: of those that hold something
    else than was written. Raises RefusedError."""
    if wrong:
        first = wrong[0]
        raise RefusedError(f"{len(wrong)} samples are not what was written, the first is {first}")
    if numbers != list(range(samples)):
        missing = samples - len(set(numbers))
        raise RefusedError(
            f"ranks did not read each of {samples} samples once: {missing} were not read, and "
            f"{len(numbers) - len(set(numbers))} more than once"
        )


def _files_of(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(path for path in folder.rglob("*") if path.is_file()))
