"""When does torch's writer of a distributed checkpoint begin and end, and what of that are calls to
the kernel?

It may work in another process of this machine: what it tells is in memory that both share, and both
have the same clock. Source: CLOCK_MONOTONIC of clock_gettime(2), which time.perf_counter reads.
"""

import errno
import io
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.filesystem import FileSystem

from broadgauge.probes.storage.process_io import io_since, process_io
from broadgauge.probes.storage.saving import in_the_systems_words


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterFigures:
    """Of one save. Moments are of `time.perf_counter`."""

    received_s: float
    """Torch has the state where it writes it."""
    begin_s: float
    sync_s: float
    end_s: float
    """Of writing this rank's file, with its fsync, which begins at `sync_s`."""
    write_s: float
    """In calls to the kernel that write."""
    writes_count: int
    """Such calls, of rank 0 with those of the metadata."""
    device_written_bytes: int | None
    """Left to the kernel to write by that process, since the state was received; None: it does not
    say."""


class TimedWriter(dcp.FileSystemWriter):  # type: ignore[misc]  # torch is Any to the type checker
    """torch's own, with its defaults, and the moments of writing this rank's file.

    Tensor by tensor it is copied to the host, serialised and written; at the end of all the file
    is fsync'd.
    """

    received_s = begin_s = sync_s = end_s = write_s = 0.0

    def __init__(self, folder: Path, *, is_for_other_process: bool = False) -> None:
        super().__init__(folder)
        self.fs = _TimedFiles()
        self._told = torch.zeros(len(WriterFigures.__slots__), dtype=torch.float64)
        if is_for_other_process:
            self._told.share_memory_()

    @property
    def figures(self) -> WriterFigures:
        """Once the checkpoint is saved, in whichever process."""
        *moments, writes_count, device_bytes = self._told.tolist()
        received_s, begin_s, sync_s, end_s, write_s = moments
        return WriterFigures(
            received_s=received_s,
            begin_s=begin_s,
            sync_s=sync_s,
            end_s=end_s,
            write_s=write_s,
            writes_count=int(writes_count),
            device_written_bytes=None if math.isnan(device_bytes) else int(device_bytes),
        )

    def reset(self, checkpoint_id: Any = None) -> None:
        """torch calls it first, where it saves, if it is told the checkpoint's id."""
        self.received_s = time.perf_counter()
        self._before = process_io()
        super().reset(checkpoint_id)

    def write_data(self, plan: Any, planner: Any) -> Any:
        self.begin_s = self.fs.sync_s = time.perf_counter()
        # Here, as what crosses to other ranks has lost what is behind it.
        with in_the_systems_words():
            written = super().write_data(plan, planner)
        self.end_s = time.perf_counter()
        self.sync_s, self.write_s = self.fs.sync_s, self.fs.write_s
        self._tell()
        return written

    def finish(self, metadata: Any, results: Any) -> None:
        """Of rank 0 alone, which writes the metadata."""
        super().finish(metadata, results)
        self._tell()

    def _tell(self) -> None:
        counted = io_since(self._before)
        told = (
            *(self.received_s, self.begin_s, self.sync_s, self.end_s, self.write_s),
            self.fs.writes_count,
            math.nan if counted is None else counted.device_written_bytes,
        )
        self._told.copy_(torch.tensor(told, dtype=torch.float64))


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
