"""What is known of a job, on one screen? Facts for the views; nothing is judged here."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from broadgauge.doctor.log.conclusions.adapter_kinds import kind_of
from broadgauge.doctor.log.facts import CommunicatorFacts, LogReading, ProcessFacts
from broadgauge.doctor.log.gdr_state import GdrState, GdrStates
from broadgauge.doctor.log.job import largest, num_nodes
from broadgauge.doctor.log.speakers import who

MOST_GDR_ROWS = 64
"""Rows of the matrix of ranks and adapters; equal ones are one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldValue:
    """One thing that some processes said of themselves."""

    value: str
    who: str
    """`ranks 0 to 7`."""
    num_processes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterUse:
    """Adapters of one name on all hosts that list it."""

    name: str
    link: str
    """`IB`, `RoCE`, as NCCL says; what it is where that is something else: `Omni-Path`."""
    speed_gbps: float | None
    num_processes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GdrRow:
    """GPUDirect RDMA of processes that are alike: `on`, `off` or `unknown`."""

    who: str
    all: str
    """Of what they send between nodes."""
    by_adapter: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunicatorOverview:
    """The largest communicator."""

    identity: str
    num_ranks: int | None
    num_nodes: int | None
    """What NCCL takes for nodes."""
    num_channels: int | None
    num_nvls_channels: int | None
    num_collnet_channels: int | None
    num_p2p_channels: int | None
    rings: tuple[tuple[int, ...], ...]
    """Different orders of ranks, each once, by their first channel."""
    has_trees: bool | None
    has_nvls: bool | None
    num_started: int
    """Ranks whose initialisation began, as far as told."""
    num_completed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOverview:
    """Of all logs together. Empty and None: the logs do not say."""

    num_processes: int
    hosts: tuple[str, ...]
    num_nodes: int | None
    library: str
    """`NCCL`, or `RCCL`."""
    versions: tuple[ToldValue, ...]
    networks: tuple[ToldValue, ...]
    plugins: tuple[ToldValue, ...]
    bootstraps: tuple[ToldValue, ...]
    interfaces: tuple[ToldValue, ...]
    adapters: tuple[AdapterUse, ...]
    gdr: tuple[GdrRow, ...]
    """Of processes that use a network other than sockets."""
    sockets: tuple[ToldValue, ...]
    """`4 threads of 4 sockets`."""
    communicator: CommunicatorOverview | None
    num_communicators: int
    init_s: tuple[float, float] | None
    """Of the fastest and of the slowest process."""
    bootstrap_s: tuple[float, float] | None
    variables: dict[str, tuple[ToldValue, ...]]
    """NCCL_* by name; secrets masked."""
    num_lines: int
    num_nccl_lines: int
    num_bytes: int
    problems: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As plain lists and objects."""
        return dataclasses.asdict(self)


def job_overview(reading: LogReading) -> JobOverview:
    """All that the processes told, the commonest first."""
    processes = list(reading.processes.values())
    communicator = largest(reading)
    names = sorted({name for process in processes for name in process.variables})
    return JobOverview(
        num_processes=len(processes),
        hosts=tuple(sorted({speaker.host for speaker in reading.processes})),
        num_nodes=num_nodes(reading),
        library="RCCL" if reading.has_rccl else "NCCL",
        versions=_told(reading, lambda process: process.version),
        networks=_told(reading, lambda process: process.network),
        plugins=_told(reading, lambda process: process.plugin),
        bootstraps=_told(reading, lambda process: process.bootstrap),
        interfaces=_told(reading, lambda process: ", ".join(process.interfaces)),
        adapters=_adapters(processes),
        gdr=_gdr(reading),
        sockets=_told(reading, _sockets),
        communicator=None if communicator is None else _communicator(communicator),
        num_communicators=len(reading.communicators),
        init_s=_ends(process.init_s for process in processes),
        bootstrap_s=_ends(process.bootstrap_s for process in processes),
        variables={name: _told(reading, _variable(name)) for name in names},
        num_lines=reading.num_lines,
        num_nccl_lines=reading.num_nccl_lines,
        num_bytes=reading.num_bytes,
        problems=tuple(reading.problems),
    )


def _told(reading: LogReading, fact: Callable[[ProcessFacts], str | None]) -> tuple[ToldValue, ...]:
    by_value: dict[str, list[ProcessFacts]] = {}
    for process in reading.processes.values():
        if value := fact(process):
            by_value.setdefault(value, []).append(process)
    told = (
        ToldValue(
            value=value,
            who=who(reading, (process.speaker for process in processes)),
            num_processes=len(processes),
        )
        for value, processes in by_value.items()
    )
    return tuple(sorted(told, key=lambda each: -each.num_processes))


def _variable(name: str) -> Callable[[ProcessFacts], str | None]:
    return lambda process: process.variables.get(name)


def _sockets(process: ProcessFacts) -> str | None:
    if process.socket_threads is None:
        return None
    return f"{process.socket_threads} threads of {process.sockets_per_thread or 1} sockets"


def _adapters(processes: Iterable[ProcessFacts]) -> tuple[AdapterUse, ...]:
    users = Counter(adapter for process in processes for adapter in process.adapters.values())
    return tuple(
        AdapterUse(
            name=adapter.name,
            link=adapter.link if (kind := kind_of(adapter.name)) is None else kind.words,
            speed_gbps=None if adapter.speed_mbps is None else adapter.speed_mbps / 1000,
            num_processes=users[adapter],
        )
        for adapter in sorted(users, key=lambda each: (len(each.name), str(each)))
    )


def _gdr(reading: LogReading) -> tuple[GdrRow, ...]:
    """Processes whose states are equal are one row."""
    of_all = GdrStates(reading)
    alike: dict[tuple[GdrState, tuple[tuple[str, GdrState], ...]], list[ProcessFacts]] = {}
    for process in reading.processes.values():
        if process.network is None or process.network.casefold() == "socket":
            continue
        states = tuple((name, of_all.of_adapter(process, name)) for name in process.adapters)
        alike.setdefault((of_all.of_process(process), states), []).append(process)
    rows = (
        GdrRow(
            who=who(reading, (process.speaker for process in processes)),
            all=state.value,
            by_adapter={name: each.value for name, each in states},
        )
        for (state, states), processes in alike.items()
    )
    return tuple(rows)[:MOST_GDR_ROWS]


def _communicator(communicator: CommunicatorFacts) -> CommunicatorOverview:
    return CommunicatorOverview(
        identity=communicator.identity,
        num_ranks=communicator.num_ranks,
        num_nodes=communicator.num_nodes,
        num_channels=communicator.num_channels,
        num_nvls_channels=communicator.num_nvls_channels,
        num_collnet_channels=communicator.num_collnet_channels,
        num_p2p_channels=communicator.num_p2p_channels,
        rings=tuple(dict.fromkeys(ring for _, ring in sorted(communicator.rings.items()))),
        has_trees=communicator.has_trees,
        has_nvls=communicator.has_nvls,
        num_started=len(communicator.started),
        num_completed=len(communicator.completed),
    )


def _ends(times_s: Iterable[float | None]) -> tuple[float, float] | None:
    known = sorted(time_s for time_s in times_s if time_s is not None)
    return (known[0], known[-1]) if known else None
