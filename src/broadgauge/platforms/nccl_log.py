"""What does NCCL itself say it uses? By its log; a line that is not there is unknown."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from broadgauge.doctor.log.facts import LogReading
from broadgauge.doctor.log.files import text_source
from broadgauge.doctor.log.reading import read_logs
from broadgauge.specs.case import Case

_MOST_BYTES = 4 * 2**20
"""Of one log file: what NCCL chose and how it connects ranks stands in its first part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclFacts:
    """NCCL's own view; None: its log does not say."""

    network: str | None = None
    num_ranks: int | None = None
    num_nodes: int | None = None
    """Of the largest communicator."""
    seen_gbps: float | None = None
    """What it takes the slowest of its NICs for."""


def nccl_facts(reading: LogReading) -> NcclFacts:
    """Of logs of one job's ranks."""
    networks = [each.network for each in reading.processes.values() if each.network is not None]
    speeds = [each.seen_gbps for each in reading.processes.values() if each.seen_gbps is not None]
    sized = [
        (each.num_ranks or 0, each.num_nodes)
        for each in reading.communicators.values()
        if each.num_nodes is not None
    ]
    num_ranks, num_nodes = max(sized, key=lambda size: size[0], default=(None, None))
    return NcclFacts(
        network=networks[-1] if networks else None,
        num_ranks=num_ranks,
        num_nodes=num_nodes,
        seen_gbps=min(speeds, default=None),
    )


def nccl_facts_of_rank(log_stem: str, rank: int) -> NcclFacts:
    """Read a rank's log files; unknown where there are none."""
    return nccl_facts(reading_of_ranks(log_stem, [rank]))


def reading_of_ranks(log_stem: str, ranks: Iterable[int]) -> LogReading:
    """The first part of each file of these ranks; those that can't be read are left out."""
    stem = Path(log_stem)
    sources = []
    for rank in ranks:
        for path in sorted(stem.parent.glob(f"{stem.name}.rank{rank}.nccl*.log")):
            try:
                with path.open("rb") as log:
                    sources.append(text_source(log.read(_MOST_BYTES), path.name))
            except OSError:
                continue
    return read_logs(sources)


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
