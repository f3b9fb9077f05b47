"""How is a checkpoint saved, and into which parts does its time fall on this rank?

As users' scripts save it, by the functions that they call. Two moments are told: when training
could go on, and when the checkpoint is durable: files and folder are fsync'd.
"""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from broadgauge.messages.storage import CheckpointPhase
from broadgauge.probes.devices import Device
from broadgauge.probes.storage.raw_files import sync_folder
from broadgauge.probes.storage.stopwatch import Stopwatch, Timed
from broadgauge.probes.storage.training_state import (
    TrainingState,
    each_tensor,
    is_same,
    with_tensors,
)
from broadgauge.probes.training.shards import own_part, whole_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved(Timed):
    """On this rank, until it is durable."""

    stall_s: float
    """Until training could go on; the rest passes beside it."""
    size_bytes: int
    """Of the files that this rank wrote."""
    other_process_bytes: int | None = 0
    """Left to the kernel to write by a process beside this one; None: it does not say."""


class Saver(ABC):
    """One way to save this rank's part of a state."""

    def __init__(self, state: TrainingState, phase: CheckpointPhase, device: Device) -> None:
        self.state, self.phase, self.device = state, phase, device

    @abstractmethod
    def save(self, folder: Path) -> Saved:
        """Into files that are not there yet. All ranks call it together. Raises OSError."""

    @abstractmethod
    def holds(self, folder: Path) -> bool:
        """Is every bit that this rank can check what was saved? All ranks call it together."""

    def close(self) -> None:  # noqa: B027  most have nothing to end
        """What saves beside this rank ends."""


class FilesSaver(Saver):
    """Files of their own: of what rank 0 has gathered, or of each rank's part."""

    @abstractmethod
    def _write_files(self, folder: Path, host: Any, watch: Stopwatch) -> int | None:
        """The state, which is on the host. Gives the calls to the kernel; None: not counted. Raises
        OSError."""

    @abstractmethod
    def _files(self, folder: Path) -> list[Path]:
        """Of this rank."""

    @abstractmethod
    def _read(self, folder: Path, state: Any) -> Iterator[Any]:
        """The tensors of this rank's files, in the order of `state`, whose names they have."""

    def save(self, folder: Path) -> Saved:
        watch = Stopwatch()
        state = self.state.named()
        watch.ends("state dict")
        host = self._on_host(state, watch)
        stall_s = watch.seconds
        if not self._writes:
            return Saved(parts_s=watch.parts_s, stall_s=stall_s, size_bytes=0, operations_count=0)
        operations_count = self._write_files(folder, host, watch)
        stall_s = watch.seconds
        size_bytes = sum(map(sync_file, self._files(folder)))
        watch.ends("fsync")
        sync_folders(folder)
        watch.ends("fsync folder")
        return Saved(
            parts_s=watch.parts_s,
            stall_s=stall_s,
            size_bytes=size_bytes,
            operations_count=operations_count,
        )

    def holds(self, folder: Path) -> bool:
        state = self.state.named()
        read = self._read(folder, state) if self._writes else None
        same = True
        for tensor in each_tensor(state):
            ours = self._part(tensor)  # a collective where it is gathered: on every rank
            same = same and (read is None or is_same(ours, next(read)))
        return same and (read is None or next(read, None) is None)

    def _on_host(self, state: Any, watch: Stopwatch) -> list[Any] | dict[str, Any] | None:
        """One tensor after the other: no rank needs the whole on its device."""

        def moved(tensor: Any) -> Any:
            part = self._part(tensor)
            if self.phase.is_sharded and self.phase.state_dict == "full":
                self.device.synchronize()
                watch.ends("gather")
            if not self._writes:
                return None
            held = part.cpu()
            if held is not part:
                watch.ends("device to host")
            return held

        return with_tensors(state, moved)  # type: ignore[no-any-return]

    def _part(self, tensor: Any) -> Any:
        return whole_of(tensor) if self.phase.state_dict == "full" else own_part(tensor)

    @property
    def _writes(self) -> bool:
        return self.phase.state_dict == "sharded" or dist.get_rank() == 0


class TorchSaver(FilesSaver):
    """All of it in one file, by torch.save."""

    def _write_files(self, folder: Path, host: Any, watch: Stopwatch) -> int | None:
        (path,) = self._files(folder)
        return torch_save(host, path, watch)

    def _files(self, folder: Path) -> list[Path]:
        return [folder / f"rank{dist.get_rank()}.pt"]

    def _read(self, folder: Path, state: Any) -> Iterator[Any]:
        del state  # the file has kept its order
        (path,) = self._files(folder)
        return each_tensor(torch_load(path))


def torch_save(state: Any, path: Path, watch: Stopwatch) -> int:
    """Ends the parts `serialise` and `write`, and gives the calls to the kernel. Raises OSError."""
    with in_the_systems_words(), TimedFile(path) as file:
        torch.save(state, file)
    watch.ends("serialise", write_s=file.seconds)
    return file.writes_count


def torch_load(path: Path) -> Any:
    return torch.load(path, mmap=True, weights_only=True, map_location="cpu")


class TimedFile:
    """What torch.save writes into: a file, and the seconds in calls to the kernel.

    torch asks for `write` and `flush`, and calls it for each tensor as it does for a path.
    Source: torch 2.11, torch/serialization.py, `_open_zipfile_writer_buffer`.
    """

    def __init__(self, path: Path) -> None:
        self._path, self.seconds, self.writes_count = path, 0.0, 0

    def __enter__(self) -> "TimedFile":
        begin_s = time.perf_counter()
        self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self.seconds += time.perf_counter() - begin_s
        return self

    def __exit__(self, *_: object) -> None:
        begin_s = time.perf_counter()
        os.close(self._fd)
        self.seconds += time.perf_counter() - begin_s

    def flush(self) -> None:
        """There is no buffer."""

    def write(self, content: Any) -> int:
        """All of it: the kernel takes at most 2 GiB in a call. Source: write(2)."""
        begin_s = time.perf_counter()
        left = memoryview(content).cast("B")
        size = len(left)
        while left:
            left = left[os.write(self._fd, left) :]
            self.writes_count += 1
        self.seconds += time.perf_counter() - begin_s
        return size


@contextmanager
def in_the_systems_words() -> Iterator[None]:
    """Of a full disk torch.save says `unexpected pos`, and a distributed checkpoint that some ranks
    failed: raised is the OSError behind it, if there is one."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a CheckpointException is one
        found = _behind(error)
        if found is None or found is error:
            raise
        raise OSError(found.errno, found.strerror, found.filename) from error


def _behind(error: BaseException | None) -> OSError | None:
    """The first of the chain of exceptions, of any rank, that has the kernel's number."""
    if error is None or (isinstance(error, OSError) and error.errno is not None):
        return error
    failures = getattr(error, "failures", {})  # CheckpointException: (exception, stack) by rank
    for failed, *_ in failures.values():
        if (found := _behind(failed)) is not None:
            return found
    behind = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return _behind(behind)


def sync_folders(folder: Path) -> None:
    """The names in it, and its own: each checkpoint has a new one."""
    sync_folder(folder)
    sync_folder(folder.parent)


def sync_file(path: Path) -> int:
    """Gives its size."""
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fsync(fd)
        return os.fstat(fd).st_size
    finally:
        os.close(fd)
