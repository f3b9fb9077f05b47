"""How is NCCL led onto one path inside a node, and which path did the bytes take after all?

The log says what NCCL chose; NVLink's own counters say what crossed NVLink. Both are needed:
CUDA's peer copies take NVLink wherever there is one, also where NCCL was told of none and believes
in PCIe. Measured 2026-11-21 on two H200s: with the NVLinks hidden from NCCL by a topology file and
NCCL_P2P_LEVEL=SYS it logged P2P over PHB, and 82 GB/s went over NVLink.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from broadgauge.platforms.nccl_connections import Connection, SeenPath, channels_count
from broadgauge.specs.machines.machine import MachineFacts
from broadgauge.specs.networks.network import PathKind
from broadgauge.specs.records.record import PathFacts
from broadgauge.specs.units import show_size

_PEERS = {"NCCL_P2P_DISABLE": "0"}
_NO_SWITCH = {"NCCL_NVLS_ENABLE": "0", "NCCL_MNNVL_ENABLE": "0"}
SOCKETS_ONLY = {
    "NCCL_NET": "Socket",
    "NCCL_NET_PLUGIN": "none",
    "NCCL_IB_DISABLE": "1",
}
NCCL_VARIABLES: Mapping[PathKind, Mapping[str, str]] = {
    "nvlink": {**_PEERS, "NCCL_P2P_LEVEL": "NVL"},
    "pcie": {**_PEERS, "NCCL_P2P_LEVEL": "SYS", **_NO_SWITCH},
    "shm": {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "0", **_NO_SWITCH},
    "sockets": {
        "NCCL_P2P_DISABLE": "1",
        "NCCL_SHM_DISABLE": "1",
        **_NO_SWITCH,
        **SOCKETS_ONLY,
    },
}
"""Which transports may it use? It takes the first that may: P2P, SHM, NET.

NCCL_P2P_LEVEL is the farthest distance for P2P: NVL keeps PCIe from standing in for NVLink, SYS
allows PCIe across sockets, which is not NCCL's default. NVLS (multicast in the NVLink switch) does
not ask for P2P: it is left to NCCL for `nvlink` and switched off elsewhere. Variables that allow a
transport are set as well, so that the user's shell does not decide. Source:
docs.nvidia.com/deeplearning/nccl, "Environment Variables"; NVIDIA/nccl v2.28.9,
src/graph/paths.cc (ncclTopoCheckP2p, ncclGetLevel: NCCL_P2P_DISABLE=0 leaves it to
NCCL_P2P_LEVEL), src/transport/nvls.cc (ncclNvlsInit), src/transport.cc (order).
"""

NVLINK_SHARE = 0.05
"""Of the bytes that were to be moved: what NVLink may count and still not be the path."""
TELLING_BYTES = 16 * 2**20
"""With less to be moved, a counter in KiB that others may move too says nothing."""

_SLOWEST_FIRST: tuple[SeenPath, ...] = ("network", "sockets", "shm", "pcie", "p2p", "nvlink")
_MOST_LINES = 3
_CUT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class NvlinkUse:
    """What NVLink's counters say of one trial."""

    counted_bytes: int
    """Sum over the case's GPUs, of each the busier direction."""
    least_bytes: int | None
    """What its ranks sent each other at least; None: not known."""

    @property
    def is_used(self) -> bool | None:
        """Did more than a small share of the bytes cross NVLink? None: nobody can tell.

        Too few bytes say nothing, and counters that stand still may be none of this GPU's.
        """
        least_bytes = self.least_bytes or 0
        if self.counted_bytes > max(TELLING_BYTES, NVLINK_SHARE * least_bytes):
            return True
        return False if self.counted_bytes > 0 and least_bytes >= TELLING_BYTES else None

    @property
    def stood_still(self) -> bool:
        """Did nothing at all cross, though the ranks sent much? Then the counters may be dead."""
        return self.counted_bytes == 0 and (self.least_bytes or 0) >= TELLING_BYTES

    @property
    def words(self) -> str:
        """For evidence."""
        if not self.counted_bytes:
            return "NVLink's counters did not move"
        words = f"NVLink's counters rose by {show_size(self.counted_bytes)}"
        if self.least_bytes is None:
            return words
        return f"{words}, the ranks sent {show_size(self.least_bytes)} or more"


def path_facts(
    connections: Sequence[Connection],
    nvlink: NvlinkUse | None,
    *,
    are_joined: bool | None = None,
) -> PathFacts:
    """Which path did the bytes take, and what says so? The slowest one, where there are several.

    `are_joined`: does NVLink join the GPUs? None: NVML does not say.
    """
    used = _used(connections, nvlink, are_joined=are_joined)
    lines = list(dict.fromkeys(_line_of(way, connections) for way in _ways(connections)))
    if nvlink is not None:
        lines.append(nvlink.words)
    return PathFacts(
        used=used,
        channels_count=channels_count(connections) or None,
        evidence=tuple(line[:_CUT] for line in lines[: _MOST_LINES + 1]),
    )


def _ways(connections: Sequence[Connection]) -> list[SeenPath]:
    """Those taken, the slowest first."""
    taken = {connection.way for connection in connections}
    return [way for way in _SLOWEST_FIRST if way in taken]


def _used(
    connections: Sequence[Connection], nvlink: NvlinkUse | None, *, are_joined: bool | None
) -> str:
    """The log's word, corrected by the counters: they can't be told what they count.

    Where the counters can't tell, the log is not believed in two cases: PCIe on GPUs that NVLink
    may join, since CUDA takes NVLink behind NCCL's back; and NVLink while counters stand still.
    """
    ways = _ways(connections)
    peers = {"p2p", "pcie"} & set(ways)
    others = set(ways) - peers
    is_used = None if nvlink is None else nvlink.is_used
    if is_used and "nvlink" not in ways and not (peers and others):
        return "nvlink"
    if is_used is False and ways and ways[0] in ("nvlink", "p2p"):
        return "pcie"
    if is_used is None and ways and ways[0] == "pcie" and are_joined is not False:
        return "unknown"
    if ways and ways[0] == "nvlink" and nvlink is not None and nvlink.stood_still:
        return "unknown"
    return "unknown" if not ways or ways[0] == "p2p" else ways[0]


def _line_of(way: SeenPath, connections: Sequence[Connection]) -> str:
    """The first line of it, with what NCCL takes the peers' connection for."""
    line = next(connection.line for connection in connections if connection.way == way)
    believed = {"nvlink": "NVLink", "pcie": "PCIe"}.get(way) if "P2P" in line else None
    return line if believed is None else f"{line} (NCCL takes it for {believed})"


def mismatch(asked: PathKind, facts: PathFacts) -> str | None:
    """Was another path used than the case means? In words; None: not that we know."""
    if facts.used in (asked, "unknown"):
        return None
    return f"the case asks for path `{asked}`, and the bytes took `{facts.used}`"


PCIE_REFUSAL = (
    "the GPUs of this case are joined by NVLink, and CUDA's peer copies take it whatever NCCL is "
    "told: PCIe peer to peer can't be measured here"
)
PCIE_FIX = (
    "load the driver with NVreg_NvLinkDisable=1 (`options nvidia NVreg_NvLinkDisable=1` in "
    "/etc/modprobe.d, then a reboot), or leave the path `pcie` out; `shm` crosses PCIe as well"
)


def paths_between_gpus(machine: MachineFacts) -> tuple[PathKind, ...]:
    """Which paths could two GPUs of this machine have? The fastest first; on CPUs sockets alone.

    Where nobody knows whether there is NVLink, neither it nor PCIe is promised.
    """
    if len(machine.gpus) < 2:
        return ("sockets",)
    if machine.has_nvlink is None:
        return ("shm", "sockets")
    return ("nvlink" if machine.has_nvlink else "pcie", "shm", "sockets")
