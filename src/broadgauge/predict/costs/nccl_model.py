"""Which algorithm and protocol would NCCL choose, and how long does it take? Its own cost model.

t = latency + bytes / bandwidth for each algorithm and protocol, the smallest is taken. Source:
NVIDIA/nccl v2.28.9 and v2.21.5, src/graph/tuning.cc (ncclTopoTuneModel, ncclTopoGetAlgoTime).

What is known to be wrong there is done otherwise: with two nodes it takes the bandwidth inside a
node (NVIDIA/nccl issue 1172), here the slower of both always counts; and NVLS is left to the rates
(link_rates.py), since its constants differ by release more than its speed.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from broadgauge.predict.case import Op
from broadgauge.predict.facts.arrays import Times

Protocol = Literal["ll", "ll128", "simple"]
PROTOCOLS: tuple[Protocol, ...] = ("ll", "ll128", "simple")
Release = Literal["2.28", "2.21"]

BASE_S: dict[Release, dict[str, tuple[float, float, float]]] = {
    "2.28": {"ring": (6.6e-6, 14.0e-6, 8.4e-6), "tree": (6.8e-6, 14.0e-6, 8.4e-6)},
    "2.21": {"ring": (6.6e-6, 14.0e-6, 8.4e-6), "tree": (6.8e-6, 14.0e-6, 0.0)},
}
"""Of one call, by protocol. The releases 2.18 to 2.21 have no base for tree and Simple."""
NVLINK_S = {"ring": (0.6e-6, 1.9e-6, 3.4e-6), "tree": (0.6e-6, 1.25e-6, 4.0e-6)}
PCIE_S = {"ring": (1.0e-6, 2.5e-6, 5.7e-6), "tree": (1.0e-6, 1.9e-6, 4.0e-6)}
NETWORK_S: dict[Release, dict[str, tuple[float, float, float]]] = {
    "2.28": {"ring": (2.7e-6, 4.0e-6, 14.0e-6), "tree": (5.0e-6, 8.5e-6, 14.0e-6)},
    "2.21": {"ring": (2.7e-6, 4.0e-6, 14.0e-6), "tree": (5.0e-6, 8.5e-6, 28.0e-6)},
}
"""Of a hop to another node over RDMA."""
HOST_OVERHEAD_S = 1.0e-6
"""Of the host's proxy a step, three times that with Simple; 1 µs on Intel, 2 µs on AMD hosts."""
TREE_CORRECTION: dict[Protocol, tuple[float, ...]] = {
    "ll": (
        *(1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6),
        *(0.7, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0),
    ),
    "ll128": (
        *(1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6),
        *(0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0),
    ),
    "simple": (
        *(0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6),
        *(0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9),
    ),
}
"""Of a tree's bandwidth, by powers of two from 64 bytes."""
LL_GBYTE_PER_S = (87.7, 22.5, 19.0)
"""Most that LL carries on one, two, and more nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """Who takes part, and what joins them; arrays, one entry a case."""

    ranks: Times
    nodes: Times
    ranks_per_node: Times
    bus_rate: Times
    """byte/s through the slowest link of the ring, all channels together."""
    is_nvlink: Times
    """1 or 0: NVLink inside a node."""
    is_rdma: Times
    """1 or 0: the NIC reads and writes the GPUs' memory, which LL128 needs."""
    hop_s: Times
    """A message from a GPU to one on another node."""


def collective_s(op: Op, message_bytes: Times, ring: Ring, release: Release = "2.28") -> Times:
    """Seconds of one collective, `message_bytes` as nccl-tests counts them."""
    if op == "send_recv":
        return _point_to_point_s(message_bytes, ring, release)
    if op == "all_to_all":
        return _exchange_s(message_bytes, ring, release)
    algorithms = ("ring", "tree") if op == "all_reduce" else ("ring",)
    best = np.full(len(message_bytes), np.inf)
    for algorithm in algorithms:
        for index, protocol in enumerate(PROTOCOLS):
            latency_s = _latency_s(op, algorithm, index, ring, release)
            rate = _rate(op, algorithm, protocol, message_bytes, ring)
            if algorithm == "ring" and protocol == "simple" and op == "all_reduce":
                latency_s = np.where(ring.nodes > 1, 1.4 * latency_s, latency_s)
            seconds = latency_s + message_bytes / rate
            if protocol == "ll128":
                is_on = (ring.is_nvlink > 0) & ((ring.is_rdma > 0) | (ring.nodes < 2))
                seconds = np.where(is_on, seconds, np.inf)
            best = np.minimum(best, seconds)
    return best


def hop_s(ring: Ring, algorithm: str, index: int, release: Release) -> Times:
    """A message to another node: NCCL's figure for RDMA, plus what this network's is above it."""
    usual = NETWORK_S[release][algorithm]
    return np.asarray(np.maximum(0.2 * usual[index], usual[index] + ring.hop_s - usual[2]))


def _inside_s(ring: Ring, algorithm: str, index: int) -> Times:
    nvlink, pcie = NVLINK_S[algorithm][index], PCIE_S[algorithm][index]
    return np.where(ring.is_nvlink > 0, nvlink, pcie)


def _latency_s(op: Op, algorithm: str, index: int, ring: Ring, release: Release) -> Times:
    """Base, and the steps of ring or tree inside and between nodes."""
    base_s = BASE_S[release][algorithm][index]
    inside_s, outside_s = _inside_s(ring, algorithm, index), hop_s(ring, algorithm, index, release)
    if algorithm == "tree":
        depth = np.log2(np.maximum(ring.nodes, 1.0))
        return base_s + 2 * ((ring.ranks_per_node - 1) * inside_s + depth * outside_s)
    rounds = 2.0 if op == "all_reduce" else 1.0
    across = np.where(ring.nodes > 1, rounds * (ring.nodes - 1), 0.0)
    overhead_s = HOST_OVERHEAD_S * (3.0 if index == 2 else 1.0)
    step_s = np.where(ring.nodes > 1, np.maximum(inside_s, overhead_s), inside_s)
    return base_s + (rounds * (ring.ranks - 1) - across) * step_s + across * outside_s


def _rate(op: Op, algorithm: str, protocol: Protocol, message_bytes: Times, ring: Ring) -> Times:
    """byte/s of the whole message."""
    limit = np.asarray(LL_GBYTE_PER_S)[np.clip(ring.nodes, 1, 3).astype(np.int64) - 1] * 1e9
    bus = ring.bus_rate
    if algorithm == "tree":
        bus = 0.92 * bus
        factor = {"ll": 1 / 3.8, "ll128": 0.92, "simple": 1.0}[protocol]
        bus = bus * factor * _tree_correction(protocol, message_bytes)
        bus = np.minimum(bus, limit) if protocol == "ll" else bus
        return 0.5 * bus
    bus = bus * {"ll": 0.5, "ll128": 0.92, "simple": 1.0}[protocol]
    bus = np.minimum(bus, limit) if protocol == "ll" else bus
    rounds = 2.0 if op == "all_reduce" else 1.0
    return bus * ring.ranks / (rounds * np.maximum(ring.ranks - 1, 1.0))


def _tree_correction(protocol: Protocol, message_bytes: Times) -> Times:
    """Between powers of two NCCL interpolates; above the last there is no correction."""
    table = TREE_CORRECTION[protocol]
    power = np.log2(np.maximum(message_bytes, 64.0) / 64.0)
    return np.where(power > len(table), 1.0, np.interp(power, np.arange(len(table)), table))


def _point_to_point_s(message_bytes: Times, ring: Ring, release: Release) -> Times:
    """One hop with Simple, as sends and receives have it."""
    inside_s = _inside_s(ring, "ring", 2)
    outside_s = hop_s(ring, "ring", 2, release)
    base_s = BASE_S[release]["ring"][2]
    return base_s + np.where(ring.nodes > 1, outside_s, inside_s) + message_bytes / ring.bus_rate


def _exchange_s(message_bytes: Times, ring: Ring, release: Release) -> Times:
    """Sends to all others, which NCCL starts together: the host's work for each, and one hop."""
    sends_s = HOST_OVERHEAD_S * (ring.ranks - 1)
    one = _point_to_point_s(np.zeros_like(message_bytes), ring, release)
    share = (ring.ranks - 1) / ring.ranks
    return one + sends_s + message_bytes * share / ring.bus_rate
