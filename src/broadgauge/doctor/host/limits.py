"""Do limits of this process or container stand in a job's way?"""

from collections.abc import Iterator

from broadgauge.agent.hardware.limits import ENOUGH_MEMLOCK_BYTES
from broadgauge.doctor.host.asking import active_ports, gpus_here
from broadgauge.messages.hardware import HardwareFacts
from broadgauge.specs.records.record import Confidence, Finding, Severity
from broadgauge.specs.units import show_size

DOCKER_SHM_BYTES = 64 * 2**20
"""Source: docker run reference, --shm-size: 64 MB unless set; containerd's default is the same."""
CORES_PER_GPU = 4
"""A rank's own thread, NCCL's proxy threads, and data loaders."""


def small_memlock(facts: HardwareFacts) -> Iterator[Finding]:
    """May RDMA lock the memory it registers?"""
    limits = facts.limits
    soft = limits.memlock_soft_bytes
    if not limits.is_memlock_known or soft is None or soft >= ENOUGH_MEMLOCK_BYTES:
        return
    if facts.machine.can_lock_memory is not False or not any(True for _ in active_ports(facts)):
        return
    hard = limits.memlock_hard_bytes
    yield Finding(
        rule="host-memlock",
        severity=Severity.WARNING,
        symptom=f"this process may lock {show_size(soft)} of memory: too little for RDMA",
        evidence=(
            f"/proc/self/limits: Max locked memory {soft}, "
            f"at most {'unlimited' if hard is None else hard}",
            "/proc/self/status: CapEff without CAP_IPC_LOCK",
        ),
        cause="registering memory fails: `ibv_reg_mr … Cannot allocate memory`",
        fix=_memlock_fix(facts, hard),
        confidence=Confidence.CERTAIN,
    )


def _memlock_fix(facts: HardwareFacts, hard: int | None) -> str:
    if facts.machine.container is not None:
        return (
            "securityContext.capabilities.add: [IPC_LOCK], or a runtime whose default is unlimited "
            "(CRI-O default_ulimits, containerd LimitMEMLOCK); Docker: --ulimit memlock=-1"
        )
    if hard is None:
        return "`ulimit -l unlimited` before the job"
    return "`* - memlock unlimited` in /etc/security/limits.d; Slurm: LimitMEMLOCK of slurmd"


def small_shm(facts: HardwareFacts) -> Iterator[Finding]:
    """Is there room for what NCCL and data loaders share?"""
    limits = facts.limits
    size, free = limits.shm_size_bytes, limits.shm_free_bytes
    if limits.has_shm is False:
        what, told = "there is no /dev/shm", "/proc/self/mountinfo: no /dev/shm"
    elif size is not None and size <= DOCKER_SHM_BYTES:
        what, told = f"/dev/shm holds {show_size(size)}", f"/dev/shm: {size} bytes"
    elif size is not None and free is not None and free <= DOCKER_SHM_BYTES:
        what, told = (
            f"/dev/shm is full: {show_size(free)} free",
            f"/dev/shm: {free} of {size} bytes",
        )
    else:
        return
    yield Finding(
        rule="host-shm",
        severity=Severity.WARNING if gpus_here(facts) else Severity.INFO,
        symptom=what,
        evidence=(told,),
        cause="NCCL and PyTorch's data loaders share memory there: `Bus error`, `No space left`",
        fix=(
            "Kubernetes: an emptyDir of medium Memory at /dev/shm; Docker: --shm-size=8g or "
            "--ipc=host; else remove what crashed jobs left in /dev/shm"
        ),
        confidence=Confidence.LIKELY,
    )


def few_cores(facts: HardwareFacts) -> Iterator[Finding]:
    """Has each GPU enough cores?"""
    limits, gpus = facts.limits, gpus_here(facts)
    quota = limits.cpu_limit_millicores
    told = {
        "of the control group (cpu.max)": None if quota is None else quota / 1000,
        "/proc/self/status: Cpus_allowed_list": limits.cpus_allowed,
    }
    known = {name: float(cores) for name, cores in told.items() if cores is not None}
    if not gpus or not known or min(known.values()) >= len(gpus) * CORES_PER_GPU:
        return
    cores = min(known.values())
    place = next(name for name, count in known.items() if count == cores)
    yield Finding(
        rule="host-few-cores",
        severity=Severity.WARNING,
        symptom=f"{cores:g} cores for {len(gpus)} GPU{'s' if len(gpus) > 1 else ''}",
        evidence=(f"{place}: {cores:g}", f"of {limits.cpus_online or 'unknown'} CPUs online"),
        cause="ranks, NCCL's proxy threads and data loaders share them: steps wait for the host",
        fix=f"{CORES_PER_GPU} cores or more a GPU: the pod's CPU limit, Slurm's --cpus-per-task",
        confidence=Confidence.POSSIBLE,
    )


def numa_balancing(facts: HardwareFacts) -> Iterator[Finding]:
    """Does the kernel move memory between NUMA nodes while GPUs read it?"""
    machine = facts.machine
    if not machine.has_numa_balancing or (machine.numa_nodes or 1) < 2 or not gpus_here(facts):
        return
    yield Finding(
        rule="host-numa-balancing",
        severity=Severity.INFO,
        symptom="the kernel moves memory between NUMA nodes by itself",
        evidence=("/proc/sys/kernel/numa_balancing: 1",),
        cause="page faults of its sampling disturb ranks now and then",
        fix="`sysctl kernel.numa_balancing=0`, which NVIDIA's and AMD's tuning guides advise",
        confidence=Confidence.POSSIBLE,
    )


RULES = (small_memlock, small_shm, few_cores, numa_balancing)
