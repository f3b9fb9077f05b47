"""What does NCCL itself say it uses? Read from its log; a line that is not there is unknown.

Source of the wordings, NCCL 2.18 to 2.30: "Using network %s" and "comm … nRanks %d nNodes %d" in
src/init.cc; "+ NET[%2.1f] - NET/…" in src/graph/topo.cc (10^9 byte/s).
"""

import re
from dataclasses import dataclass
from pathlib import Path

from broadgauge.specs.case import Case

_MAX_BYTES = 4 * 2**20
_NETWORK = re.compile(r"NCCL INFO Using network ([^\r\n]+)")
_SHAPE = re.compile(r"comm \S+ rank \d+ nRanks (\d+) nNodes (\d+)")
_SPEED = re.compile(r"\+ NET\[\s*([\d.]+)\] - NET(?:/\S+ \(\S*/([\d.]+)\))?")
"""Rounded to a tenth in brackets; exact at the end of the line, where the version writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclFacts:
    """NCCL's own view; None: its log does not say."""

    network: str | None = None
    num_ranks: int | None = None
    num_nodes: int | None = None
    """Of the largest communicator."""
    seen_gbps: float | None = None
    """What it takes the slowest of its NICs for."""


def read_nccl_facts(text: str) -> NcclFacts:
    """Parse one rank's log."""
    networks = _NETWORK.findall(text)
    shapes = [(int(ranks), int(nodes)) for ranks, nodes in _SHAPE.findall(text)]
    speeds = [float(exact or rounded) for rounded, exact in _SPEED.findall(text)]
    num_ranks, num_nodes = max(shapes, default=(None, None))
    return NcclFacts(
        network=networks[-1].strip() if networks else None,
        num_ranks=num_ranks,
        num_nodes=num_nodes,
        seen_gbps=min(speeds) * 8 if speeds else None,
    )


def nccl_facts_of_rank(log_stem: str, rank: int) -> NcclFacts:
    """Read a rank's log files; unknown where there are none."""
    stem = Path(log_stem)
    text = ""
    for path in sorted(stem.parent.glob(f"{stem.name}.rank{rank}.nccl*.log")):
        try:
            with path.open("rb") as log:
                text += log.read(_MAX_BYTES).decode(errors="replace")
        except OSError:
            continue
    return read_nccl_facts(text)


def mismatch(case: Case, facts: NcclFacts) -> str | None:
    """Does NCCL contradict what the case means? In words; None: not that we know.

    What the case's own variables decide is the user's to decide.
    """
    if case.nodes < 2:
        return None
    is_whole_job = facts.num_ranks is None or facts.num_ranks >= case.world_size
    if (
        facts.num_nodes is not None
        and is_whole_job
        and "NCCL_HOSTID" not in case.environment
        and facts.num_nodes != case.nodes
    ):
        return f"{case.nodes} nodes were expected, and NCCL saw {facts.num_nodes}"
    if (
        facts.network is not None
        and not {"NCCL_NET", "NCCL_NET_PLUGIN"} & case.environment.keys()
        and facts.network.casefold() != "socket"
    ):
        return f"TCP sockets were expected, and NCCL used the network `{facts.network}`"
    return None


def speed_note(case: Case, facts: NcclFacts, wanted_gbps: float | None) -> str | None:
    """What should the user know of the speed that NCCL believes in?"""
    if case.link is None or facts.seen_gbps is None:
        return None
    told = "by its own detection" if wanted_gbps is None else f"told {wanted_gbps:g} Gbit/s"
    return f"NCCL takes {case.link.name} for {facts.seen_gbps:.3g} Gbit/s, {told}"
