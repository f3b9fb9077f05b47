"""What does a file of another program tell of one case? The same for every format."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from broadgauge.importing.source import SourceFile
from broadgauge.merging.collectives import put_headline
from broadgauge.merging.definitions import algbw_gbyte_per_s, busbw_gbyte_per_s
from broadgauge.merging.metrics import MeasurementBuilder
from broadgauge.messages.vocabulary import CollectiveOp
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.machines.cluster import MAX_RANKS_PER_NODE
from broadgauge.specs.records.imported import Imported, ImportedProgram
from broadgauge.specs.records.op_rows import NcclTestsRow
from broadgauge.specs.records.record import ErrorKind, Measurement, Phase, TrialError
from broadgauge.specs.units import show_size
from broadgauge.specs.workloads.workload import CollectivesWorkload, CommandMetric, CommandWorkload

_NO_NAME = re.compile(r"[^a-z0-9._-]+")
_MOST_BYTES = 2**40
FLAGS_OF_SHAPE = "say it: `--nodes 2 --ranks 16` (ranks of all nodes together)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeGiven:
    """What the user says that a file may not tell; None: not said."""

    op: CollectiveOp | None = None
    nodes: int | None = None
    ranks: int | None = None
    """Of all nodes together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a file tells of the machines, None and empty where it does not."""

    version: str | None = None
    """Of the program that measured."""
    nccl: str | None = None
    gpus: tuple[str, ...] = ()
    """Names, one a rank."""
    kernel: str | None = None
    started_unix_s: float | None = None
    elapsed_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMeasurement:
    """One measurement of one case."""

    case: Case
    place: str
    """Where it stands: `all_reduce.txt:12`, `fio.json: jobs[0]`."""
    measurement: Measurement
    facts: Facts
    error: TrialError | None = None
    """The file itself says that it failed."""
    notes: tuple[str, ...] = ()
    """What its reader should know, in sentences."""

    def labelled(self, label: str) -> "ImportedMeasurement":
        """The same under this name in place of the network's."""
        assert self.case.imported is not None
        imported = self.case.imported.model_copy(update={"label": label})
        return replace(self, case=self.case.model_copy(update={"imported": imported}))


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeMeasured:
    """A collective at one size."""

    size_bytes: int
    """Total size S of nccl-tests."""
    iterations: int
    time_s: float
    is_correct: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveMeasured:
    """A collective by size, as another program measured it."""

    program: ImportedProgram
    op: CollectiveOp
    nodes: int
    ranks: int
    dtype: str
    """As torch names it, or `unknown`."""
    sizes: Sequence[SizeMeasured]
    settings: dict[str, str] = field(default_factory=dict)
    warm_up_iterations: int | None = None
    num_wrong: int = 0
    """Of the whole table, where rows do not say which of them is wrong."""
    no_latency: str
    """Why its shortest time is no latency."""


def measured_collective(
    found: CollectiveMeasured, place: str, facts: Facts, notes: tuple[str, ...] = ()
) -> ImportedMeasurement:
    """As a record has it: algbw and busbw follow from size and time, as everywhere.

    Raises InputError where no case can be that.
    """
    case = _case_of_collective(found, place)
    rows = tuple(
        NcclTestsRow(
            engine=found.program,
            op=found.op,
            dtype=found.dtype,
            size_bytes=row.size_bytes,
            iterations=row.iterations,
            time_s=row.time_s,
            algbw_gbyte_per_s=algbw_gbyte_per_s(row.size_bytes, row.time_s),
            busbw_gbyte_per_s=busbw_gbyte_per_s(found.op, found.ranks, row.size_bytes, row.time_s),
            is_correct=row.is_correct,
        )
        for row in found.sizes
    )
    built = MeasurementBuilder(collectives=rows)
    put_headline(built, case)
    if "latency_s" in built.missing and found.ranks > 1:
        built.missing["latency_s"] = found.no_latency
    return ImportedMeasurement(
        case=case,
        place=place,
        measurement=built.measurement(),
        facts=facts,
        error=_wrong(found),
        notes=notes,
    )


def _case_of_collective(found: CollectiveMeasured, place: str) -> Case:
    is_ours = found.dtype in ("float32", "bfloat16")
    iterations = min(row.iterations for row in found.sizes)
    counts = {"min_iterations": iterations, "max_iterations": iterations}
    if found.warm_up_iterations:
        counts["warm_up_iterations"] = found.warm_up_iterations
    too_large = next((row for row in found.sizes if row.size_bytes > _MOST_BYTES), None)
    if too_large is not None:
        raise InputError(f"{place}: a message of {show_size(too_large.size_bytes)} can't be")
    workload = CollectivesWorkload.model_validate(
        {
            "kind": "collectives",
            "name": found.op if is_ours else f"{found.op}-{found.dtype}",
            "ops": (found.op,),
            "sizes": tuple(dict.fromkeys(row.size_bytes for row in found.sizes)),
            "engine": "nccl-tests" if found.program == "nccl-tests" else "torch",
            "check": any(row.is_correct is not None for row in found.sizes),
            **({"dtypes": (found.dtype,)} if is_ours else {}),
            **{name: count for name, count in counts.items() if 2 <= count <= 1000},
        }
    )
    nodes, ranks_per_node = shape_of(found.nodes, found.ranks, place)
    settings = found.settings if is_ours else {**found.settings, "dtype": found.dtype}
    return Case(
        workload=workload,
        network=None,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        device="cuda",
        backend="nccl",
        environment={},
        imported=Imported(program=found.program, settings=settings),
    )


def shape_of(nodes: int, ranks: int, place: str) -> tuple[int, int]:
    """Nodes, and ranks on each. Raises InputError where they don't divide."""
    if ranks % nodes or ranks // nodes > MAX_RANKS_PER_NODE:
        raise InputError(
            f"{place}: {ranks} ranks on {nodes} nodes are not the same number on each",
            hint=FLAGS_OF_SHAPE,
        )
    return nodes, ranks // nodes


def _wrong(found: CollectiveMeasured) -> TrialError | None:
    """What the program itself found to be wrong."""
    row = next((row for row in found.sizes if row.is_correct is False), None)
    if row is None and not found.num_wrong:
        return None
    what = found.op if row is None else f"{found.op} of {show_size(row.size_bytes)}"
    return TrialError(
        kind=ErrorKind.WRONG_RESULT,
        message=f"{what} gave wrong values, says {found.program} itself",
        phase=Phase.MEASURE,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of a program that is no collective."""

    name: str
    """With its unit at the end."""
    key: str
    """Where it stands in the file's JSON, dots between the keys."""
    value: float | None
    """In the unit of the name."""
    scale: float = 1.0
    """What the file's figure was multiplied by."""
    lower_is_better: bool = False
    why_none: str = "not in the file"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandMeasured:
    """What a program printed, figure by figure."""

    program: ImportedProgram
    name: str
    """Of the case, in whatever letters."""
    command: tuple[str, ...]
    """As far as the file tells how it was called."""
    nodes: int
    figures: tuple[Figure, ...]
    settings: dict[str, str] = field(default_factory=dict)
    others: dict[str, float] = field(default_factory=dict)
    """Metrics that have a name of our own: `retransmits_count`."""


def measured_command(
    found: CommandMeasured, place: str, facts: Facts, error: TrialError | None = None
) -> ImportedMeasurement:
    """As a record has it, of one rank a node."""
    workload = CommandWorkload(
        kind="command",
        name=plain_name(found.name, found.program),
        command=found.command,
        metrics=tuple(
            CommandMetric(
                name=figure.name,
                json_key=figure.key,
                scale=figure.scale,
                lower_is_better=figure.lower_is_better,
            )
            for figure in found.figures
        ),
    )
    case = Case(
        workload=workload,
        network=None,
        nodes=found.nodes,
        ranks_per_node=1,
        device="cpu",
        backend="gloo",
        environment={},
        imported=Imported(program=found.program, settings=found.settings),
    )
    built = MeasurementBuilder()
    for figure in found.figures:
        built.put(figure.name, None if error is not None else figure.value, figure.why_none)
    for name, value in found.others.items():
        built.put(name, value)
    return ImportedMeasurement(
        case=case, place=place, measurement=built.measurement(), facts=facts, error=error
    )


def plain_name(text: str, otherwise: str) -> str:
    """Text as a name of ours: lower case, `-` for what may not stand in one."""
    name = _NO_NAME.sub("-", text.lower()).lstrip("._-")[:63].rstrip("._-")
    return name or otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMeasured:
    """One file, or several of the same job, and what they tell."""

    files: tuple[SourceFile, ...]
    measured: tuple[ImportedMeasurement, ...]
    """In the file's order; of a case that stands there again each is a repetition."""
    notes: tuple[str, ...] = ()
    """What was passed over."""
