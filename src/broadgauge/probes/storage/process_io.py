"""What does the kernel count of a process's files?

Source: proc_pid_io(5). Threads count with their process. Reads of file systems that are memory, a
network or a program of a user count nothing of block devices; writes count where a page is to be
written back, also over a network.
"""

import re
from dataclasses import dataclass
from pathlib import Path

THIS_THREAD = "thread-self"
"""Source: proc_thread-self(5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIo:
    """So far; or between two moments."""

    device_read_bytes: int
    device_written_bytes: int
    """That were left to the kernel to write: it may not have done so yet."""
    write_calls: int
    """To any file, pipe or socket."""

    def since(self, before: "ProcessIo") -> "ProcessIo":
        return ProcessIo(
            device_read_bytes=self.device_read_bytes - before.device_read_bytes,
            device_written_bytes=self.device_written_bytes - before.device_written_bytes,
            write_calls=self.write_calls - before.write_calls,
        )


def process_io(process: int | str = "self") -> ProcessIo | None:
    """Of this process, or of another of this user's by its id, or of THIS_THREAD alone. None: the
    kernel does not say."""
    try:
        told = Path(f"/proc/{process}/io").read_text()
    except OSError:
        return None
    counts = {name: int(count) for name, count in re.findall(r"^(\w+): (\d+)$", told, re.MULTILINE)}
    if not {"read_bytes", "write_bytes", "syscw"} <= counts.keys():
        return None
    return ProcessIo(
        device_read_bytes=counts["read_bytes"],
        device_written_bytes=counts["write_bytes"],
        write_calls=counts["syscw"],
    )


def io_since(before: ProcessIo | None, process: int | str = "self") -> ProcessIo | None:
    after = process_io(process)
    return None if before is None or after is None else after.since(before)
