"""How does torch.distributed.checkpoint save a state, and what of it does training wait for?

Its collectives have a group of their own over Gloo: those of a thread must not mix with training's,
and GPUs' groups have none for the host's memory.

torch fsyncs each rank's file, but its metadata before Python's buffer is empty, and no folder once
the metadata have their name (torch 2.11, filesystem.py, `finish`): all of it is fsync'd once more
before the checkpoint is called durable, which costs nothing where it is done.
"""

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType

from broadgauge.messages.storage import CheckpointPhase
from broadgauge.probes.devices import Device
from broadgauge.probes.storage.saving import (
    Saved,
    Saver,
    in_the_systems_words,
    sync_file,
    sync_folders,
)
from broadgauge.probes.storage.saving_process import SavingProcess
from broadgauge.probes.storage.stopwatch import Stopwatch
from broadgauge.probes.storage.timed_writer import TimedWriter
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
        """`group`: of all ranks, over Gloo. Raises RefusedError where no process can save."""
        super().__init__(state, phase, device)
        self.group = group
        self._process = None
        if phase.background == "process":
            self._process = SavingProcess(sum(1 for _ in each_tensor(state.named())))

    def close(self) -> None:
        if self._process is not None:
            self._process.close()

    def save(self, folder: Path) -> Saved:
        watch = Stopwatch()
        state = self.state.named()
        watch.ends("state dict")
        writer = TimedWriter(folder, is_for_other_process=self._process is not None)
        stall_s = self._save(state, writer, watch)
        end_s, figures = time.perf_counter(), writer.figures
        if self._process is not None:
            watch.ends("hand over", at_s=figures.received_s)
        watch.ends("plan", at_s=figures.begin_s)
        watch.ends("serialise", at_s=figures.sync_s, write_s=figures.write_s)
        watch.ends("fsync", at_s=figures.end_s)
        watch.ends("metadata", at_s=end_s)
        if stall_s is None:
            stall_s = watch.seconds
        size_bytes = sum(map(sync_file, self._own(folder)))
        sync_folders(folder)
        watch.ends("fsync folder")
        return Saved(
            parts_s=watch.parts_s,
            stall_s=stall_s,
            size_bytes=size_bytes,
            operations_count=figures.writes_count,
            other_process_bytes=figures.device_written_bytes if self._process is not None else 0,
        )

    def _save(self, state: Any, writer: TimedWriter, watch: Stopwatch) -> float | None:
        """Gives the seconds until training could go on; None: it waits for all of this."""
        options = {
            "checkpoint_id": writer.path,
            "storage_writer": writer,
            "process_group": self.group,
        }
        watched = nullcontext() if self._process is None else self._process.watched()
        with watched, in_the_systems_words():
            if self.phase.background is None:
                dcp.save(state, **options)
                return None
            saving = dcp.async_save(
                state,
                **options,
                async_stager=users_stager(),
                async_checkpointer_type=AsyncCheckpointerType(self.phase.background),
            )
            watch.ends("stage")
            stall_s = watch.seconds
            saving.result()
            return stall_s

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
