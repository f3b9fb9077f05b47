"""Does the stand-in for MPI give what MPI would, between processes and network namespaces?"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from broadgauge.messages.free_port import free_port
from broadgauge.probes.nccl_tests.child import run_marked
from broadgauge.probes.nccl_tests.standin import build_library
from broadgauge.probes.trial import RefusedError

from .nccl_tests_programs import build

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build("standin_check.c", tmp_path_factory.mktemp("standin") / "standin_check")


def start(program, rank, size, *, before=(), **variables):
    library = program.parent / "mpi/lib"
    contract = {"RANK": str(rank), "WORLD_SIZE": str(size), "LD_LIBRARY_PATH": str(library)}
    return subprocess.Popen(
        [*before, str(program)],
        cwd=program.parent,
        env=os.environ | contract | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(processes):
    ended = [process.communicate(timeout=60) for process in processes]
    return [(process.returncode, *said) for process, said in zip(processes, ended, strict=True)]


def hold_what_mpi_says(ended, size):
    """A plain reference for every call."""
    assert [code for code, *_ in ended] == [0] * size, ended
    for rank, (_, output, _) in enumerate(ended):
        assert json.loads(output) == {
            "rank": rank,
            "secret": 4711,
            "lowest": 1 - size,
            "smallest": 101 - size,
            "longest": size - 1,
            "total": sum(range(size)),
            "most": size - 0.5,
            "sum": sum(r + 0.5 for r in range(size)),
            "squares": [r * r for r in range(size)],
            "thirds": [r / 3 for r in range(size)] if rank == 0 else [],
        }


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("way", ["unix", "tcp"])
def test_every_call_gives_what_mpi_would(program, size, way):
    if way == "unix":
        address = {"BROADGAUGE_STANDIN_SOCKET": f"socket-{size}"}
    else:
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port("127.0.0.1"))}
    ranks = [start(program, rank, size, **address) for rank in reversed(range(size))]
    hold_what_mpi_says(finish(ranks)[::-1], size)


@pytest.mark.namespaces
def test_a_unix_socket_joins_network_namespaces(program):
    """Nothing of the control traffic can cross a network there: these namespaces have none."""
    away = ("unshare", "-rn", "--")
    ranks = [
        start(program, rank, 4, before=away, BROADGAUGE_STANDIN_SOCKET="apart") for rank in range(4)
    ]
    hold_what_mpi_says(finish(ranks), 4)


def test_a_rank_that_leaves_ends_the_others_in_words(program):
    ranks = [
        start(program, rank, 3, BROADGAUGE_STANDIN_SOCKET="left", WAITS="1") for rank in range(3)
    ]
    ended = finish(ranks)
    assert [code for code, *_ in ended] == [70, 70, 9]
    assert all("a peer is gone" in error for _, _, error in ended[:2])


def test_groups_of_ranks_are_refused_in_words(program):
    ranks = [
        start(program, rank, 2, BROADGAUGE_STANDIN_SOCKET="split", SPLIT="1") for rank in range(2)
    ]
    ended = finish(ranks)
    assert {code for code, *_ in ended} == {70}
    assert "unset NCCL_TESTS_SPLIT" in "".join(error for *_, error in ended)


class Recorded:
    def __init__(self):
        self.seen = []

    def before_barrier(self):
        self.seen.append("b")

    def after_timed_part(self):
        self.seen.append("e")


def test_marks_come_before_barriers_and_after_what_is_timed(program):
    """The check reduces two doubles, then meets one barrier."""
    library = str(program.parent / "mpi/lib")
    marks = Recorded()
    variables = os.environ | {"RANK": "0", "WORLD_SIZE": "1", "LD_LIBRARY_PATH": library}
    ended = run_marked([str(program)], program.parent, variables, marks)
    assert (ended.exit_code, ended.is_finished, marks.seen) == (0, True, ["e", "e", "b"])
    assert json.loads(ended.output)["total"] == 0


def test_the_program_dies_with_its_rank(program, tmp_path):
    """A rank that is killed can't end its child: the kernel does, at the stand-in's request."""
    script = f"""
import os, pathlib, subprocess, sys
from broadgauge.probes.nccl_tests.child import run_marked
class Marks:
    def before_barrier(self): ...
    def after_timed_part(self): ...
os.environ |= {{"RANK": "0", "WORLD_SIZE": "2", "BROADGAUGE_STANDIN_SOCKET": "alone",
               "LD_LIBRARY_PATH": {str(program.parent / "mpi/lib")!r}}}
run_marked(["sh", "-c", 'echo $$ > pid; exec {program}'], pathlib.Path("."), os.environ, Marks())
"""
    rank = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path)
    wait_until((tmp_path / "alone").exists)
    child = int((tmp_path / "pid").read_text())
    rank.send_signal(signal.SIGKILL)
    rank.wait()
    wait_until(lambda: not is_running(child))


def wait_until(holds, limit_s=30.0):
    deadline_s = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline_s, "not within the limit"
        time.sleep(0.01)


def is_running(pid):
    """A process that nobody waits for stays as a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def test_without_a_compiler_it_says_what_to_install(tmp_path):
    with pytest.raises(RefusedError, match=r"no C compiler.*apt-get install gcc"):
        build_library(tmp_path, {"PATH": str(tmp_path)})


def test_a_compiler_that_fails_is_quoted(tmp_path):
    with pytest.raises(RefusedError, match="did not compile with false"):
        build_library(tmp_path, {"PATH": os.environ["PATH"], "CC": "false"})
