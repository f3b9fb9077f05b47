"""How long does a training wait for its checkpoint, and when is it durable?"""

import shutil
from pathlib import Path

import torch.distributed as dist

from broadgauge.messages.storage import CheckpointPhase, FileAccess
from broadgauge.messages.vocabulary import Phase
from broadgauge.probes.devices import Device
from broadgauge.probes.storage.file_systems import file_system_of
from broadgauge.probes.storage.process_io import io_since, process_io
from broadgauge.probes.storage.safetensors_saving import SafetensorsSaver
from broadgauge.probes.storage.saving import Saver, TorchSaver
from broadgauge.probes.storage.shared_files import host_group, is_shared
from broadgauge.probes.storage.training_state import TrainingState
from broadgauge.probes.trial import RefusedError, Trial


class CheckpointMeasurement:
    """Saves of one trial, in a folder that they share or in each rank's own."""

    def __init__(self, trial: Trial, phase: CheckpointPhase, own: Path, device: Device) -> None:
        """`own`: this rank's folder, empty. Raises RefusedError where nobody could load what is
        saved there, or there is no memory."""
        self.trial, self.phase, self.own = trial, phase, own
        identity = trial.identity
        self.group = host_group(trial)
        self.folder = own
        if phase.format == "distributed":
            self.folder = own.parent / "rank0"
            if not is_shared(own, self.group):
                raise RefusedError(
                    f"nodes do not share {own.parent.parent}: each would hold a part of the "
                    "checkpoint, and none could load it: a path that all nodes share, or "
                    "`format: torch` with `state_dict: sharded`"
                )
        self.file_system = file_system_of(own)
        state = TrainingState(phase, identity, device, trial.command.seed)
        self.saver = self._saver(state, device)

    def measure(self, repetitions: int) -> None:
        """The first save is read back, bit by bit. Raises OSError."""
        try:
            self._measure(repetitions)
        finally:
            self.saver.close()

    def _measure(self, repetitions: int) -> None:
        saved = self._made("warm-up")
        self.saver.save(saved)
        dist.barrier(self.group)
        if not self.saver.holds(saved):
            raise RefusedError(f"{saved} does not hold what was saved")
        self._remove(saved)
        self.trial.begin_phase(Phase.MEASURE)
        for number in range(repetitions):
            folder = self._made(f"save{number}")
            self._save(folder, f"write/{number}")
            self._remove(folder)

    def _saver(self, state: TrainingState, device: Device) -> Saver:
        if self.phase.format == "torch":
            return TorchSaver(state, self.phase, device)
        if self.phase.format == "safetensors":
            return SafetensorsSaver(state, self.phase, device)
        # Its import takes as long as torch's: only a trial that needs it waits for it.
        from broadgauge.probes.storage.distributed_saving import DistributedSaver

        return DistributedSaver(state, self.phase, device, self.group)

    def _made(self, name: str) -> Path:
        folder = self.folder / name
        if self.folder == self.own:
            folder.mkdir()
        dist.barrier(self.group)
        return folder

    def _remove(self, folder: Path) -> None:
        """Not while another rank still looks at it."""
        dist.barrier(self.group)
        if self.folder == self.own:
            shutil.rmtree(folder)

    def _save(self, folder: Path, label: str) -> None:
        with self.trial.between_marks(label):
            before = process_io()
            saved = self.saver.save(folder)
            counted = io_since(before)
        device_bytes = None
        if counted is not None and saved.other_process_bytes is not None:
            device_bytes = counted.device_written_bytes + saved.other_process_bytes
        self.trial.say(
            FileAccess(
                trial_id=self.trial.trial_id,
                label=label,
                access="write",
                size_bytes=saved.size_bytes,
                operations_count=saved.operations_count,
                seconds=saved.seconds,
                parts_s=saved.parts_s,
                stall_s=saved.stall_s,
                device_bytes=device_bytes,
                file_system=None if self.file_system is None else self.file_system.kind,
            )
        )
