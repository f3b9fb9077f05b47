"""What must NCCL be told of a network's adapters, and why?

Source of the variables: docs.nvidia.com/deeplearning/nccl, "Environment Variables"; NVIDIA/nccl,
src/transport/net_ib.cc and src/misc/utils.cc (`=` before a list asks for exactly these names,
`mlx5_0:1` for a port).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from broadgauge.agent.hardware.pci import DISTANCES
from broadgauge.agent.pod.adapters import VARIABLE, NicAdapter
from broadgauge.agent.pod.facts import TOPOLOGY_FILE, PodFacts
from broadgauge.agent.pod.gids import (
    INDEX,
    RANGE,
    common_index,
    does_nccl_find_them,
    tightest_range,
)
from broadgauge.messages.asked_network import AskedNetwork
from broadgauge.messages.hardware import GpuDevice

SOCKETS_ONLY = {"NCCL_NET": "Socket", "NCCL_NET_PLUGIN": "none", "NCCL_IB_DISABLE": "1"}
_KEPT = "set by the experiment or the image, and kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a variable has its value, or none."""

    variable: str
    value: str | None
    """None: it is left unset."""
    why: str
    is_given: bool = False
    """Is it the user's?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPair:
    """A GPU and the nearest of the network's adapters."""

    gpu: str
    """PCI address."""
    adapter: str
    """`mlx5_0:1`."""
    distance: str
    """As `PciDistance.distance`."""


def with_given(reasons: Iterable[Reason], facts: PodFacts) -> Iterator[Reason]:
    """What the user has set is kept, each variable by itself; what a file of NCCL's says is not."""
    of_files = {each.name: each for each in facts.hardware.variables if each.place != "environment"}
    for each in reasons:
        given, of_file = facts.given.get(each.variable), of_files.get(each.variable)
        if given is not None:
            found = "" if each.value in (None, given) else f"; found here: {each.value}"
            yield Reason(variable=each.variable, value=given, why=f"{_KEPT}{found}", is_given=True)
        elif of_file is not None and each.value is not None:
            why = f"{each.why}; in the place of {of_file.place}'s {of_file.value}"
            yield Reason(variable=each.variable, value=each.value, why=why)
        else:
            yield each


def sockets_only(why: str) -> list[Reason]:
    """NCCL is kept from everything else."""
    return [Reason(variable=n, value=v, why=why) for n, v in SOCKETS_ONLY.items()]


def verbs_reasons(adapters: Sequence[NicAdapter], facts: PodFacts) -> list[Reason]:
    """Of NCCL's own RDMA; none without adapters."""
    if not adapters:
        return []
    names = ",".join(adapter.name for adapter in adapters)
    how = "; ".join(f"{_nic_of(adapter)}{adapter.name}, {adapter.how}" for adapter in adapters)
    return [
        Reason(variable=VARIABLE, value=f"={names}", why=how),
        *_gid_reasons(adapters),
        *_rail_reasons(adapters, facts),
        _topology_reason(adapters, facts),
    ]


def _nic_of(adapter: NicAdapter) -> str:
    nic = adapter.found_nic.nic
    return "" if nic is None else f"{nic.name} is "


def _gid_reasons(adapters: Sequence[NicAdapter]) -> Iterator[Reason]:
    roce = [adapter for adapter in adapters if adapter.is_roce]
    if not roce:
        return
    index = common_index(roce)
    if index is not None:
        why = "RoCE v2 with the NIC's own IPv4 address, by the table of GIDs"
        yield Reason(variable=INDEX, value=str(index), why=why)
        return
    rows = ", ".join(f"{one.name} {'none' if one.gid is None else one.gid.index}" for one in roce)
    why = f"one index for all does not fit ({rows}): NCCL 2.21 or newer takes each one's itself"
    yield Reason(variable=INDEX, value=None, why=why)
    own_range = tightest_range(roce)
    if own_range is None or does_nccl_find_them(roce):
        return
    if does_nccl_find_them(roce, own_range):
        why = "so that it does not take the GID of another address in the adapters' tables"
        yield Reason(variable=RANGE, value=own_range, why=why)


def _rail_reasons(adapters: Sequence[NicAdapter], facts: PodFacts) -> Iterator[Reason]:
    """Adapters in several subnets without a gateway reach their own subnet only: RoCE asks for a
    route by the adapter's own interface. Source: Linux, drivers/infiniband/core/addr.c; NVIDIA/nccl
    issue 2013 (`INIT → RTR … Connection timed out` between rails)."""
    nics = [adapter.found_nic.nic for adapter in adapters if adapter.is_roce]
    subnets = {nic.subnets[0] for nic in nics if nic is not None and nic.subnets}
    links = [facts.links.get(nic.name) for nic in nics if nic is not None]
    if len(subnets) > 1 and not all(link is not None and link.has_gateway for link in links):
        why = (
            f"{len(subnets)} subnets and no gateway between in the main routing table: a NIC "
            "reaches those of its own only"
        )
        yield Reason(variable="NCCL_CROSS_NIC", value="0", why=why)


def _topology_reason(adapters: Sequence[NicAdapter], facts: PodFacts) -> Reason:
    if facts.has_topology_file:
        why = f"NCCL reads {TOPOLOGY_FILE} by itself"
    elif any(pair.distance == "unknown" for pair in pair_gpus(adapters, facts)):
        why = (
            "no file of the virtual machine's PCI topology is here, and the bus says nothing: NCCL "
            "may hold GPUs and adapters to be far apart. `kubernetes.topology_file` sends one"
        )
    else:
        why = "NCCL reads the PCI bus itself"
    return Reason(variable="NCCL_TOPO_FILE", value=None, why=why)


def gpudirect_reasons(network: AskedNetwork) -> list[Reason]:
    """Where it is forbidden; that it is on where it must be is seen in NCCL's log."""
    if network.gpudirect is not False:
        return []
    why = "asked for without GPUDirect: the NIC never reads the GPUs' memory"
    return [Reason(variable="NCCL_NET_GDR_LEVEL", value="LOC", why=why)]


def nearest_to_gpus(
    adapters: Sequence[NicAdapter], number: int, facts: PodFacts
) -> list[NicAdapter]:
    """As many of them, each GPU's nearest in turn; in their own order. All where they are fewer."""
    left, chosen = list(adapters), list[NicAdapter]()
    while left and len(chosen) < number:
        before = len(chosen)
        for gpu in facts.gpus:
            if left and len(chosen) < number:
                (pair,) = pair_gpus(left, facts, (gpu,))
                chosen += [one for one in left if one.name == pair.adapter]
                left = [one for one in left if one.name != pair.adapter]
        if len(chosen) == before:  # no GPU that could choose
            chosen.append(left.pop(0))
    return [one for one in adapters if one in chosen]


def pair_gpus(
    adapters: Sequence[NicAdapter], facts: PodFacts, gpus: Sequence[GpuDevice] | None = None
) -> Iterator[GpuPair]:
    """Each GPU with the nearest adapter; of several as near, the one that has fewest GPUs."""
    if not adapters:
        return
    apart = {(each.gpu, each.device): each.distance for each in facts.hardware.distances}
    load = dict.fromkeys((adapter.name for adapter in adapters), 0)
    for gpu in facts.gpus if gpus is None else gpus:
        address = gpu.pci.address
        distances = {a.name: apart.get((address, a.hca.name), "unknown") for a in adapters}
        name = min(load, key=lambda each: (DISTANCES.index(distances[each]), load[each]))
        load[name] += 1
        yield GpuPair(gpu=address, adapter=name, distance=distances[name])
