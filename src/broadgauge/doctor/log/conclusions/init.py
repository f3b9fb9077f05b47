"""Did all ranks complete their initialisation, how long did it take, and who fell silent?"""

from collections.abc import Iterator
from statistics import median_low

from broadgauge.doctor.log.conclusions.conclusion import Conclusion
from broadgauge.doctor.log.conclusions.limits import (
    INIT_S_PER_RANK,
    LONG_BOOTSTRAP_S,
    LONG_INIT_S,
    OTHERS_LINES,
)
from broadgauge.doctor.log.facts import CommunicatorFacts, LogReading, Place, ProcessFacts
from broadgauge.doctor.log.job import largest
from broadgauge.doctor.log.speakers import rank_words, who
from broadgauge.specs.records.record import Confidence, Finding, Severity
from broadgauge.specs.units import show_time

_FEWEST_PROCESSES = 3
"""Of two nobody says which one is early."""

_ENDS_ITS_OWN_START = frozenset(
    {
        *("memlock", "ib-call-failed", "ib-register-gpu-memory", "ib-out-of-queues"),
        *("ib-open-failed", "ofi-memory-registration", "gcp-guest-config", "no-network-plugin"),
        *("cuda-not-ready", "mnnvl-imex"),
        *("driver-too-old", "same-gpu", "shm-file", "shm-segment", "shm-extend-older"),
        *("nccl-system-call", "threads-exhausted", "topology-attribute", "graph-file-of-others"),
    }
)
"""Rules of lines with which a rank says why it can't start: that nothing is heard of others means
no more than that their logs are not among the files."""


def init_not_completed(reading: LogReading) -> Iterator[Conclusion]:
    """Ranks that began and never completed: what a stuck job's log says first."""
    for communicator in reading.communicators.values():
        stuck = _stuck(reading, communicator)
        if not stuck:
            continue
        missing = _never_began(communicator)
        if _is_excerpt(reading, communicator, stuck):
            yield _not_told(communicator, stuck)
            continue
        yield Conclusion(
            place=_end(reading, communicator, stuck),
            finding=Finding(
                rule="init-not-completed",
                severity=Severity.WARNING if communicator.completed else Severity.ERROR,
                symptom=_stuck_words(communicator, stuck, missing),
                evidence=_counts(communicator),
                cause=_stuck_cause(communicator, missing),
                fix=_stuck_fix(missing),
                confidence=Confidence.LIKELY if missing else Confidence.POSSIBLE,
            ),
            is_consequence=not missing or _says_why(reading),
        )


def _says_why(reading: LogReading) -> bool:
    return any(seen.rule.id in _ENDS_ITS_OWN_START for seen in reading.seen)


def _stuck(reading: LogReading, communicator: CommunicatorFacts) -> set[int]:
    """Ranks that began and did not complete.

    Where lines of several processes ran together, one that says so may be lost: among ranks that
    completed, one that told how long its initialisation took did, too.
    """
    stuck = communicator.started - communicator.completed
    if not communicator.completed:
        return stuck
    return {rank for rank in stuck if not _told_its_time(reading, communicator, rank)}


def _is_excerpt(reading: LogReading, communicator: CommunicatorFacts, stuck: set[int]) -> bool:
    """Is it plain that lines are missing, so that those of the completion may be, too?

    Connections are there; or ranks speak whose beginning is not in the log, nor anybody's first
    lines. Without that a log that ends here is one of a job that hangs here.
    """
    if communicator.has_connected:
        return True
    if set(communicator.members) - communicator.started - communicator.completed:
        return True
    speakers = {communicator.members[rank] for rank in stuck if rank in communicator.members}
    known = [reading.processes[who] for who in speakers if who in reading.processes]
    return not any(p.bootstrap or p.version or p.network or p.interfaces for p in known)


def _not_told(communicator: CommunicatorFacts, stuck: set[int]) -> Conclusion:
    return Conclusion(
        place=communicator.place,
        finding=Finding(
            rule="init-end-not-in-log",
            severity=Severity.INFO,
            symptom=f"no line says that {rank_words(stuck)} completed the initialisation",
            evidence=_counts(communicator),
            cause="the log is an excerpt: other lines that each rank writes are missing, too",
            fix="where the job hangs, give the whole log",
            confidence=Confidence.LIKELY,
        ),
    )


def _told_its_time(reading: LogReading, communicator: CommunicatorFacts, rank: int) -> bool:
    speaker = communicator.members.get(rank)
    process = None if speaker is None else reading.processes.get(speaker)
    return process is not None and process.init_s is not None


def _never_began(communicator: CommunicatorFacts) -> set[int]:
    """Ranks of which nobody read a line that they began; empty where the number is not known."""
    if communicator.num_ranks is None:
        return set()
    known = communicator.started | communicator.completed | set(communicator.members)
    return set(range(communicator.num_ranks)) - known


def _stuck_words(communicator: CommunicatorFacts, stuck: set[int], missing: set[int]) -> str:
    if missing:
        return (
            f"nothing was heard of {rank_words(missing)} of {communicator.num_ranks}, and "
            f"no line says that {rank_words(stuck)} completed the initialisation"
        )
    of_all = "" if communicator.num_ranks is None else f" of {communicator.num_ranks}"
    return f"{rank_words(stuck)}{of_all} began to initialise, and no line says that they completed"


def _counts(communicator: CommunicatorFacts) -> tuple[str, ...]:
    completed = len(communicator.completed)
    known = communicator.num_ranks
    total = "an unknown number of ranks" if known is None else f"{known} ranks"
    return (
        f"communicator {communicator.identity} at {communicator.place}",
        f"of {total} {len(communicator.started)} began, {completed} completed",
    )


def _stuck_cause(communicator: CommunicatorFacts, missing: set[int]) -> str:
    if missing:
        return (
            "all others wait for these: they did not start, crashed before, or can't reach rank 0; "
            "or their logs are not among the files"
        )
    if communicator.completed:
        return (
            "the others are through: these ranks failed or hang while they connect, or their lines "
            "are cut"
        )
    return "no rank got through: they can't reach each other, or the log was cut while they began"


def _stuck_fix(missing: set[int]) -> str:
    if missing:
        return (
            f"look at {rank_words(missing)}: does the process run, on which host, and what is its "
            "last line? Then: does its host reach the bootstrap's address and port?"
        )
    return (
        "read the last lines of these ranks; `py-spy dump` of one shows where it waits; a firewall "
        "or a wrong interface (NCCL_SOCKET_IFNAME) between hosts is the usual reason"
    )


def _end(reading: LogReading, communicator: CommunicatorFacts, stuck: set[int]) -> Place:
    """The last line of the first of them: what went wrong was said before."""
    speakers = [
        communicator.members[rank] for rank in sorted(stuck) if rank in communicator.members
    ]
    known = [reading.processes[who] for who in speakers if who in reading.processes]
    return next((process.last_place or process.place for process in known), communicator.place)


def long_init(reading: LogReading) -> Iterator[Conclusion]:
    """Of the slowest process, where NCCL says its times (2.22 and later)."""
    communicator = largest(reading)
    ranks_s = INIT_S_PER_RANK * (0 if communicator is None else communicator.num_ranks or 0)
    processes = reading.processes.values()
    bootstraps = [(p.bootstrap_s, p) for p in processes if p.bootstrap_s is not None]
    inits = [(p.init_s, p) for p in processes if p.init_s is not None]
    if bootstraps:
        took_s, slowest = max(bootstraps, key=lambda each: each[0])
        if took_s > LONG_BOOTSTRAP_S + ranks_s:
            yield _long(reading, slowest, took_s, LONG_BOOTSTRAP_S + ranks_s, "bootstrap")
            return
    if inits:
        took_s, slowest = max(inits, key=lambda each: each[0])
        if took_s > LONG_INIT_S + ranks_s:
            yield _long(reading, slowest, took_s, LONG_INIT_S + ranks_s, "initialisation")


def _long(
    reading: LogReading, process: ProcessFacts, took_s: float, limit_s: float, what: str
) -> Conclusion:
    is_bootstrap = what == "bootstrap"
    return Conclusion(
        place=process.place,
        finding=Finding(
            rule=f"{what}-long",
            severity=Severity.WARNING,
            symptom=f"NCCL's {what} took {show_time(took_s)} on {who(reading, (process.speaker,))}",
            evidence=(f"more than {show_time(limit_s)}, the most that so many ranks usually take",),
            cause=(
                "a name that resolves slowly, an interface whose packets are lost, or a rank that "
                "came late: all wait for the last one"
                if is_bootstrap
                else "kernels loaded from a slow file system, connections that were tried again, "
                "or a rank that came late"
            ),
            fix=(
                "compare the times of all ranks; NCCL_SOCKET_IFNAME= the fastest interface that "
                "all hosts share; addresses instead of names in MASTER_ADDR"
                if is_bootstrap
                else "look for lines with `retrying`, and at the file system that holds the image"
            ),
            confidence=Confidence.POSSIBLE,
        ),
    )


def fell_silent(reading: LogReading) -> Iterator[Conclusion]:
    """A process whose lines end long before those of the others in the same file."""
    by_file: dict[str, list[tuple[int, ProcessFacts]]] = {}
    for process in reading.processes.values():
        last = process.last_place or process.place
        by_file.setdefault(last.file, []).append((last.line, process))
    for ends in by_file.values():
        others_end = median_low(line for line, _ in ends)
        early = [p for line, p in ends if others_end - line > OTHERS_LINES * len(ends)]
        if len(ends) < _FEWEST_PROCESSES or not early:
            continue
        yield Conclusion(
            place=early[0].last_place or early[0].place,
            finding=Finding(
                rule="log-ends-early",
                severity=Severity.INFO,
                symptom=(
                    f"{who(reading, (p.speaker for p in early))} wrote nothing more while "
                    "the others went on"
                ),
                evidence=tuple(
                    f"{p.last_place or p.place}: its last line; the others' are around {others_end}"
                    for p in early[:3]
                ),
                cause="it ended, crashed or hangs; or its later lines are in another file",
                fix="read on from its last line, and look for its process on its host",
                confidence=Confidence.POSSIBLE,
            ),
        )
