"""Is the right program found, and what can't run refused with how to build it?"""

from pathlib import Path

import pytest

from broadgauge.probes.nccl_tests.programs import HOME_VARIABLE, NAMES, find_program
from broadgauge.probes.trial import RefusedError

OPEN_MPI = b"\x7fELF MPI_Init ompi_mpi_comm_world"


def put(path: Path, content: bytes = OPEN_MPI) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("op", NAMES)
def test_every_collective_has_its_program(op, tmp_path):
    program = put(tmp_path / NAMES[op])
    assert find_program(op, {HOME_VARIABLE: str(tmp_path)}).path == program


@pytest.mark.parametrize("place", ["all_reduce_perf", "build/all_reduce_perf_mpi"])
def test_the_folder_may_be_the_sources_too(place, tmp_path):
    program = put(tmp_path / place)
    assert find_program("all_reduce", {HOME_VARIABLE: str(tmp_path)}).path == program


def test_the_one_with_mpi_wins_and_the_user_s_choice_is_the_only_one(tmp_path):
    put(tmp_path / "a/all_reduce_perf", b"for one process")
    with_mpi = put(tmp_path / "a/all_reduce_perf_mpi")
    elsewhere = {"PATH": f"{tmp_path}/none:{tmp_path}/a"}
    assert find_program("all_reduce", elsewhere).path == with_mpi
    empty = {HOME_VARIABLE: str(tmp_path / "b")}
    with pytest.raises(RefusedError, match=r"is not in .*/b; build it"):
        find_program("all_reduce", elsewhere | empty)


def test_json_is_asked_of_those_that_know_it(tmp_path):
    put(tmp_path / "all_reduce_perf", OPEN_MPI + b" output_file")
    put(tmp_path / "all_gather_perf")
    home = {HOME_VARIABLE: str(tmp_path)}
    assert find_program("all_reduce", home).writes_json
    assert not find_program("all_gather", home).writes_json


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "was built without MPI"),
        (b"printf", "was built without MPI"),
        (b"MPI_Init", "another MPI than Open MPI"),
    ],
)
def test_others_are_refused_with_how_to_build_it(content, why, tmp_path):
    put(tmp_path / "all_reduce_perf", content)
    with pytest.raises(RefusedError) as refused:
        find_program("all_reduce", {HOME_VARIABLE: str(tmp_path)})
    assert why in str(refused.value)
    assert "make -j MPI=1 MPI_HOME=" in str(refused.value)


def test_nothing_is_found_in_words(tmp_path):
    with pytest.raises(RefusedError, match=f"not in PATH, and {HOME_VARIABLE} is not set"):
        find_program("all_reduce", {"PATH": str(tmp_path)})
