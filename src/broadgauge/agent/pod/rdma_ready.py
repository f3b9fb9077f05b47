"""Can RDMA be used over these adapters from this pod? What stands in its way, in words."""

from collections.abc import Iterator, Sequence

from broadgauge.agent.hardware.gpus import can_dma_buf
from broadgauge.agent.hardware.limits import ENOUGH_MEMLOCK_BYTES
from broadgauge.agent.pod.adapters import LINK_LAYERS, VARIABLE, NicAdapter
from broadgauge.agent.pod.facts import VERBS_LIBRARY, PodFacts
from broadgauge.agent.pod.gids import lacks_gid, no_gid
from broadgauge.messages.asked_network import AskedNetwork
from broadgauge.messages.hardware import HcaFacts
from broadgauge.wording.amounts import show_size


def rdma_problems(
    network: AskedNetwork, adapters: Sequence[NicAdapter], facts: PodFacts
) -> Iterator[str]:
    """Each with its fix. None of them: as far as can be seen, RDMA works from here."""
    for adapter in adapters:
        yield from _port_problems(network, adapter)
    for adapter in adapters:
        yield from _file_problems(adapter.hca, facts)
    yield from _no_file_problems(adapters, facts)
    yield from _process_problems(facts)
    if network.gpudirect is True:
        yield from _gpudirect_problems(facts)


def usable_of(
    value: str, named: Sequence[NicAdapter], facts: PodFacts
) -> tuple[list[NicAdapter], list[str]]:
    """Of the ports that the user's NCCL_IB_HCA names, and notes on the others.

    Where it has beginnings of names or those to leave out, NCCL goes on without ports that are down
    or can't be opened; `=` before whole names asks for these. All of them where none can be used.
    """
    if value.startswith("="):
        return list(named), []
    kept, notes = [], []
    for adapter in named:
        blocked = [*_state_problems(adapter), *_file_problems(adapter.hca, facts)]
        if blocked:
            notes.append(f"{VARIABLE}={value} names more, which NCCL passes over: {blocked[0]}")
        elif lacks_gid(adapter, facts.given):
            notes.append(f"{VARIABLE}={value} names more, which NCCL may try: {no_gid(adapter)}")
        else:
            kept.append(adapter)
    return (kept, notes) if kept else (list(named), [])


def closed_file(hca: HcaFacts, facts: PodFacts) -> str | None:
    """Why this container can't open the adapter's file; None: it can, or which it is is unknown."""
    rdma, file = facts.hardware.rdma, facts.verbs_files.get(hca.name)
    if file is None:
        return None
    if file in rdma.refused_files:
        return f"{hca.name}: {file} does not open: {rdma.refused_files[file]}"
    if file not in rdma.device_files:
        return f"{hca.name}: {file} is not in this container"
    return None


def rdma_notes(facts: PodFacts) -> Iterator[str]:
    """What is likely to stand in its way: where a process finds its libraries is the loader's to
    know, and NCCL fails by itself without this one."""
    has_verbs = facts.hardware.libraries.get(VERBS_LIBRARY, "") is not None
    if not has_verbs and not facts.loader_has_verbs:
        yield (
            f"{VERBS_LIBRARY} was not found in this image, and NCCL can't send by RDMA without it: "
            "rdma-core (libibverbs1) has it"
        )


def _port_problems(network: AskedNetwork, adapter: NicAdapter) -> Iterator[str]:
    port, layer = adapter.port, LINK_LAYERS.get(network.transport or "")
    yield from _state_problems(adapter)
    if layer is not None and port.link_layer not in (None, layer):
        yield (
            f"{adapter.name} is {port.link_layer}, and `{network.transport}` is asked for, which "
            f"needs {layer}"
        )


def _state_problems(adapter: NicAdapter) -> Iterator[str]:
    port = adapter.port
    if port.state not in (None, "ACTIVE"):
        physical = f", {port.physical_state}" if port.physical_state else ""
        yield (
            f"{adapter.name} is {port.state}{physical}, not ACTIVE: cable, switch port or subnet "
            "manager"
        )


def _file_problems(hca: HcaFacts, facts: PodFacts) -> Iterator[str]:
    closed = closed_file(hca, facts)
    if closed is not None:
        is_there = facts.verbs_files.get(hca.name) in facts.hardware.rdma.device_files
        ask = (
            ": ask for the RDMA resource (`rdma/…`, `nvidia.com/…` or `openshift.io/…`) in the "
            "pod's limits"
        )
        yield closed if is_there else f"{closed}{ask}"


def _no_file_problems(adapters: Sequence[NicAdapter], facts: PodFacts) -> Iterator[str]:
    is_any_known = any(one.hca.name in facts.verbs_files for one in adapters)
    if not facts.opened_files and not is_any_known:
        yield (
            "no file /dev/infiniband/uverbs* opens in this container: ask for the RDMA resource in "
            "the pod's limits"
        )


def _process_problems(facts: PodFacts) -> Iterator[str]:
    limits, machine = facts.hardware.limits, facts.hardware.machine
    most = limits.memlock_hard_bytes
    if not limits.is_memlock_known or most is None or most >= ENOUGH_MEMLOCK_BYTES:
        return
    if machine.can_lock_memory is not True:
        yield (
            f"this process may lock {show_size(most)} of memory, too little for RDMA: raise "
            "memlock on the nodes (CRI-O's `default_ulimits` by a MachineConfig, containerd's "
            "LimitMEMLOCK), or take `kubernetes.run_as_user: 0` with `memlock_is_raised: false`, "
            "which asks for IPC_LOCK: a capability that only root's processes get"
        )


def _gpudirect_problems(facts: PodFacts) -> Iterator[str]:
    driver = facts.hardware.gpu_driver
    if driver is None:
        yield "GPUDirect is asked for, and no NVIDIA driver can be seen in this pod"
        return
    has_module = bool(driver.peer_memory or driver.memory_peers)
    if not has_module and can_dma_buf(facts.hardware) is False:
        yield (
            "GPUDirect is asked for, and the node has neither nvidia-peermem nor DMA-BUF (open "
            "kernel modules, Linux 5.12): ClusterPolicy driver.rdma.enabled"
        )
