"""What did NCCL Inspector write? A JSON object a collective, rank and communicator.

Its message size is of what a rank gives: of all_gather and reduce_scatter the size of nccl-tests
is that times the ranks. Its times are the kernels' on one rank; the slowest rank that wrote counts.
Source: NVIDIA/nccl plugins/profiler/inspector, inspector_json.cc and inspectorComputeOpBw of
inspector.cc, format v4.0.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from broadgauge.importing.json_values import JsonObject, read_documents
from broadgauge.importing.measured import (
    CollectiveMeasured,
    Facts,
    FileMeasured,
    ImportedMeasurement,
    SizeMeasured,
    measured_collective,
)
from broadgauge.importing.source import SourceFile
from broadgauge.messages.vocabulary import CollectiveOp
from broadgauge.specs.errors import InputError

NO_LATENCY = "NCCL Inspector times kernels, which wait for the slowest rank to come"
_OPS: dict[str, CollectiveOp] = {
    "AllReduce": "all_reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "Broadcast": "broadcast",
    "Reduce": "reduce",
    "All2All": "all_to_all",
}
_PER_RANK = ("all_gather", "reduce_scatter")
_BY_GPU = "kernel_gpu"
_CollectiveId = tuple[str, int]
"""Of its communicator, and its number there."""


@dataclass(slots=True)
class _Case:
    """One collective among so many ranks."""

    times_s: dict[int, dict[_CollectiveId, float]] = field(default_factory=dict)
    """By size: of each collective the slowest rank's."""
    ranks: set[tuple[str, int]] = field(default_factory=set)
    """Communicator and rank, of those that wrote."""
    sources: set[str] = field(default_factory=set)
    dumped_unix_s: tuple[float, ...] = ()
    """The first and the last time that it was written; empty: not told."""


@dataclass(slots=True)
class _Job:
    """Files whose ranks share a communicator."""

    files: list[SourceFile] = field(default_factory=list)
    communicators: set[str] = field(default_factory=set)
    documents: list[JsonObject] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_jobs(files: Sequence[SourceFile]) -> tuple[FileMeasured, ...]:
    """Files of one job together, each job once. Raises InputError."""
    jobs: list[_Job] = []
    for file in files:
        job = _job_of(file)
        for other in [each for each in jobs if each.communicators & job.communicators]:
            jobs.remove(other)
            job = _Job(
                files=[*other.files, *job.files],
                communicators=other.communicators | job.communicators,
                documents=[*other.documents, *job.documents],
                notes=[*other.notes, *job.notes],
            )
        jobs.append(job)
    return tuple(map(_of_job, jobs))


def _job_of(file: SourceFile) -> _Job:
    job = _Job(files=[file])
    documents = _documents(file, job.notes)
    for document in documents:
        job.communicators.add(document.inside("header").text("id"))
        job.documents.append(document)
    return job


def _documents(file: SourceFile, notes: list[str]) -> Iterable[JsonObject]:
    """All of a file; a last line that was being written when the process ended is left out."""
    whole, newline, rest = file.text.rpartition("\n")
    is_torn = bool(rest.strip()) and bool(newline) and not rest.rstrip().endswith("}")
    if is_torn:
        notes.append(f"{file.name}: the last line is cut and was left out")
    for document in read_documents(whole if is_torn else file.text, file.name):
        yield document.object


def _of_job(job: _Job) -> FileMeasured:
    cases: dict[tuple[int, int, CollectiveOp], _Case] = {}
    num_messages = num_unknown = num_alone = num_zero = 0
    for document in job.documents:
        header = document.inside("header")
        nodes, ranks = header.whole("nnodes", least=1), header.whole("n_ranks", least=1)
        if not document.has("coll_perf"):
            num_messages += 1
            continue
        perf = document.inside("coll_perf")
        op = _OPS.get(perf.text("coll"))
        time_us = perf.number("coll_exec_time_us")
        num_unknown += op is None
        num_alone += ranks == 1
        num_zero += time_us == 0
        if op is not None and ranks > 1 and time_us > 0:
            _add(cases.setdefault((nodes, ranks, op), _Case()), document, op, ranks)
    names = ", ".join(file.name for file in job.files)
    counted = (
        (num_messages, "messages between two ranks"),
        (num_unknown, "collectives of other kinds"),
        (num_alone, "collectives of one rank alone"),
        (num_zero, "collectives of 0 us"),
    )
    notes = [f"{names}: {count} {what} were left out" for count, what in counted if count]
    if not cases:
        raise InputError(
            f"{names}: no collective between ranks", hint="is NCCL_INSPECTOR_ENABLE=1 of all ranks?"
        )
    return FileMeasured(
        files=tuple(job.files),
        measured=tuple(_measured(*key, case, names) for key, case in cases.items()),
        notes=(*job.notes, *notes),
    )


def _add(case: _Case, document: JsonObject, op: CollectiveOp, ranks: int) -> None:
    header, perf = document.inside("header"), document.inside("coll_perf")
    size_bytes = perf.whole("coll_msg_size_bytes", least=1) * (ranks if op in _PER_RANK else 1)
    of_size = case.times_s.setdefault(size_bytes, {})
    which = (header.text("id"), perf.whole("coll_sn"))
    time_s = perf.number("coll_exec_time_us") / 1e6
    of_size[which] = max(time_s, of_size.get(which, 0.0))
    case.ranks.add((which[0], header.whole("rank")))
    case.sources.add(perf.maybe_text("coll_timing_source") or _BY_GPU)
    metadata = document.inside("metadata") if document.has("metadata") else None
    dumped_s = None
    if metadata is not None:
        dumped_s = metadata.maybe_time_s("dump_timestamp_us", per_s=1e6)
    if dumped_s is not None:
        case.dumped_unix_s = (
            min((dumped_s, *case.dumped_unix_s)),
            max((dumped_s, *case.dumped_unix_s)),
        )


def _measured(
    nodes: int, ranks: int, op: CollectiveOp, case: _Case, names: str
) -> ImportedMeasurement:
    sizes = [
        SizeMeasured(
            size_bytes=size_bytes,
            iterations=len(times),
            time_s=sum(times.values()) / len(times),
            is_correct=None,
        )
        for size_bytes, times in sorted(case.times_s.items())
    ]
    settings = {} if case.sources == {_BY_GPU} else {"timing": " ".join(sorted(case.sources))}
    found = CollectiveMeasured(
        program="nccl-inspector",
        op=op,
        nodes=nodes,
        ranks=ranks,
        dtype="unknown",
        sizes=sizes,
        settings=settings,
        no_latency=NO_LATENCY,
    )
    communicators = {communicator for communicator, _ in case.ranks}
    wanted = len(communicators) * ranks
    seen = len(case.ranks)
    note = f"{seen} of {wanted} ranks wrote: the slowest of these counts"
    facts = Facts()
    if case.dumped_unix_s:
        first_s, last_s = case.dumped_unix_s
        facts = Facts(started_unix_s=first_s, elapsed_s=last_s - first_s)
    return measured_collective(found, names, facts, (note,) if seen < wanted else ())
