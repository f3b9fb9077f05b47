"""How is a phase on a storage measured on this rank?

Ranks begin each repetition together, and each says its own time: a rank that is late in one is not
waited for in the next one's figures.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broadgauge.messages.storage import (
    Access,
    BatchesPhase,
    CheckpointPhase,
    FileAccess,
    LoadPhase,
    RawPhase,
    StorageTask,
)
from broadgauge.messages.vocabulary import Phase, assert_never
from broadgauge.probes.devices import Device
from broadgauge.probes.storage.answering import answering
from broadgauge.probes.storage.cache_proof import SeenRead, proof_of
from broadgauge.probes.storage.file_systems import file_system_of
from broadgauge.probes.storage.held_files import held_ratio
from broadgauge.probes.storage.own_folder import own_folder
from broadgauge.probes.storage.page_cache import cached_bytes, let_go
from broadgauge.probes.storage.process_io import io_since, process_io
from broadgauge.probes.storage.raw_files import (
    holds,
    random_requests,
    read_file,
    refuse_no_direct,
    write_file,
)
from broadgauge.probes.storage.stopwatch import Timed
from broadgauge.probes.storage.throttle import throttled_as_told
from broadgauge.probes.storage.told_to_end import cleaning_when_told_to_end
from broadgauge.probes.trial import RefusedError, Trial


def measure_storage(trial: Trial, task: StorageTask, device: Device) -> None:
    """Raises RefusedError where the storage can't be used, and OSError where it fails."""
    trial.begin_phase(Phase.WARM_UP)
    with (
        answering(trial, task),
        cleaning_when_told_to_end(),
        throttled_as_told(task, trial.identity),
        _naming(task.folder),
    ):
        _measure_phase(trial, task, device)


@contextmanager
def _naming(folder: str) -> Iterator[None]:
    """Of a write that finds no room the kernel does not say where."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT) and error.filename is None:
            raise OSError(error.errno, error.strerror, folder) from error
        raise


def _measure_phase(trial: Trial, task: StorageTask, device: Device) -> None:
    identity = trial.identity
    owner, storage = f"rank{identity.rank}", Path(task.folder)
    match task.phase:
        case RawPhase() as phase:
            needed_bytes = phase.size_bytes * identity.local_world_size
            with own_folder(storage, owner, needed_bytes) as folder:
                _Raw(trial, task, phase, folder).measure()
        case CheckpointPhase() as phase:
            # Its parts that speak to other ranks are not needed by the other phases.
            from broadgauge.probes.storage.checkpoint import CheckpointMeasurement

            with own_folder(storage, owner, phase.files_bytes) as folder:
                CheckpointMeasurement(trial, phase, folder, device).measure(task.repetitions)
        case LoadPhase() as phase:
            from broadgauge.probes.storage.load import LoadMeasurement

            with own_folder(storage, owner, phase.files_bytes) as folder:
                LoadMeasurement(trial, phase, folder, device).measure(task.repetitions)
        case BatchesPhase() as phase:
            from broadgauge.probes.storage.batches import BatchesMeasurement

            # The first rank of a node may be the one that writes.
            needed_bytes = 0 if identity.local_rank else phase.files_bytes
            with own_folder(storage, owner, needed_bytes) as folder:
                BatchesMeasurement(trial, phase, folder).measure(task.repetitions)
        case unknown:
            assert_never(unknown)


class _Raw:
    def __init__(self, trial: Trial, task: StorageTask, phase: RawPhase, folder: Path) -> None:
        self.trial, self.task, self.phase = trial, task, phase
        self.path = folder / "raw"
        self.file_system = file_system_of(folder)
        request_bytes = min(phase.request_bytes, phase.size_bytes)
        self.requests = random_requests(phase.size_bytes, request_bytes)

    def measure(self) -> None:
        if self.phase.is_direct:
            refuse_no_direct(self.path.parent)
        write_file(self.path, self.requests, is_direct=self.phase.is_direct)
        if not holds(self.path, self.requests):
            raise RefusedError(f"{self.path} does not hold what was written to it")
        self.trial.begin_phase(Phase.MEASURE)
        for number in range(self.task.repetitions):
            self._write(f"write/{number}")
        for number in range(self.task.repetitions):
            self._read(f"read/{number}")

    def _write(self, label: str) -> None:
        self.path.unlink()  # to drop what was in it is no part of a write
        with self.trial.between_marks(label):
            timed = write_file(self.path, self.requests, is_direct=self.phase.is_direct)
        self.held_ratio = held_ratio([self.path])
        self.trial.say(self._access(label, "write", timed))

    def _read(self, label: str) -> None:
        fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if self.phase.cache == "cold":
                let_go(fd)
            cached = cached_bytes(fd)
        finally:
            os.close(fd)
        with self.trial.between_marks(label):
            before = process_io()
            timed = read_file(
                self.path, self.requests.request_bytes, is_direct=self.phase.is_direct
            )
            counted = io_since(before)
        seen = SeenRead(
            size_bytes=self.phase.size_bytes,
            device_bytes=None if counted is None else counted.device_read_bytes,
            cached_before_bytes=None if cached is None else min(cached, self.phase.size_bytes),
        )
        self.trial.say(self._access(label, "read", timed, seen))

    def _access(
        self, label: str, access: Access, timed: Timed, seen: SeenRead | None = None
    ) -> FileAccess:
        proof = None if seen is None else proof_of(seen, self.file_system)
        return FileAccess(
            trial_id=self.trial.trial_id,
            label=label,
            access=access,
            size_bytes=self.phase.size_bytes,
            operations_count=timed.operations_count,
            seconds=timed.seconds,
            parts_s=timed.parts_s,
            device_bytes=None if seen is None else seen.device_bytes,
            cached_before_bytes=None if seen is None else seen.cached_before_bytes,
            cache=None if proof is None else proof.state,
            evidence="" if proof is None else proof.evidence,
            file_system=None if self.file_system is None else self.file_system.kind,
            held_ratio=self.held_ratio,
        )
