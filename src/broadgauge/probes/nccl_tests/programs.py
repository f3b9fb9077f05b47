"""Which program of nccl-tests measures a collective here, and what can it do?

Only its file is looked at; nothing runs. `NCCL_TESTS_HOME` names the folder, else PATH is searched.
"""

import mmap
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from broadgauge.messages.vocabulary import CollectiveOp
from broadgauge.probes.trial import RefusedError

HOME_VARIABLE = "NCCL_TESTS_HOME"
USUAL_FOLDER = Path("/opt/nccl-tests")
"""Where images that ship nccl-tests have it. Source: aws-samples/awsome-distributed-training,
micro-benchmarks/nccl-tests."""
NAMES: dict[CollectiveOp, str] = {
    "all_reduce": "all_reduce_perf",
    "all_gather": "all_gather_perf",
    "reduce_scatter": "reduce_scatter_perf",
    "all_to_all": "alltoall_perf",
    "broadcast": "broadcast_perf",
    "reduce": "reduce_perf",
    "send_recv": "sendrecv_perf",
}
"""Source: nccl-tests, src/Makefile, BIN_FILES_LIST."""
SUFFIXES = ("_mpi", "")
"""`_mpi` is what nccl-tests' README names programs built with MPI=1."""
HOW_TO_BUILD = (
    "build it without any MPI:\n"
    "  git clone https://github.com/NVIDIA/nccl-tests && cd nccl-tests\n"
    "  python -m broadgauge.probes.nccl_tests.standin mpi\n"
    '  make -j MPI=1 MPI_HOME="$PWD/mpi"\n'
    f'  export {HOME_VARIABLE}="$PWD/build"'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    path: Path
    writes_json: bool
    """From 2.18 on, with `-J`."""


def find_program(op: CollectiveOp, environment: Mapping[str, str]) -> Program:
    """The first that was built with MPI. Raises RefusedError where there is none."""
    seen: list[str] = []
    for path in _candidates(NAMES[op], environment):
        traits = _traits(path)
        if b"MPI_Init" not in traits:
            seen.append(f"{path} was built without MPI (MPI=0), for one process only")
        elif b"ompi_mpi_comm_world" not in traits:
            seen.append(f"{path} was built with another MPI than Open MPI")
        else:
            return Program(path=path, writes_json=b"output_file" in traits)
    where = environment.get(HOME_VARIABLE) or f"PATH, and {HOME_VARIABLE} is not set"
    found = "; ".join(seen) or f"{NAMES[op]} of nccl-tests is not in {where}"
    raise RefusedError(f"engine nccl-tests: {found}; {HOW_TO_BUILD}")


def _candidates(name: str, environment: Mapping[str, str]) -> Iterator[Path]:
    """Programs of this name, the user's own choice first, and then no others."""
    home = environment.get(HOME_VARIABLE)
    if home:
        folders = [Path(home), Path(home) / "build"]
    else:
        folders = [Path(folder) for folder in environment.get("PATH", "").split(os.pathsep)]
        folders += [USUAL_FOLDER, USUAL_FOLDER / "build"]
    for folder in folders:
        for suffix in SUFFIXES:
            path = shutil.which(name + suffix, path=str(folder))
            if path is not None:
                yield Path(path).resolve()


def _traits(path: Path) -> frozenset[bytes]:
    """Which telling words are in the file: names it imports, and options it knows?"""
    words = (b"MPI_Init", b"ompi_mpi_comm_world", b"output_file")
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as all_:
            return frozenset(word for word in words if all_.find(word) >= 0)
    except (OSError, ValueError):  # not readable, or empty
        return frozenset()
