"""What every test of imported files needs: a text as a file, and what is read from it."""

from pathlib import Path

from broadgauge.importing.formats import read_measured
from broadgauge.importing.measured import FileMeasured, ImportedMeasurement, ShapeGiven
from broadgauge.importing.source import SourceFile
from broadgauge.specs.records.imported import ImportedProgram

FILES = Path(__file__).parent / "files"
NCCL_TESTS = Path(__file__).parents[1] / "probes/nccl_tests_outputs"


def source(text: str, name: str = "file") -> SourceFile:
    return SourceFile(name=name, text=text, content=text.encode(), changed_unix_s=1e9)


def read_jobs(
    *texts: str, program: ImportedProgram | None = None, **given: object
) -> tuple[FileMeasured, ...]:
    """Each text is a file `file0`, `file1`, …; `given` are fields of ShapeGiven."""
    files = [source(text, f"file{i}") for i, text in enumerate(texts)]
    return read_measured(files, ShapeGiven(**given), program)  # type: ignore[arg-type]


def read(
    text: str, program: ImportedProgram | None = None, **given: object
) -> tuple[ImportedMeasurement, ...]:
    """All measurements of one file."""
    (found,) = read_jobs(text, program=program, **given)
    return found.measured
