"""What of a reading is kept in a trial's record? As much as fits, for all ranks together."""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from broadgauge.doctor.log.facts import CommunicatorFacts, LogReading, Place, Way
from broadgauge.doctor.log.job import largest
from broadgauge.specs.records.nccl import MOST_PAIRS, NcclUse, NcclWay
from broadgauge.specs.records.record import Finding, Severity

_MOST_NAMES = 32
"""Interfaces or adapters."""
_MOST_CHARACTERS = 200
_MOST_NOTES = 5
_LOGS = "logs/"
"""The folder in a run's own."""
_SLOWEST_FIRST = (
    Way.SOCKETS,
    Way.NETWORK,
    Way.SHM,
    Way.GDRDMA,
    Way.COLLNET,
    Way.P2P,
    Way.NVLS,
)
"""What is looked for first, where not all pairs fit."""
Pair = tuple[int, int]


def nccl_use(reading: LogReading, notes: Iterable[str] = ()) -> NcclUse | None:
    """None: NCCL said nothing. `notes`: what was not read."""
    if not reading.num_nccl_lines:
        return None
    processes = tuple(reading.processes.values())
    communicator = largest(reading)
    return NcclUse(
        version=", ".join(_each_once(process.version for process in processes)) or None,
        network=_network([process.network for process in processes]),
        interfaces=_each_once(name for p in processes for name in p.interfaces)[:_MOST_NAMES],
        adapters=_each_once(
            f"{adapter.name}/{adapter.link}" for p in processes for adapter in p.adapters.values()
        )[:_MOST_NAMES],
        num_channels=None if communicator is None else communicator.num_channels,
        num_ranks=None if communicator is None else communicator.num_ranks,
        num_nodes=None if communicator is None else communicator.num_nodes,
        gpudirect=gpudirect_of(reading, communicator),
        ways=() if communicator is None else _ways(communicator),
        init_s=_longest(process.init_s for process in processes),
        bootstrap_s=_longest(process.bootstrap_s for process in processes),
        notes=_first_of(tuple(notes)),
    )


def gpudirect_of(reading: LogReading, communicator: CommunicatorFacts | None) -> bool | None:
    """Do NICs read and write the GPUs' memory in this communicator? None: unknown, or it differs.

    A pair of which only one side does counts: before NVLink, NCCL sends without it and receives
    with it. Source: NVIDIA/nccl v2.28.9, src/graph/paths.cc, ncclTopoCheckGdr (NCCL_NET_GDR_READ).
    """
    paths = {} if communicator is None else communicator.paths
    direct = {pair for pair, ways in paths.items() if Way.GDRDMA in ways}
    staged = {pair for pair, ways in paths.items() if Way.NETWORK in ways} - direct
    if direct or staged:
        return None if direct and staged else bool(direct)
    processes = reading.processes.values()
    able = [can for process in processes for can in process.gdr_by_adapter.values()]
    near = [is_near for process in processes for is_near in process.gdr_by_pair.values()]
    if near:
        return any(near)
    return False if able and not any(able) else None


def worth_recording(findings: Iterable[Finding], folder: str) -> tuple[Finding, ...]:
    """Warnings and errors, as `in_run`."""
    worse = (finding for finding in findings if finding.severity is not Severity.INFO)
    return tuple(in_run(worse, folder))


def in_run(findings: Iterable[Finding], folder: str) -> Iterator[Finding]:
    """Their evidence names files of the folder for logs as they stand in the run folder."""
    named = f"{folder.rstrip('/')}/"
    for finding in findings:
        lines = tuple(line.replace(named, _LOGS) for line in finding.evidence)
        yield finding.model_copy(update={"evidence": lines})


def _network(said: Sequence[str | None]) -> str | None:
    """One that fell back to sockets decides for all."""
    networks = _each_once(said)
    return next((name for name in networks if name.casefold() == "socket"), None) or next(
        iter(networks), None
    )


def _ways(communicator: CommunicatorFacts) -> tuple[NcclWay, ...]:
    left = MOST_PAIRS
    found: list[NcclWay] = []
    for way in _SLOWEST_FIRST:
        channels = {pair: ways[way] for pair, ways in communicator.paths.items() if way in ways}
        line = _line(communicator, way)
        if not channels and line is None:
            continue
        pairs = tuple(sorted(channels))
        found.append(
            NcclWay(
                way=way.value,
                num_pairs=len(pairs),
                pairs=pairs[:left],
                num_channels=max(map(len, channels.values()), default=None),
                line=line,
            )
        )
        left -= len(found[-1].pairs)
    return tuple(found)


def _line(communicator: CommunicatorFacts, way: Way) -> str | None:
    """Between nodes rather than inside one."""
    for between in (True, False):
        if (way, between) in communicator.lines:
            place, text = communicator.lines[way, between]
            return f"{_named(place)}: {text}"[:_MOST_CHARACTERS]
    return None


def _named(place: Place) -> str:
    return f"{_LOGS}{PurePath(place.file).name}:{place.line}"


def _first_of(notes: tuple[str, ...]) -> tuple[str, ...]:
    more = len(notes) - _MOST_NOTES
    return notes if more <= 0 else (*notes[:_MOST_NOTES], f"and {more} notes more")


def _each_once(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))


def _longest(times_s: Iterable[float | None]) -> float | None:
    """Of those that can be: a damaged line may say anything."""
    known = (time_s for time_s in times_s if time_s is not None)
    return max((time_s for time_s in known if math.isfinite(time_s) and time_s >= 0), default=None)
