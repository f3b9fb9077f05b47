"""Can RDMA and GPUDirect RDMA be used on this machine, or in this pod?"""

from collections.abc import Mapping

from broadgauge.agent.hardware.gpus import can_dma_buf
from broadgauge.doctor.answer import State, Subject, SubjectAnswer
from broadgauge.doctor.host.asking import (
    active_ports,
    can_use_rdma,
    few_names,
    gpus_here,
    socket_nics,
)
from broadgauge.messages.hardware import HardwareFacts


def host_answers(facts: HardwareFacts) -> Mapping[Subject, SubjectAnswer]:
    """`on`: a job here can use it, which is not to say that it does."""
    rdma = _rdma(facts)
    return {
        Subject.RDMA: rdma,
        Subject.GDR: _gdr(facts, rdma),
        Subject.NVLINK: SubjectAnswer(
            State.UNKNOWN, "a machine's files do not tell; `nvidia-smi nvlink -s` does"
        ),
        Subject.TCP: _tcp(facts),
    }


def _rdma(facts: HardwareFacts) -> SubjectAnswer:
    ports = [f"{hca.name}:{port.number}" for hca, port in active_ports(facts)]
    evidence = tuple(
        f"/sys/class/infiniband/{hca.name}/ports/{port.number}/state: ACTIVE"
        for hca, port in list(active_ports(facts))[:2]
    )
    if can_use_rdma(facts):
        return SubjectAnswer(State.ON, f"{few_names(ports)} can be opened", evidence)
    if not facts.hcas:
        return SubjectAnswer(State.OFF, "no adapter is in this machine or container")
    if not ports:
        return SubjectAnswer(State.OFF, "no port of an adapter is ACTIVE")
    if facts.libraries.get("libibverbs.so.1") is None:
        return SubjectAnswer(State.OFF, "libibverbs is missing", evidence)
    return SubjectAnswer(State.OFF, "no device file of /dev/infiniband can be opened", evidence)


def _gdr(facts: HardwareFacts, rdma: SubjectAnswer) -> SubjectAnswer:
    if rdma.state is not State.ON:
        return SubjectAnswer(State.OFF, f"without RDMA there is none: {rdma.why}")
    if not gpus_here(facts):
        return SubjectAnswer(State.OFF, "no GPU is here")
    driver = facts.gpu_driver
    if driver is not None and driver.peer_memory:
        return SubjectAnswer(State.ON, f"{driver.peer_memory} is loaded", ("/proc/modules",))
    by_dma_buf = can_dma_buf(facts)
    if by_dma_buf is None:
        return SubjectAnswer(State.UNKNOWN, "neither nvidia-peermem nor DMA-BUF is seen from here")
    if by_dma_buf:
        return SubjectAnswer(State.ON, "by DMA-BUF: open kernel modules on Linux 5.12 or later")
    return SubjectAnswer(State.OFF, "nvidia-peermem is not loaded, and there is no DMA-BUF")


def _tcp(facts: HardwareFacts) -> SubjectAnswer:
    nics = [nic.name for nic in socket_nics(facts)]
    if not nics:
        return SubjectAnswer(State.OFF, "no interface is up with an address")
    return SubjectAnswer(State.ON, f"over {few_names(nics)}")
