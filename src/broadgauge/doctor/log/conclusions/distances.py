"""Has a GPU lost its NVLink, or is no NIC near, by `nvidia-smi topo -m`?"""

from collections.abc import Iterator, Mapping

from broadgauge.doctor.log.conclusions.conclusion import Conclusion
from broadgauge.doctor.log.facts import ListedDistances, LogReading
from broadgauge.doctor.log.speakers import named
from broadgauge.specs.records.record import Confidence, Finding, Severity
from broadgauge.wording.listing import listed

_NVLINK = "NV"
_NEAR = ("PIX", "PXB")
"""GPU and NIC below one PCIe switch, or several: GPUDirect RDMA does not cross the CPU. Source:
NVIDIA/nccl src/graph/paths.cc, ncclTopoCheckGdr, whose default is PXB."""


def nvlink_lost(reading: LogReading) -> Iterator[Conclusion]:
    """A GPU that no NVLink joins to any other, where the others of its table are joined."""
    for table in reading.distances:
        by_gpu = _to_gpus(table)
        joined = {gpu for gpu, ways in by_gpu.items() if any(map(_is_nvlink, ways))}
        alone = sorted(set(by_gpu) - joined)
        if not alone or len(joined) < 2 * len(alone):
            continue
        yield Conclusion(
            place=table.place,
            finding=Finding(
                rule="nvlink-lost",
                severity=Severity.WARNING,
                symptom=(
                    f"no NVLink joins {listed(alone)} to the other GPUs of its node, which are"
                ),
                evidence=tuple(f"{table.place}: {gpu}: {named(by_gpu[gpu])}" for gpu in alone[:3]),
                cause=(
                    "NVLink of that GPU is down (a fault, a reset without the fabric manager), or "
                    "it is a board without a bridge"
                ),
                fix=(
                    "`nvidia-smi nvlink -s -i GPU`, `dmesg | grep -E 'Xid|SXid'`; restart "
                    "nvidia-fabricmanager, then the node; have it looked at if it stays"
                ),
                confidence=Confidence.LIKELY,
            ),
        )


def nics_far(reading: LogReading) -> Iterator[Conclusion]:
    """No NIC is below the same PCIe switch as any GPU."""
    for table in reading.distances:
        nics = {
            pair: cell for pair, cell in table.distances.items() if not pair[1].startswith("GPU")
        }
        if not nics or any(cell in _NEAR for cell in nics.values()):
            continue
        names = named(table.nic_names.get(nic, nic) for _, nic in nics)
        yield Conclusion(
            place=table.place,
            finding=Finding(
                rule="nics-far",
                severity=Severity.INFO,
                symptom=f"no NIC ({names}) is below the same PCIe switch as any GPU",
                evidence=(f"{table.place}: GPU to NIC: {named(nics.values())}",),
                cause=(
                    "so this machine is built, or a virtual machine hides its switches; NCCL "
                    "leaves GPUDirect RDMA off beyond PXB"
                ),
                fix=(
                    "NCCL_NET_GDR_LEVEL=PHB or SYS allows longer ways: measure both; in a virtual "
                    "machine NCCL_TOPO_FILE tells the truth"
                ),
                confidence=Confidence.LIKELY,
            ),
        )


def _to_gpus(table: ListedDistances) -> Mapping[str, set[str]]:
    ways: dict[str, set[str]] = {}
    for (gpu, other), cell in table.distances.items():
        if other.startswith("GPU"):
            ways.setdefault(gpu, set()).add(cell)
    return ways


def _is_nvlink(cell: str) -> bool:
    return cell.startswith(_NVLINK)
