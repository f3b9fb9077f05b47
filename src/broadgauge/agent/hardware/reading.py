"""What does this process see of its machine? One reading of everything, in a tenth of a second."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from broadgauge.agent.hardware.gpus import read_gpu_driver, read_gpus
from broadgauge.agent.hardware.hcas import read_hcas, read_rdma
from broadgauge.agent.hardware.limits import read_limits
from broadgauge.agent.hardware.machine import read_machine
from broadgauge.agent.hardware.nics import read_nics
from broadgauge.agent.hardware.pci import distance, redirecting_bridges
from broadgauge.agent.hardware.software import read_libraries, read_nccl, read_network_plugins
from broadgauge.agent.hardware.tree import Tree
from broadgauge.agent.hardware.variables import read_variables
from broadgauge.messages.hardware import (
    GpuDevice,
    HardwareFacts,
    HcaFacts,
    NicFacts,
    PciDevice,
    PciDistance,
)

MOST_DISTANCES = 1024
"""16 GPUs and 64 adapters with their virtual functions; what is beyond is left out."""


def read_machine_hardware(root: Path, environ: Mapping[str, str]) -> HardwareFacts:
    """Values of variables are as they are: whoever shows them masks them first."""
    tree = Tree(root)
    machine = read_machine(tree, environ)
    nics, hcas, gpus = read_nics(tree), read_hcas(tree), read_gpus(tree)
    return HardwareFacts(
        machine=machine,
        nics=nics,
        hcas=hcas,
        gpus=gpus,
        distances=tuple(_distances(tree, gpus, _devices(nics, hcas), machine.numa_nodes)),
        rdma=read_rdma(tree),
        gpu_driver=read_gpu_driver(tree),
        limits=read_limits(tree),
        nccl=read_nccl(tree, environ),
        libraries=read_libraries(tree, environ),
        network_plugins=read_network_plugins(tree, environ),
        variables=read_variables(tree, environ),
    )


def _devices(nics: tuple[NicFacts, ...], hcas: tuple[HcaFacts, ...]) -> list[tuple[str, PciDevice]]:
    """A NIC that belongs to an adapter is named by the adapter."""
    found = [(hca.name, hca.pci) for hca in hcas if hca.pci is not None]
    of_hcas = {pci.address for _, pci in found}
    of_nics = [(nic.name, nic.pci) for nic in nics if nic.pci is not None]
    return found + [(name, pci) for name, pci in of_nics if pci.address not in of_hcas]


def _distances(
    tree: Tree,
    gpus: tuple[GpuDevice, ...],
    devices: list[tuple[str, PciDevice]],
    numa_nodes: int | None,
) -> Iterator[PciDistance]:
    pairs = [(gpu, name, pci) for gpu in gpus for name, pci in devices]
    for gpu, name, pci in pairs[:MOST_DISTANCES]:
        yield PciDistance(
            gpu=gpu.pci.address,
            device=name,
            distance=distance(gpu.pci, pci, numa_nodes),
            acs_bridges=redirecting_bridges(tree, gpu.pci, pci),
        )
