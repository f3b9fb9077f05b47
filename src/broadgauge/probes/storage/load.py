"""How long does a training wait for its model, and did it come from the storage?"""

from pathlib import Path

import torch.distributed as dist

from broadgauge.messages.storage import FileAccess, LoadPhase
from broadgauge.messages.vocabulary import Phase
from broadgauge.probes.devices import Device
from broadgauge.probes.storage.cache_proof import SeenRead, proof_of
from broadgauge.probes.storage.file_systems import file_system_of
from broadgauge.probes.storage.held_files import held_ratio
from broadgauge.probes.storage.held_model import RandomBits, empty_model, largest_tensor_bytes
from broadgauge.probes.storage.loading import Loaded, Loader, OneFileLoader
from broadgauge.probes.storage.memory_needs import refuse_no_memory_to_load
from broadgauge.probes.storage.page_cache import cached_of_files, fill_cache, sync_file_system
from broadgauge.probes.storage.process_io import io_since, process_io
from broadgauge.probes.storage.shared_files import CacheSharers, host_group, shared_folder
from broadgauge.probes.training.types import torch_type
from broadgauge.probes.trial import RefusedError, Trial


class LoadMeasurement:
    """Loads of one trial, from files that this rank or another has written."""

    def __init__(self, trial: Trial, phase: LoadPhase, own: Path, device: Device) -> None:
        """`own`: this rank's folder, empty. Raises RefusedError where its part of a model would be
        missing there, or there is no memory."""
        self.trial, self.phase = trial, phase
        identity = trial.identity
        self.group = host_group(trial)
        self.shared = shared_folder(own, identity, self.group)
        self.folder = self.shared.path / "model"
        self.file_system = file_system_of(own)
        if phase.format == "distributed" and not self.shared.is_for_all:
            raise RefusedError(
                f"nodes do not share {own.parent.parent}: each would hold a part of the model, and "
                "none could load it: a path that all nodes share, or `format: safetensors`"
            )
        refuse_no_memory_to_load(
            phase,
            identity,
            device,
            largest_bytes=largest_tensor_bytes(phase.model, torch_type(phase.dtype)),
            is_for_all=self.shared.is_for_all,
            is_on_memory=self.file_system is not None and self.file_system.is_memory,
        )
        model = empty_model(
            phase.model, torch_type(phase.dtype), device, is_sharded=phase.is_sharded
        )
        self.loader = self._loader(model, device)

    def measure(self, repetitions: int) -> None:
        """The first load is compared, bit by bit. Raises OSError."""
        if self.shared.is_written_here:
            self.folder.mkdir()
        dist.barrier(self.group)
        self.loader.write(self.folder, is_writer=self.shared.is_written_here)
        sync_file_system(self.folder)
        dist.barrier(self.group)
        self.files = self.loader.files(self.folder)
        self.files_bytes = sum(path.stat().st_size for path in self.files)
        self.sharers = CacheSharers(self.files[0], self.group)
        self.held_ratio = self.sharers.told_by_first(held_ratio(self.files))
        self.loader.forget()
        self.loader.load(self.folder)
        if not self.loader.is_loaded():
            raise RefusedError(f"what was loaded from {self.folder} is not what was written")
        self.trial.begin_phase(Phase.MEASURE)
        for number in range(repetitions):
            self._load(f"read/{number}")
        dist.barrier(self.group)  # others may still read this rank's files

    def _loader(self, model: object, device: Device) -> Loader:
        bits = RandomBits(self.trial.command.seed)
        if self.phase.format != "distributed":
            return OneFileLoader(model, self.phase, device, bits)
        # Its import takes as long as torch's: only a trial that needs it waits for it.
        from broadgauge.probes.storage.distributed_loading import DistributedLoader

        return DistributedLoader(model, self.phase, device, bits, self.group)

    def _load(self, label: str) -> None:
        cached = self._cached_before()
        with self.trial.between_marks(label):
            before = process_io()
            loaded = self.loader.load(self.folder)
            counted = io_since(before)
        seen = SeenRead(
            size_bytes=self.files_bytes,
            device_bytes=None if counted is None else counted.device_read_bytes,
            cached_before_bytes=cached,
        )
        together = self.sharers.seen_together(loaded.needed_bytes, seen)
        self.trial.say(self._access(label, loaded, seen, together))

    def _cached_before(self) -> int | None:
        """Brings the page cache into the state that was asked for. How much of the files it holds
        then; None: the kernel does not say."""
        dist.barrier(self.group)  # nobody maps a file any more
        files = self.files if self.sharers.is_first else ()
        if self.phase.cache == "warm":
            fill_cache(files)
        cached = cached_of_files(files, is_let_go=self.phase.cache == "cold")
        return self.sharers.told_by_first(cached)

    def _access(self, label: str, loaded: Loaded, seen: SeenRead, together: SeenRead) -> FileAccess:
        reads = bool(together.size_bytes)
        proof = proof_of(together, self.file_system) if reads else None
        speaks = self.sharers.is_first
        return FileAccess(
            trial_id=self.trial.trial_id,
            label=label,
            access="read",
            size_bytes=together.size_bytes if speaks else 0,
            operations_count=loaded.operations_count,
            seconds=loaded.seconds,
            parts_s=loaded.parts_s,
            stall_s=loaded.seconds,
            device_bytes=seen.device_bytes,
            cached_before_bytes=seen.cached_before_bytes if speaks and reads else 0,
            cache=None if proof is None else proof.state,
            evidence="" if proof is None else proof.evidence,
            file_system=None if self.file_system is None else self.file_system.kind,
            held_ratio=self.held_ratio,
        )
