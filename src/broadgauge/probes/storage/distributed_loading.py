"""How does torch.distributed.checkpoint load a model, of which each rank reads what it holds?"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.filesystem import FileSystem
from torch.distributed.checkpoint.state_dict import get_model_state_dict

from broadgauge.messages.storage import LoadPhase
from broadgauge.probes.devices import Device
from broadgauge.probes.storage.held_model import RandomBits
from broadgauge.probes.storage.loading import Loaded, Loader
from broadgauge.probes.storage.saving import in_the_systems_words
from broadgauge.probes.storage.stopwatch import Stopwatch
from broadgauge.probes.storage.timed_reading import ReadCalls
from broadgauge.probes.storage.timed_writer import TimedWriter
from broadgauge.probes.training.shards import own_part


class DistributedLoader(Loader):
    """Over Gloo: GPUs' groups have no collectives for the host's memory."""

    def __init__(
        self, model: Any, phase: LoadPhase, device: Device, bits: RandomBits, group: Any
    ) -> None:
        """`group`: of all ranks, over Gloo."""
        super().__init__(model, phase, device, bits)
        self.group = group

    def write(self, folder: Path, *, is_writer: bool) -> None:
        del is_writer  # each its part
        self._fill()
        with in_the_systems_words():
            dcp.save(
                self._state(),
                checkpoint_id=folder,
                # It keeps the system's words on their way to other ranks.
                storage_writer=TimedWriter(folder),
                process_group=self.group,
            )

    def files(self, folder: Path) -> list[Path]:
        return sorted(folder.iterdir())

    def load(self, folder: Path) -> Loaded:
        watch = Stopwatch()
        state = self._state()
        watch.ends("state dict")
        reader = TimedReader(folder)
        with in_the_systems_words():
            dcp.load(state, storage_reader=reader, process_group=self.group)
        self.device.synchronize()
        end_s = time.perf_counter()
        watch.ends("plan", at_s=reader.begin_s)
        watch.ends("deserialise", at_s=reader.end_s, read_s=reader.read_s)
        watch.ends("other ranks", at_s=end_s)
        return Loaded(
            parts_s=watch.parts_s,
            operations_count=reader.calls_count,
            needed_bytes=sum(own_part(each).nbytes for each in self.model.parameters()),
        )

    def _state(self) -> dict[str, Any]:
        """The live parameters by their names: loaded in place."""
        return {"model": get_model_state_dict(self.model)}


class TimedReader(dcp.FileSystemReader):  # type: ignore[misc]  # torch is Any to the type checker
    """torch's own, and the moments of reading this rank's part."""

    begin_s = end_s = read_s = 0.0
    calls_count = 0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.fs = _TimedFiles()

    def read_data(self, plan: Any, planner: Any) -> Any:
        before = self.fs.calls
        self.fs.calls = ReadCalls()  # without those of the metadata
        self.begin_s = time.perf_counter()
        # Here, as what crosses to other ranks has lost what is behind it.
        with in_the_systems_words():
            done = super().read_data(plan, planner)
        self.end_s = time.perf_counter()
        self.read_s = self.fs.calls.seconds
        self.calls_count = before.count + self.fs.calls.count
        return done


class _TimedFiles(FileSystem):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.calls = ReadCalls()

    @contextmanager
    def create_stream(self, path: Any, mode: str) -> Iterator[Any]:
        del mode  # it is only read
        with self.calls.reading(path) as file:
            yield file
