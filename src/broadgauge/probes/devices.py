"""What computes on this rank, how long did its work take, and how much memory did it need?

One interface for GPUs and CPUs. A GPU's time is read from events on its own stream, so that the
host can run ahead; a CPU's work is done when the call returns.
"""

import contextlib
import ctypes
import itertools
import os
import time
from pathlib import Path
from typing import Any, Protocol

import torch

from broadgauge.messages.vocabulary import Device as DeviceKind
from broadgauge.probes.trial import RefusedError


class DeviceClock(Protocol):
    """Notes moments of the device's own work."""

    def tick(self) -> None:
        """All work given to the device before belongs before this moment."""
        ...

    def intervals_s(self) -> tuple[float, ...]:
        """Between each tick and the next. Waits until the device has passed the last one."""
        ...


class CpuClock:
    def __init__(self) -> None:
        self._ticks_s: list[float] = []

    def tick(self) -> None:
        self._ticks_s.append(time.perf_counter())

    def intervals_s(self) -> tuple[float, ...]:
        return tuple(after - before for before, after in itertools.pairwise(self._ticks_s))


class CudaClock:
    """Events resolve about 0.5 µs. Source: CUDA runtime API, cudaEventElapsedTime."""

    def __init__(self) -> None:
        self._events: list[Any] = []

    def tick(self) -> None:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        self._events.append(event)

    def intervals_s(self) -> tuple[float, ...]:
        if self._events:
            self._events[-1].synchronize()
        return tuple(
            before.elapsed_time(after) / 1e3 for before, after in itertools.pairwise(self._events)
        )


class Device(Protocol):
    @property
    def torch_device(self) -> Any: ...

    def clock(self) -> DeviceClock: ...

    def synchronize(self) -> None:
        """Waits until all work given to the device is done."""
        ...

    def free_memory_bytes(self) -> int:
        """What is left for all ranks that share this memory."""
        ...

    def reset_peak_memory(self) -> None: ...

    def peak_memory_bytes(self) -> int: ...


class CpuDevice:
    torch_device = torch.device("cpu")

    def clock(self) -> DeviceClock:
        return CpuClock()

    def synchronize(self) -> None:
        return

    def free_memory_bytes(self) -> int:
        return _kibibytes(Path("/proc/meminfo"), "MemAvailable") * 1024

    def reset_peak_memory(self) -> None:
        """Source: proc_pid_clear_refs(5), writing 5 resets the peak resident set size;
        malloc_trim(3), glibc may keep what the trial before freed until it is asked.

        Where that is refused, the peak is of the process's whole life.
        """
        with contextlib.suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")

    def peak_memory_bytes(self) -> int:
        return _kibibytes(Path("/proc/self/status"), "VmHWM") * 1024


class CudaDevice:
    def __init__(self, local_rank: int) -> None:
        if local_rank >= torch.cuda.device_count():
            raise RefusedError(
                f"local rank {local_rank} has no GPU: {torch.cuda.device_count()} are visible"
            )
        self.torch_device = torch.device("cuda", local_rank)
        torch.cuda.set_device(self.torch_device)

    def clock(self) -> DeviceClock:
        return CudaClock()

    def synchronize(self) -> None:
        torch.cuda.synchronize(self.torch_device)

    def free_memory_bytes(self) -> int:
        free_bytes: int = torch.cuda.mem_get_info(self.torch_device)[0]
        return free_bytes

    def reset_peak_memory(self) -> None:
        torch.cuda.reset_peak_memory_stats(self.torch_device)

    def peak_memory_bytes(self) -> int:
        peak_bytes: int = torch.cuda.max_memory_allocated(self.torch_device)
        return peak_bytes


def choose_device(kind: DeviceKind, local_rank: int) -> Device:
    """`cuda:LOCAL_RANK` or the CPU; the host's threads are as many as OMP_NUM_THREADS says."""
    if threads := os.environ.get("OMP_NUM_THREADS"):
        torch.set_num_threads(int(threads))
    return CudaDevice(local_rank) if kind == "cuda" else CpuDevice()


def _kibibytes(path: Path, key: str) -> int:
    """The number in a line `key:   123 kB`."""
    for line in path.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0])
    raise KeyError(f"{path} has no {key}")
