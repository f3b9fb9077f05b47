"""How does nccl-tests run without MPI? With a small library in the place of libmpi (standin/).

    python -m broadgauge.probes.nccl_tests.standin FOLDER

makes FOLDER/include/mpi.h and FOLDER/lib/libmpi.so for `make MPI=1 MPI_HOME=FOLDER`.
"""

import importlib.resources
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from broadgauge.probes.trial import RefusedError

LIBRARY = "libmpi.so.40"
"""Open MPI's name since 3.0: programs linked with it take the stand-in for it."""
COMPILERS = ("cc", "gcc", "clang")


def build_library(folder: Path, environment: Mapping[str, str]) -> Path:
    """Compiles the stand-in into `folder`. Raises RefusedError where that can't be done."""
    named = environment.get("CC", "").split()
    found = [shutil.which(name, path=environment.get("PATH")) for name in COMPILERS]
    compiler = named or [path for path in found if path is not None][:1]
    if not compiler:
        raise RefusedError(
            "engine nccl-tests: no C compiler (cc, gcc or clang) is on PATH, and CC is not set; "
            "one is needed to build the stand-in for MPI: apt-get install gcc libc6-dev"
        )
    library = folder / LIBRARY
    # In the folder itself and with names relative to it, whatever the paths hold.
    for name in ("standin.c", "mpi.h"):
        source = importlib.resources.files(__package__) / "standin" / name
        (folder / name).write_bytes(source.read_bytes())
    flags = ("-std=gnu11", "-O2", "-shared", "-fPIC", f"-Wl,-soname,{LIBRARY}")
    command = [*compiler, *flags, "-o", LIBRARY, "standin.c"]
    try:
        ran = subprocess.run(
            command, cwd=folder, env=dict(environment), capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise RefusedError(f"engine nccl-tests: {compiler[0]} does not run: {error}") from error
    if ran.returncode:
        said = "\n".join(ran.stderr.splitlines()[:5])
        raise RefusedError(
            f"engine nccl-tests: the stand-in for MPI did not compile with {compiler[0]}:\n{said}"
        )
    return library


def make_mpi_home(folder: Path, environment: Mapping[str, str]) -> None:
    """What nccl-tests' Makefile looks for below MPI_HOME."""
    include, lib = folder / "include", folder / "lib"
    include.mkdir(parents=True, exist_ok=True)
    lib.mkdir(exist_ok=True)
    build_library(lib, environment)
    (lib / "standin.c").unlink()
    (lib / "mpi.h").replace(include / "mpi.h")
    link = lib / "libmpi.so"
    link.unlink(missing_ok=True)
    link.symlink_to(LIBRARY)


def main() -> int:
    import os

    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.stderr.write("usage: python -m broadgauge.probes.nccl_tests.standin FOLDER\n")
        return 2
    try:
        make_mpi_home(Path(sys.argv[1]), os.environ)
    except (RefusedError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
