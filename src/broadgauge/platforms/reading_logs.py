"""What does the doctor make of a launch's log files? In bounded bytes and time.

What connects ranks stands at the beginning of NCCL's log, and what failed at its end: of a longer
file both are read. A reading of MOST_BYTES takes some seconds of one core, between trials.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from broadgauge.doctor.log.conclusions.why_sockets import why_sockets
from broadgauge.doctor.log.files import Source
from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.job import uses_sockets
from broadgauge.doctor.log.reading import read_logs as read_sources
from broadgauge.doctor.log.recorded import nccl_use, worth_recording
from broadgauge.platforms.launch_logs import ReadLogs
from broadgauge.specs.units import show_size

MOST_FILES = 1024
"""Of one launch: eight ranks on each of 64 nodes, and what they wrote besides."""
FIRST_BYTES = 4 * 2**20
"""Of each file."""
LAST_BYTES = 2**20
"""Of each longer one."""
MOST_BYTES = 64 * 2**20
"""Of all files of a launch."""
MOST_S = 10.0
_CHUNK_BYTES = 1 << 18
_END = " (its end)"
"""Behind the name of a file, whose lines are counted from 1 there."""

MonotonicS = Callable[[], float]


def read_logs(paths: Sequence[Path], clock: MonotonicS = time.monotonic) -> ReadLogs:
    """Files that can't be read are left out, with a note."""
    if not paths:
        return ReadLogs()
    bounds = _Bounds(monotonic_s=clock, end_s=clock() + MOST_S, left_bytes=MOST_BYTES)
    if len(paths) > MOST_FILES:
        bounds.note(f"{MOST_FILES} of {len(paths)} files were read")
    read = paths[:MOST_FILES]
    reading = read_sources([source for path in read for source in bounds.sources(path)])
    folder = str(paths[0].parent)
    problems = [problem.replace(f"{folder}/", "") for problem in reading.problems]
    on_sockets = [process for process in reading.processes.values() if uses_sockets(process)]
    return ReadLogs(
        nccl=nccl_use(reading, (*bounds.notes, *problems)),
        findings=worth_recording(log_findings(reading), folder),
        why_sockets=why_sockets(reading, on_sockets) if on_sockets else None,
    )


@dataclass(slots=True, kw_only=True)
class _Bounds:
    """What is left to be read."""

    monotonic_s: MonotonicS
    end_s: float
    left_bytes: int
    notes: list[str] = field(default_factory=list)
    """What was not read."""

    def sources(self, path: Path) -> Iterator[Source]:
        """Its beginning, and where there is more its end."""
        try:
            size_bytes = path.stat().st_size
        except OSError as error:
            self.note(f"{path.name} can't be read: {error.strerror or error}")
            return
        first_bytes = min(size_bytes, FIRST_BYTES)
        yield Source(str(path), partial(self._chunks, path, 0, first_bytes))
        if size_bytes > FIRST_BYTES:
            begin = max(FIRST_BYTES, size_bytes - LAST_BYTES)
            yield Source(f"{path}{_END}", partial(self._chunks, path, begin, size_bytes - begin))
        if size_bytes > FIRST_BYTES + LAST_BYTES:
            parts = f"its first {show_size(FIRST_BYTES)} and last {show_size(LAST_BYTES)}"
            self.note(f"{path.name} was read to {parts} of {show_size(size_bytes)}")

    def _chunks(self, path: Path, begin: int, num_bytes: int) -> Iterator[bytes]:
        """May raise OSError, which the reading tells."""
        with path.open("rb") as file:
            file.seek(begin)
            while num_bytes > 0 and self._may_go_on():
                chunk = file.read(min(num_bytes, _CHUNK_BYTES))
                if not chunk:
                    return
                num_bytes -= len(chunk)
                self.left_bytes -= len(chunk)
                yield chunk

    def _may_go_on(self) -> bool:
        if self.left_bytes <= 0:
            self.note(f"reading ended after {show_size(MOST_BYTES)} of all files")
            return False
        if self.monotonic_s() > self.end_s:
            self.note(f"reading ended after {MOST_S:g} s")
            return False
        return True

    def note(self, text: str) -> None:
        """Once."""
        if text not in self.notes:
            self.notes.append(text)
