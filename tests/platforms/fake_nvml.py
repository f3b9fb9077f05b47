"""NVML as the platforms ask it, with links and counters that a test sets."""

from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace

NUM_LINKS = 2


class FakeNvmlError(Exception):
    """As NVMLError: not supported, or no such GPU."""


@dataclass
class FakeGpu:
    """One GPU; links lead to PCI bus ids."""

    index: int
    links: tuple[str, ...] | None = ()
    """None: NVML refuses to say."""
    peers: tuple[int, ...] | None = ()
    """GPUs that the peer-to-peer matrix says NVLink joins it with; None: refuses to say."""
    nvlink_kib: tuple[int, int] | None = (0, 0)
    """Counters of each link, sent and received; None: it has none."""
    nvlink_bytes: tuple[int, int] | None = None
    """The same of NVLink 5's counters."""
    samples: list[tuple[int, int]] = field(default_factory=list)
    """SM clock in MHz and reasons of each sample to come; the last one stays."""
    highest_clock_mhz: int | None = 1980

    @property
    def bus_id(self) -> str:
        return f"00000000:{self.index:02X}:00.0"


class FakeNvml:
    """The functions of pynvml that are used here."""

    NVMLError = FakeNvmlError
    NVML_SUCCESS = 0
    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0
    NVML_NVLINK_MAX_LINKS = 18
    NVML_P2P_CAPS_INDEX_NVLINK = 2
    NVML_P2P_STATUS_OK = 0
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX = 138
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = 139
    NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES = 202
    NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES = 204

    def __init__(self, *gpus: FakeGpu) -> None:
        self.gpus = gpus

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:  # noqa: N802
        if index >= len(self.gpus):
            raise FakeNvmlError
        return self.gpus[index]

    def nvmlDeviceGetIndex(self, gpu: FakeGpu) -> int:  # noqa: N802
        return gpu.index

    def nvmlDeviceGetName(self, gpu: FakeGpu) -> bytes:  # noqa: N802
        return b"NVIDIA H200"

    def nvmlDeviceGetPciInfo(self, gpu: FakeGpu) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(busId=gpu.bus_id.encode())

    def nvmlDeviceGetP2PStatus(self, one: FakeGpu, other: FakeGpu, index: int) -> int:  # noqa: N802
        assert index == self.NVML_P2P_CAPS_INDEX_NVLINK
        if one.peers is None:
            raise FakeNvmlError
        return 0 if other.index in one.peers else 5

    def nvmlDeviceGetNvLinkState(self, gpu: FakeGpu, link: int) -> int:  # noqa: N802
        if gpu.links is None or link >= max(1, len(gpu.links)):
            raise FakeNvmlError
        return int(bool(gpu.links) and gpu.links[link] != "down")

    def nvmlDeviceGetNvLinkRemotePciInfo(self, gpu: FakeGpu, link: int) -> SimpleNamespace:  # noqa: N802
        assert gpu.links is not None
        return SimpleNamespace(busId=gpu.links[link].encode())

    def nvmlDeviceGetFieldValues(  # noqa: N802
        self, gpu: FakeGpu, fields: list[tuple[int, int]]
    ) -> list[SimpleNamespace]:
        """Each link has counted the same; two are there."""
        counts = dict(zip((138, 139), gpu.nvlink_kib or (), strict=False))
        counts |= dict(zip((202, 204), gpu.nvlink_bytes or (), strict=False))
        return [
            SimpleNamespace(
                nvmlReturn=0 if link < NUM_LINKS and field_id in counts else 2,
                fieldId=field_id,
                value=SimpleNamespace(ullVal=counts.get(field_id, 0)),
            )
            for field_id, link in fields
        ]

    def nvmlDeviceGetClockInfo(self, gpu: FakeGpu, _kind: int) -> int:  # noqa: N802
        clock, _ = gpu.samples[0]
        if len(gpu.samples) > 1:
            gpu.samples.pop(0)
        return clock

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, gpu: FakeGpu) -> int:  # noqa: N802
        if not gpu.samples:
            raise FakeNvmlError
        return gpu.samples[0][1]

    def nvmlDeviceGetMaxClockInfo(self, gpu: FakeGpu, _kind: int) -> int:  # noqa: N802
        if gpu.highest_clock_mhz is None:
            raise FakeNvmlError
        return gpu.highest_clock_mhz

    def nvmlDeviceGetPowerUsage(self, gpu: FakeGpu) -> int:  # noqa: N802
        raise FakeNvmlError

    def nvmlDeviceGetUtilizationRates(self, gpu: FakeGpu) -> object:  # noqa: N802
        raise FakeNvmlError

    def nvmlDeviceGetTemperature(self, gpu: FakeGpu, _sensor: int) -> int:  # noqa: N802
        raise FakeNvmlError


def in_a_row(count: int) -> FakeNvml:
    """GPUs of which each is linked with the next, as in an open ring of bridges."""
    links: dict[int, list[str]] = {index: [] for index in range(count)}
    for one, other in pairwise(range(count)):
        links[one].append(FakeGpu(other).bus_id)
        links[other].append(FakeGpu(one).bus_id)
    return FakeNvml(*(FakeGpu(index, links=tuple(links[index])) for index in range(count)))
