"""Which GPUs does a launch use?"""

from broadgauge.platforms.gpu_watch import gpu_handle, open_nvml
from broadgauge.platforms.machine import visible_gpus
from broadgauge.platforms.nccl_topology import numa_node_of
from broadgauge.specs.case import Case
from broadgauge.specs.errors import LaunchError


def choose_gpus(case: Case, assumed_gpus: int | None = None) -> tuple[str, ...]:
    """The first GPUs, one for each rank; none on CPUs. Raises LaunchError for too few.

    `assumed_gpus`: as if so many were here, for what is only shown.
    """
    if case.device != "cuda":
        return ()
    found = _found_gpus() if assumed_gpus is None else tuple(map(str, range(assumed_gpus)))
    if len(found) < case.world_size:
        raise LaunchError(
            f"{case.label} needs {case.world_size} GPUs, and {len(found)} are visible",
            hint="`device: cpu`, smaller shapes, or another CUDA_VISIBLE_DEVICES",
        )
    return found[: case.world_size]


def _found_gpus() -> tuple[str, ...]:
    nvml = open_nvml()
    return () if nvml is None else visible_gpus(nvml.nvmlDeviceGetCount())


def numa_node_of_gpu(gpu: str) -> int:
    """Which NUMA node is the GPU on? −1: the machine does not say."""
    nvml = open_nvml()
    handle = None if nvml is None else gpu_handle(nvml, gpu)
    if nvml is None or handle is None:
        return -1
    bus_id = nvml.nvmlDeviceGetPciInfo(handle).busId
    return numa_node_of(bus_id.decode() if isinstance(bus_id, bytes) else bus_id)
