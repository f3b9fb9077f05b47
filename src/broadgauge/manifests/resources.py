"""How much of a node does a pod ask for?"""

from broadgauge.manifests.fabric_parts import pod_resources
from broadgauge.manifests.job import JobPods
from broadgauge.manifests.yaml_text import Manifest

CPUS_PER_GPU_RANK = 2
"""A rank's own thread launches kernels, and NCCL has one that sends (its proxy) and one of torch
that looks after it: two are busy at most. Source: NCCL 2.28, src/proxy.cc; torch 2.11,
ProcessGroupNCCL. Loader workers are not counted: no workload of ours has any."""


def resources(job: JobPods) -> Manifest:
    """Requests, and limits as high where the experiment says how much: nobody else's work is to
    disturb what is measured. What is only predicted is no limit, which would end a pod."""
    settings = job.settings
    said: dict[str, str] = {}
    predicted: dict[str, str] = {}
    if job.cpus is not None:
        said["cpu"] = cpu_quantity(job.cpus)
    else:
        predicted["cpu"] = str(CPUS_PER_GPU_RANK * job.ranks_per_pod)
    need_bytes = job.memory_need.total_bytes
    if settings.memory_bytes is not None:
        said["memory"] = str(settings.memory_bytes)
    elif need_bytes is not None:
        predicted["memory"] = str(need_bytes)
    if job.gpus_per_pod:
        said[settings.gpu_resource] = str(job.gpus_per_pod)
    said |= {name: str(number) for name, number in job.attachments.resources.items()}
    said |= pod_resources(job.attachments.fabrics)
    return {"requests": predicted | said, **({"limits": said} if said else {})}


def cpu_quantity(cpus: float) -> str:
    """`1500m`, `8`. Source: Kubernetes, "Resource units": no finer than a thousandth."""
    milli = max(1, round(cpus * 1000))
    return f"{milli}m" if milli % 1000 else str(milli // 1000)
