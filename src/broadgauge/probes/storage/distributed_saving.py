"""How does torch.distributed.checkpoint save a state, and what of it does training wait for?

Its collectives have a group of their own over Gloo: those of a thread must not mix with training's,
and GPUs' groups have none for the host's memory.

torch fsyncs each rank's file, but its metadata before Python's buffer is empty, and no folder once
the metadata have their name (torch 2.11, filesystem.py, `finish`): all of it is fsync'd once more
before the checkpoint is called durable, which costs nothing where it is done.
"""

import errno
import io
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.filesystem import FileSystem
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

from broadgauge.messages.storage import CheckpointPhase
from broadgauge.probes.devices import Device
from broadgauge.probes.storage.saving import (
    Saved,
    Saver,
    in_the_systems_words,
    sync_file,
    sync_folders,
)
from broadgauge.probes.storage.stopwatch import Stopwatch
from broadgauge.probes.storage.training_state import (
    TrainingState,
    each_tensor,
    is_same,
    with_tensors,
)
from broadgauge.probes.training.shards import own_part

METADATA = ".metadata"
"""Of the whole checkpoint; rank 0 writes it last. Source: torch 2.11, filesystem.py,
`_metadata_fn`."""


class DistributedSaver(Saver):
    """Each rank writes what it holds, and fsyncs it; of replicas ranks write a part each."""

    def __init__(
        self, state: TrainingState, phase: CheckpointPhase, device: Device, group: Any
    ) -> None:
        """`group`: of all ranks, over Gloo."""
        super().__init__(state, phase, device)
        self.group = group

    def save(self, folder: Path) -> Saved:
        watch = Stopwatch()
        state = self.state.named()
        watch.ends("state dict")
        writer = TimedWriter(folder)
        options = {"storage_writer": writer, "process_group": self.group}
        with in_the_systems_words():
            if self.phase.is_async:
                saving = dcp.async_save(state, **options, async_stager=users_stager())
                watch.ends("stage")
                stall_s = watch.seconds
                saving.result()
            else:
                dcp.save(state, **options)
        end_s = time.perf_counter()
        watch.ends("plan", at_s=writer.begin_s)
        watch.ends("serialise", at_s=writer.sync_s, write_s=writer.write_s)
        watch.ends("fsync", at_s=writer.end_s)
        watch.ends("metadata", at_s=end_s)
        if not self.phase.is_async:
            stall_s = watch.seconds
        size_bytes = sum(map(sync_file, self._own(folder)))
        sync_folders(folder)
        watch.ends("fsync folder")
        return Saved(
            parts_s=watch.parts_s,
            stall_s=stall_s,
            size_bytes=size_bytes,
            operations_count=writer.fs.writes_count,
        )

    def holds(self, folder: Path) -> bool:
        """Loaded into a state of its own."""
        state = self.state.named()
        read = with_tensors(state, torch.zeros_like)
        with in_the_systems_words():
            dcp.load(read, checkpoint_id=folder, process_group=self.group)
        pairs = zip(each_tensor(state), each_tensor(read), strict=True)
        return all(is_same(own_part(ours), own_part(theirs)) for ours, theirs in pairs)

    def _own(self, folder: Path) -> list[Path]:
        rank = dist.get_rank()
        files = list(folder.glob(f"__{rank}_*"))
        return [*files, folder / METADATA] if rank == 0 else files


def users_stager() -> DefaultStager:
    """What `async_save` takes where only a path is given: it would take a writer's own, which
    copies shards twice. Source: torch 2.11, state_dict_saver.py, `async_save`."""
    return DefaultStager(StagingOptions(False, False, False, False))  # noqa: FBT003  as torch's own


class TimedWriter(dcp.FileSystemWriter):  # type: ignore[misc]  # torch is Any to the type checker
    """torch's own, with its defaults, and the moments of writing this rank's file.

    Tensor by tensor it is copied to the host, serialised and written; at the end of all the file
    is fsync'd.
    """

    begin_s = sync_s = end_s = write_s = 0.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.fs = _TimedFiles()

    def write_data(self, plan: Any, planner: Any) -> Any:
        self.begin_s = self.fs.sync_s = time.perf_counter()
        # Here, as what crosses to other ranks has lost what is behind it.
        with in_the_systems_words():
            written = super().write_data(plan, planner)
        self.end_s = time.perf_counter()
        self.sync_s, self.write_s = self.fs.sync_s, self.fs.write_s
        return written


class _TimedFiles(FileSystem):  # type: ignore[misc]
    """Files as torch opens them, through a buffer of Python's size."""

    sync_s = write_s = 0.0
    writes_count = 0

    @contextmanager
    def create_stream(self, path: Any, mode: str) -> Iterator[Any]:
        raw = _TimedRaw(path, mode)
        with io.BufferedWriter(raw, Path(path).stat().st_blksize) as stream:
            yield stream
        self.sync_s, self.write_s = raw.sync_s, self.write_s + raw.write_s
        self.writes_count += raw.writes_count

    def mkdir(self, path: Any) -> None:
        """The folder's owner has made it. Where that rank has failed and removed it, nobody makes
        one without its marker."""
        if not Path(path).is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


class _TimedRaw(io.FileIO):
    """Its number is asked for when it is to be fsync'd."""

    sync_s = write_s = 0.0
    writes_count = 0

    def write(self, content: Any) -> int:
        begin_s = time.perf_counter()
        count = super().write(content)
        self.write_s += time.perf_counter() - begin_s
        self.writes_count += 1
        return count

    def fileno(self) -> int:
        self.sync_s = time.perf_counter()
        return super().fileno()
