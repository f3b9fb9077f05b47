"""How much of a node's memory do the ranks of a pod need? By the memory model of predictions.

What a GPU holds is not in it: of a training on GPUs this is what its processes keep on the host.
Figures of processes: two ranks, DDP of 400 million parameters, torch 2.11 with CUDA 13.0 and NCCL
2.28.9, two H100, 2026-11-24 (docs/measurements.md, "Memory of ranks on their node").
"""

from collections.abc import Iterator

from broadgauge.manifests.job import SHM_PER_RANK_BYTES
from broadgauge.manifests.memory_need import MIB, MemoryNeed, MemoryPart, memory_part
from broadgauge.running.kinds.registry import in_running
from broadgauge.specs.case import Case
from broadgauge.specs.kubernetes.settings import Kubernetes

CUDA_RANK_BYTES = 900 * MIB
"""Of one rank alone: Python, torch, the CUDA context, kernels. Measured: 885 MiB."""
NCCL_RANK_BYTES = 320 * MIB
"""Of NCCL beside it, without what its connections need. Measured: 311 MiB."""
CUDA_LIBRARIES_BYTES = 480 * MIB
"""Pages of libraries, which ranks of a pod share. Measured: 464 MiB."""
CPU_RANK_BYTES = 400 * MIB
"""Without CUDA. Measured: torch 2.11, DDP over Gloo on a CPU, 2026-11-24: 383 MiB."""
CPU_LIBRARIES_BYTES = 380 * MIB
"""Measured as the former: 368 MiB."""
LAUNCHER_BYTES = 290 * MIB
"""torchrun, which imports torch and uses no device, and the entrypoint, without the pages of
libraries that ranks hold, too. Measured: 272 and 11 MiB."""
CONNECTION_BYTES = 9_961_472
"""Page-locked, of one connection over a network without GPUDirect: 4 MiB (NCCL_BUFFSIZE), 5 MiB
(120 × 640 × 8 × 8, LL128) and 0.5 MiB (8 × 512 × 8 × 16, LL). Source: NCCL 2.28, src/init.cc and
src/include/device.h; measured over sockets: 69 MiB more a rank, for 8 connections."""
CHANNELS_PER_NIC = 2
CONNECTIONS_PER_CHANNEL = 4
"""In and out of a node, of a ring and of a tree. Source: NCCL 2.28, src/graph/connect.cc; counted
as the former: 8 of two channels."""
RESERVE_RATIO = 0.25
"""Other versions of torch, CUDA and drivers hold more or less. A rule of thumb."""
MEASURED = "measured, docs/measurements.md"


def host_memory(settings: Kubernetes, case: Case) -> MemoryNeed:
    """Of one pod."""
    kind = in_running(case.workload)
    unknown = () if kind.holds_what_is_known else (f"the command {case.workload.name}",)
    return MemoryNeed(parts=tuple(_parts(settings, case)), unknown=unknown)


def _parts(settings: Kubernetes, case: Case) -> Iterator[MemoryPart]:
    processes = tuple(_processes(case))
    yield from processes
    reserve = sum(part.size_bytes for part in processes) * RESERVE_RATIO
    yield memory_part("25 % of that in reserve", reserve, "a rule of thumb: versions differ")
    yield from in_running(case.workload).held_on_host(case)
    shm_bytes = settings.shm_bytes
    if shm_bytes is None and case.device == "cuda":
        shm_bytes = SHM_PER_RANK_BYTES * case.ranks_per_node
    if shm_bytes:
        yield memory_part("/dev/shm", shm_bytes, "`kubernetes.shm_bytes`: it may be filled")


def _processes(case: Case) -> Iterator[MemoryPart]:
    """Without their model. Ranks on CPUs talk by Gloo, over sockets."""
    ranks = case.ranks_per_node
    yield memory_part("torchrun", LAUNCHER_BYTES, MEASURED)
    if case.device == "cpu":
        each_bytes, shared_bytes = CPU_RANK_BYTES, CPU_LIBRARIES_BYTES
    else:
        each_bytes = CUDA_RANK_BYTES + (NCCL_RANK_BYTES if case.world_size > 1 else 0)
        shared_bytes = CUDA_LIBRARIES_BYTES
    what = f"processes of {ranks} rank{'s' * (ranks > 1)}"
    yield memory_part(what, ranks * each_bytes + shared_bytes, MEASURED)
    link = case.link
    if case.device == "cuda" and link is not None:
        connections = CHANNELS_PER_NIC * link.num_nics * CONNECTIONS_PER_CHANNEL
        what = f"NCCL's page-locked buffers of {link.num_nics} NIC{'s' * (link.num_nics > 1)}"
        yield memory_part(what, connections * CONNECTION_BYTES, "NCCL 2.28's sources")
