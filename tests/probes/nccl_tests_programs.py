"""Compiles the C programs of these tests against the stand-in for MPI."""

import os
import subprocess
from pathlib import Path

from broadgauge.probes.nccl_tests.standin import make_mpi_home

HERE = Path(__file__).parent


def build(source: str, target: Path, *flags: str) -> Path:
    """As nccl-tests' Makefile does with MPI_HOME."""
    target.parent.mkdir(exist_ok=True)
    home = target.parent / "mpi"
    if not home.exists():
        make_mpi_home(home, os.environ)
    command = ["cc", "-Wall", "-Wextra", "-Werror", "-O1", *flags, f"-I{home}/include"]
    command += [str(HERE / source), "-o", str(target), f"-L{home}/lib", "-lmpi"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return target
