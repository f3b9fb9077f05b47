"""Did the GPUs keep their clock while a trial ran, and what crossed NVLink? NVML, asked from
outside the ranks."""

import functools
import operator
import threading
from collections.abc import Sequence
from contextlib import suppress
from statistics import fmean
from types import TracebackType
from typing import Any

from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.platforms.nvlink import sent_and_received_bytes
from broadgauge.specs.records.record import GpuUse

EVERY_S = 0.2
_IDLE = 0x1
"""Nothing runs, and the clock falls: it says nothing of the trial. Source: as below."""
THROTTLE_REASONS = {
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""Clock-reducing reasons but idle (0x1), an application's setting (0x2) and display (0x100).
Source: nvml.h, nvmlClocksEventReasons."""


class GpuWatch:
    """Samples some GPUs in a thread of its own; without NVML or GPUs it does nothing."""

    def __init__(self, gpus: Sequence[str]) -> None:
        """`gpus`: indices or UUIDs as in CUDA_VISIBLE_DEVICES, in PCI order."""
        self._gpus = gpus
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._samples: list[_Samples] = []

    def __enter__(self) -> "GpuWatch":
        nvml = open_nvml() if self._gpus else None
        if nvml is not None:
            self._samples = [
                _Samples(nvml, handle)
                for gpu in self._gpus
                if (handle := gpu_handle(nvml, gpu)) is not None
            ]
            self._thread = threading.Thread(target=self._run, name="gpu-watch", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(waiting_limit_s(5.0))
        for samples in self._samples:
            samples.end()

    @property
    def gpus(self) -> tuple[str, ...]:
        """The identifiers of those watched."""
        return tuple(self._gpus)

    def nvlink_bytes(self) -> tuple[int | None, ...]:
        """What crossed each GPU's NVLinks meanwhile, the busier direction; None: no counters."""
        return tuple(samples.nvlink_bytes for samples in self._samples)

    def uses(self) -> tuple[GpuUse, ...]:
        """What was seen of each GPU; empty where nothing could be."""
        return tuple(samples.use() for samples in self._samples)

    def _run(self) -> None:
        while True:
            for samples in self._samples:
                samples.take()
            if self._stop.wait(EVERY_S):
                return


class _Samples:
    """One GPU's samples."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml, self._handle = nvml, handle
        self._clocks_mhz: list[float] = []
        self._busy_clocks_mhz: list[float] = []
        self._power_watts: list[float] = []
        self._temperature_celsius: list[float] = []
        self._reasons: list[int] = []
        self._count = 0
        self._index = int(nvml.nvmlDeviceGetIndex(handle))
        self._name = text_of(nvml.nvmlDeviceGetName(handle))
        self._nvlink_before = sent_and_received_bytes(nvml, handle)
        self.nvlink_bytes: int | None = None

    def end(self) -> None:
        """Read once more what only grows."""
        after = sent_and_received_bytes(self._nvml, self._handle)
        if self._nvlink_before is not None and after is not None:
            grown = zip(self._nvlink_before, after, strict=True)
            growths = [end - begin for begin, end in grown]
            self.nvlink_bytes = max(growths) if min(growths) >= 0 else None

    def take(self) -> None:
        """Ask once; what this GPU does not tell is left out."""
        nvml, handle = self._nvml, self._handle
        self._count += 1
        reasons: int | None = None
        with suppress(nvml.NVMLError):
            reasons = int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
            self._reasons.append(reasons)
        with suppress(nvml.NVMLError):
            clock = float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))
            self._clocks_mhz.append(clock)
            if reasons is not None and not reasons & _IDLE:
                self._busy_clocks_mhz.append(clock)
        with suppress(nvml.NVMLError):
            self._power_watts.append(nvml.nvmlDeviceGetPowerUsage(handle) / 1000)
        with suppress(nvml.NVMLError):
            celsius = nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
            self._temperature_celsius.append(float(celsius))

    def use(self) -> GpuUse:
        """Means, the lowest clock, the highest temperature; clocks of when it was not idle."""
        clocks_mhz = self._busy_clocks_mhz or self._clocks_mhz
        reasons = reason_names(functools.reduce(operator.or_, self._reasons, 0))
        slowed = [bits for bits in self._reasons if reason_names(bits)]
        return GpuUse(
            index=self._index,
            name=self._name,
            samples_count=self._count,
            sm_clock_mhz=fmean(clocks_mhz) if clocks_mhz else None,
            sm_clock_min_mhz=min(clocks_mhz, default=None),
            sm_clock_max_mhz=self._highest_clock_mhz(),
            power_watts=fmean(self._power_watts) if self._power_watts else None,
            temperature_celsius=max(self._temperature_celsius, default=None),
            is_throttled=bool(reasons) if self._reasons else None,
            throttled_ratio=len(slowed) / len(self._reasons) if self._reasons else None,
            throttle_reasons=reasons,
        )

    def _highest_clock_mhz(self) -> float | None:
        nvml = self._nvml
        with suppress(nvml.NVMLError):
            return float(nvml.nvmlDeviceGetMaxClockInfo(self._handle, nvml.NVML_CLOCK_SM))
        return None


def reason_names(bits: int) -> tuple[str, ...]:
    """Which clock-reducing reasons are in NVML's bit mask?"""
    return tuple(name for bit, name in THROTTLE_REASONS.items() if bits & bit)


def open_nvml() -> Any | None:
    """NVML, ready to be asked; None where there is no driver or no bindings."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def gpu_handle(nvml: Any, gpu: str) -> Any | None:
    """NVML's handle of an index or UUID; None: there is no such GPU."""
    try:
        if gpu.isdigit():
            return nvml.nvmlDeviceGetHandleByIndex(int(gpu))
        return nvml.nvmlDeviceGetHandleByUUID(gpu)
    except nvml.NVMLError:
        return None


def text_of(value: str | bytes) -> str:
    """NVML's bindings give bytes in older versions."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value
