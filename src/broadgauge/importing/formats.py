"""Which program wrote this file? Told by what is in it, unless the user says it."""

from collections.abc import Sequence

from broadgauge.importing import (
    fio,
    iperf3,
    nccl_inspector,
    nccl_tests_json,
    nccl_tests_text,
)
from broadgauge.importing.json_values import JsonDocument, begins_object, read_documents
from broadgauge.importing.measured import FileMeasured, ImportedMeasurement, ShapeGiven
from broadgauge.importing.source import SourceFile
from broadgauge.specs.errors import InputError
from broadgauge.specs.records.imported import ImportedProgram

_KEYS: tuple[tuple[ImportedProgram, tuple[str, ...]], ...] = (
    ("fio", ("fio version", "jobs")),
    ("nccl-tests", ("results", "config")),
    ("nccl-inspector", ("header", "coll_perf")),
    ("nccl-inspector", ("header", "p2p_perf")),
    ("iperf3", ("start", "end")),
)
"""What the first object of each must have."""
TRIED = (
    "nccl-tests' table (`# nThread …`) and its JSON (`results`), iperf3's JSON (`start`, `end`), "
    "fio's JSON (`fio version`), NCCL Inspector's lines (`coll_perf`)"
)


def program_of(file: SourceFile) -> ImportedProgram:
    """Raises InputError, naming all that was tried."""
    if any(words in file.text for words in nccl_tests_text.MARKS):
        return "nccl-tests"
    if begins_object(file.text):
        first = next(read_documents(file.text, file.name))
        iperf3.refuse_stream(first.object)
        for program, keys in _KEYS:
            if all(key in first.object.values for key in keys):
                return program
        keys = tuple(first.object.values)
        shown = ", ".join(f"`{key[:30]}`" for key in keys[:6])
        raise InputError(
            f"{file.name}:{first.line}: nobody's JSON that is known: it has {shown or 'no key'}",
            hint=f"tried: {TRIED}",
        )
    line = next((each for each in file.text.splitlines() if each.strip()), "")
    raise InputError(
        f"{file.name}: written by no program that is known; it begins {line.strip()[:60]!r}",
        hint=f"tried: {TRIED}; `iperf3 -J` and `fio --output-format=json` write JSON",
    )


def read_measured(
    files: Sequence[SourceFile], given: ShapeGiven, program: ImportedProgram | None = None
) -> tuple[FileMeasured, ...]:
    """What all files of one label tell, those of one job together. Raises InputError.

    `program`: whose they are; None: it is told from each.
    """
    of_inspector: list[SourceFile] = []
    found: list[FileMeasured] = []
    for file in files:
        own = program or program_of(file)
        if own == "nccl-inspector":
            of_inspector.append(file)
        else:
            found.append(_read(file, own, given))
    return (*found, *nccl_inspector.read_jobs(of_inspector))


def _read(file: SourceFile, program: ImportedProgram, given: ShapeGiven) -> FileMeasured:
    if program == "nccl-tests" and any(words in file.text for words in nccl_tests_text.MARKS):
        measured, notes = nccl_tests_text.read_text(file.text, file.name, given)
        return _some(file, measured, notes)
    measured_all: list[ImportedMeasurement] = []
    notes_all: list[str] = []
    for document in _documents(file, program):
        match program:
            case "nccl-tests":
                measured, notes = nccl_tests_json.read_json(document.object, given)
                measured_all += measured
                notes_all += notes
            case "fio":
                measured_all += fio.read_json(document.object)
            case _:
                measured_all.append(iperf3.read_json(document.object, given))
    return _some(file, measured_all, notes_all)


def _documents(file: SourceFile, program: ImportedProgram) -> tuple[JsonDocument, ...]:
    documents = tuple(read_documents(file.text, file.name))
    if not documents:
        what = "neither its table nor its JSON" if program == "nccl-tests" else "no JSON object"
        raise InputError(
            f"{file.name}: asked for as {program}, and there is {what}", hint=f"tried: {TRIED}"
        )
    return documents


def _some(
    file: SourceFile, measured: Sequence[ImportedMeasurement], notes: Sequence[str]
) -> FileMeasured:
    if not measured:
        why = f": {'; '.join(notes)}" if notes else ""
        raise InputError(f"{file.name}: nothing to import{why}")
    return FileMeasured(files=(file,), measured=tuple(measured), notes=tuple(notes))
