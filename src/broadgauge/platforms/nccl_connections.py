"""Which way did NCCL take from rank to rank? Read from what it logs when it connects them.

One line a connection, from the sending rank (over the network from both). Source of the wordings,
NCCL 2.18 to 2.30, all of the subsystem INIT: "Channel %02d/%d : %d[%d] -> %d[%d] via P2P/…" in
src/transport/p2p.cc, "Channel %02d : … via SHM/…" in shm.cc (`SHM/direct/direct` up to 2.29,
`SHM/direct` in 2.30.7), "… [send] via NET/Socket/0" in net.cc, "NVLS comm %p headRank …" in
nvls.cc. P2P goes over NVLink or PCIe; which one NCCL takes it for stands in its table of paths
(subsystem GRAPH): "GPU/0-60 :GPU/0-60 (0/5000.0/LOC) GPU/0-70 (2/370.8/NVL) …" in
src/graph/paths.cc, with "GPU/0-60 (0)", GPU and rank, in topo.cc. Up to 2.22 a GPU is `GPU/60`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

SeenPath = Literal["nvlink", "pcie", "shm", "sockets", "network", "p2p"]
"""`p2p`: peer to peer, by NVLink or PCIe, NCCL does not say which. `network`: not TCP."""

_VIA = re.compile(
    r"NCCL INFO (?P<line>Channel (?P<channel>\d+)(?:/\d+)? : (?P<a>\d+)\[[0-9a-f]+\] -> "
    r"(?P<b>\d+)\[[0-9a-f]+\] (?:\[(?:send|receive)\] )?via (?P<via>(?:P2P|SHM|NET)\b[^\r\n]*))"
)
_NVLS = re.compile(r"NCCL INFO (?P<line>NVLS comm \S+ headRank[^\r\n]*)")
_NVLS_CHANNELS = re.compile(r"\d+ coll channels, .*?(?P<count>\d+) nvls channels")
_SYSTEM = "=== System :"
_GPU_RANK = re.compile(r"\+ \S+ - (?P<gpu>GPU/[0-9A-Fa-f-]+) \((?P<rank>\d+)\)")
_ROW = re.compile(r"NCCL INFO (?P<gpu>GPU/[0-9A-Fa-f-]+) :(?P<cells>.*)")
_CELL = re.compile(r"(?P<gpu>GPU/[0-9A-Fa-f-]+) \(\d+/[\d.]+/(?P<kind>[A-Z0-9]{3})\)")

_BY_NVLINK = frozenset({"NVL", "NVB"})
"""NVB: over the NVLinks of a GPU between."""
_BY_PCIE = frozenset({"PIX", "PXB", "PXN", "P2C", "PHB", "SYS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One line of a rank's log."""

    channel: int
    way: SeenPath
    line: str
    """Without host, process and device."""


@dataclass(slots=True)
class _Topology:
    """What the log has said last of the GPUs."""

    gpus: dict[int, str]
    """By rank."""
    kinds: dict[tuple[str, str], str]

    def way(self, rank: int, other: int) -> SeenPath:
        kind = self.kinds.get((self.gpus.get(rank, ""), self.gpus.get(other, "")))
        if kind in _BY_NVLINK:
            return "nvlink"
        return "pcie" if kind in _BY_PCIE else "p2p"


def read_connections(text: str) -> tuple[Connection, ...]:
    """Every connection of one process's log, in the order made."""
    found: list[Connection] = []
    topology = _Topology({}, {})
    num_nvls = 0
    for line in text.splitlines():
        if _SYSTEM in line:
            topology = _Topology({}, {})
        elif (match := _VIA.search(line)) is not None:
            way = _way(match["via"], topology, int(match["a"]), int(match["b"]))
            channel = int(match["channel"])
            found.append(Connection(channel=channel, way=way, line=match["line"].strip()))
        elif (match := _NVLS_CHANNELS.search(line)) is not None:
            num_nvls = int(match["count"])
        elif (match := _NVLS.search(line)) is not None:
            text_of_it = match["line"].strip()
            found += [
                Connection(channel=channel, way="nvlink", line=text_of_it)
                for channel in range(max(1, num_nvls))
            ]
        else:
            _learn(line, topology)
    return tuple(found)


def channels_count(connections: Iterable[Connection]) -> int:
    """How many channels carry something?"""
    return len({connection.channel for connection in connections})


def _way(via: str, topology: _Topology, rank: int, other: int) -> SeenPath:
    if via.startswith("SHM"):
        return "shm"
    if via.startswith("NET"):
        return "sockets" if via.casefold().startswith("net/socket/") else "network"
    return topology.way(rank, other)


def _learn(line: str, topology: _Topology) -> None:
    """Take in a line of the system's or the paths' table."""
    if (match := _GPU_RANK.search(line)) is not None:
        topology.gpus[int(match["rank"])] = match["gpu"]
    elif (match := _ROW.search(line)) is not None:
        for cell in _CELL.finditer(match["cells"]):
            topology.kinds[match["gpu"], cell["gpu"]] = cell["kind"]
