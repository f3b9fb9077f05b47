"""How is a checkpoint saved whose weights other programs are to read, by safetensors?

As Accelerate's `save_state` does it: the weights by `save_file`, and beside them by `torch.save`
what is more than tensors by name: the optimizer's state.
Source: Accelerate 1.15, src/accelerate/checkpointing.py, `save_accelerator_state`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch.distributed as dist

from broadgauge.messages.storage import CheckpointPhase
from broadgauge.probes.devices import Device
from broadgauge.probes.storage.model_files import safetensors_library, save_safetensors
from broadgauge.probes.storage.process_io import THIS_THREAD, io_since, process_io
from broadgauge.probes.storage.saving import FilesSaver, torch_load, torch_save
from broadgauge.probes.storage.stopwatch import Stopwatch
from broadgauge.probes.storage.training_state import TrainingState, each_tensor

SAVE_FILE = "save_file"
"""The part in which the library works: its Rust writes by itself, so that calls to the kernel are
not told apart from the rest. That rest is the names: of 1.05 GB in 250 tensors the thread was in
the kernel for 99 % of its time (safetensors 0.8, ext4, measured here by getrusage). Before 0.6
the library also copied the tensors first."""


class SafetensorsSaver(FilesSaver):
    """Weights in one file; the optimizer's state, if it is saved, in another."""

    def __init__(self, state: TrainingState, phase: CheckpointPhase, device: Device) -> None:
        """Raises RefusedError where this rank is to write and has no such library."""
        super().__init__(state, phase, device)
        if self._writes:
            safetensors_library()

    def _write_files(self, folder: Path, host: Any, watch: Stopwatch) -> int | None:
        before = process_io(THIS_THREAD)
        save_safetensors(host["model"], self._weights(folder))
        counted = io_since(before, THIS_THREAD)
        watch.ends(SAVE_FILE)
        calls = None if counted is None else counted.write_calls
        if not self.phase.has_optimizer_state:
            return calls
        more = torch_save(host["optimizer"], self._optimizer(folder), watch)
        return None if calls is None else calls + more

    def _files(self, folder: Path) -> list[Path]:
        weights = [self._weights(folder)]
        return [*weights, self._optimizer(folder)] if self.phase.has_optimizer_state else weights

    def _read(self, folder: Path, state: Any) -> Iterator[Any]:
        library = safetensors_library()
        with library.safe_open(self._weights(folder), framework="pt", device="cpu") as file:
            more = [name for name in file.keys() if name not in state["model"]]  # noqa: SIM118
            for name in (*state["model"], *more):
                yield file.get_tensor(name)
        if self.phase.has_optimizer_state:
            yield from each_tensor(torch_load(self._optimizer(folder)))

    def _weights(self, folder: Path) -> Path:
        return folder / f"model{self._mark}.safetensors"

    def _optimizer(self, folder: Path) -> Path:
        return folder / f"optimizer{self._mark}.bin"

    @property
    def _mark(self) -> str:
        """What is gathered has Accelerate's names; each rank's own part has one of its own."""
        return "" if self.phase.state_dict == "full" else f"-rank{dist.get_rank()}"
