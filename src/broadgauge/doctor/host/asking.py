"""What is asked of a machine's facts by several rules?"""

from collections.abc import Iterator, Sequence

from broadgauge.agent.hardware.pci import DISTANCES
from broadgauge.messages.hardware import (
    GpuDevice,
    HardwareFacts,
    HcaFacts,
    HcaPort,
    NicFacts,
    PciDistance,
)
from broadgauge.wording.listing import listed

_NOT_FOR_SOCKETS = ("docker", "lo", "virbr")


def gpus_here(facts: HardwareFacts) -> tuple[GpuDevice, ...]:
    """Those that this process may use, as far as is known."""
    return tuple(gpu for gpu in facts.gpus if gpu.is_usable is not False)


def active_ports(facts: HardwareFacts) -> Iterator[tuple[HcaFacts, HcaPort]]:
    """Ports that RDMA could use."""
    for hca in facts.hcas:
        for port in hca.ports:
            if port.state == "ACTIVE":
                yield hca, port


def can_use_rdma(facts: HardwareFacts) -> bool:
    """An active port, a device file that opens, and libibverbs."""
    files = set(facts.rdma.device_files) - set(facts.rdma.refused_files)
    has_verbs = facts.libraries.get("libibverbs.so.1") is not None
    return bool(files) and has_verbs and any(True for _ in active_ports(facts))


def socket_nics(facts: HardwareFacts) -> tuple[NicFacts, ...]:
    """Interfaces that NCCL's sockets would use, unless variables say otherwise.

    Source: NVIDIA/nccl, src/misc/socket.cc, ncclFindInterfaces: first `ib*`, then all but
    `docker*`, `lo` and `virbr*`, of those that run and have an address.
    """
    running = [
        nic for nic in facts.nics if nic.state != "down" and nic.addresses and not nic.master
    ]
    of_ib = tuple(nic for nic in running if nic.name.startswith("ib"))
    return of_ib or tuple(nic for nic in running if not nic.name.startswith(_NOT_FOR_SOCKETS))


def nearest(facts: HardwareFacts, gpu: GpuDevice) -> PciDistance | None:
    """The active adapter that is nearest to a GPU; None: there is none."""
    active = {hca.name for hca, _ in active_ports(facts)}
    own = [
        each for each in facts.distances if each.gpu == gpu.pci.address and each.device in active
    ]
    return min(own, key=lambda each: DISTANCES.index(each.distance), default=None)


def few_names(names: Sequence[str], most: int = 4) -> str:
    """`mlx5_0, mlx5_1, mlx5_2, mlx5_3 and 4 more`: of adapters and NICs, as many as fit a line."""
    return listed(names, most)
