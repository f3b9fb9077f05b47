"""What does one program of nccl-tests say of one size?"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from broadgauge.messages.vocabulary import DataType
from broadgauge.probes.nccl_tests.child import ChildEnd, FailedRunError, Marks, run_marked
from broadgauge.probes.nccl_tests.output import Output, OutputError, read_json, read_text
from broadgauge.probes.nccl_tests.programs import Program
from broadgauge.probes.nccl_tests.workplace import SOCKET, child_environment

TYPE_NAMES: dict[DataType, str] = {"float32": "float", "bfloat16": "bfloat16"}
"""Source: nccl-tests, src/common.cu, test_typenames."""
JSON_FILE = "result.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRun:
    """One run of a program, the same on all ranks but for the place."""

    program: Program
    folder: Path
    local_rank: int
    hostname: str
    dtype: DataType
    size_bytes: int
    iterations: int
    warm_up_iterations: int
    check: bool
    cuda_graphs: bool


def command_of(job: ProgramRun) -> list[str]:
    """Source: nccl-tests, README, "Arguments". `-a 3`: the slowest rank's mean time."""
    return [
        str(job.program.path),
        *("-b", str(job.size_bytes), "-e", str(job.size_bytes)),
        *("-d", TYPE_NAMES[job.dtype]),
        *("-t", "1", "-g", "1", "-a", "3"),
        *("-n", str(job.iterations), "-w", str(job.warm_up_iterations)),
        *("-c", "1" if job.check else "0"),
        *(("-G", "1") if job.cuda_graphs else ()),
        *(("-J", JSON_FILE) if job.program.writes_json else ()),
    ]


def run_program(
    job: ProgramRun, environment: Mapping[str, str], marks: Marks, *, is_root: bool
) -> Output | None:
    """Runs this rank's process; what it measured, on rank 0. Raises FailedRunError."""
    try:
        ended = run_marked(
            command_of(job), job.folder, child_environment(environment, job.local_rank), marks
        )
        if not ended.is_finished:
            raise FailedRunError(ended.describe())
        return _read(job, ended) if is_root else None
    finally:
        if is_root:
            for name in (JSON_FILE, SOCKET):
                (job.folder / name).unlink(missing_ok=True)


def _read(job: ProgramRun, ended: ChildEnd) -> Output:
    """By JSON where there is a file: its figures are not rounded."""
    file = job.folder / JSON_FILE
    try:
        if job.program.writes_json and file.is_file():
            return read_json(file.read_text(errors="replace"))
        return read_text(ended.output, job.hostname)
    except OutputError as error:
        raise FailedRunError(f"{error}; {ended.describe()}") from error
