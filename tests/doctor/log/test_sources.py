"""What is read of files as they come: several of one job, damaged, in other encodings, no logs?"""

import bz2
import gzip
import io
import lzma
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.doctor.log.retelling import (
    SPEAKER,
    clean,
    facts_of,
    findings_of,
    lines_of,
    log_of,
    read_lines,
)

from broadgauge.doctor.log.facts import LogReading, Speaker
from broadgauge.doctor.log.files import open_sources
from broadgauge.doctor.log.reading import read_logs, read_text
from broadgauge.specs.errors import InputError

NAME = "2.28.9-two-nodes"
BASES = (NAME, "2.18.3-p2p-off", "2.21.5-missing-plugin", "2.30.7-dead-peer")
HOSTS = {name[begin:] for name in ("node0", "node1") for begin in range(5)}
"""Also where their first letters were cut off."""


def read_paths(*paths: Path | str) -> LogReading:
    return read_logs(open_sources(paths))


def by_rank(name: str) -> list[list[bytes]]:
    """The log's lines, one list a process; what nobody's name stands before is the first's."""
    ranks: dict[bytes, list[bytes]] = {}
    for line in lines_of(name):
        match = SPEAKER.search(line)
        key = match[2] if match is not None else min(ranks, default=b"")
        ranks.setdefault(key, []).append(line)
    return list(ranks.values())


def write(path: Path, lines: Sequence[bytes]) -> Path:
    data = b"".join(line + b"\n" for line in lines)
    path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("name", BASES)
def test_a_file_a_rank_is_the_same_job(name: str, tmp_path: Path) -> None:
    files = [write(tmp_path / f"rank{i}.log", lines) for i, lines in enumerate(by_rank(name))]
    for reading in (read_paths(*files), read_paths(*reversed(files)), read_paths(tmp_path)):
        assert findings_of(reading) == findings_of(clean(name))
        assert facts_of(reading)["processes"] == facts_of(clean(name))["processes"]


@pytest.mark.parametrize("name", BASES)
def test_rotated_files_are_one_log(name: str, tmp_path: Path) -> None:
    lines = lines_of(name)
    third = len(lines) // 3
    write(tmp_path / "job.log.2.gz", lines[:third])
    write(tmp_path / "job.log.1", lines[third : 2 * third])
    write(tmp_path / "job.log", lines[2 * third :])
    (tmp_path / "settings.json").write_text("NCCL WARN is no log")
    reading = read_paths(tmp_path)
    assert facts_of(reading) == facts_of(clean(name))
    assert findings_of(reading) == findings_of(clean(name))


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("seed", range(3))
def test_ranks_may_be_interleaved_in_any_way(name: str, seed: int) -> None:
    chance = random.Random(seed)
    left = [list(reversed(lines)) for lines in by_rank(name)]
    merged = []
    while any(left):
        merged.append(chance.choice([lines for lines in left if lines]).pop())
    assert findings_of(read_lines(merged)) == findings_of(clean(name))


def test_two_jobs_after_each_other_with_one_pid() -> None:
    """As a pod that is started again writes them: each process has number 7."""
    lines = [SPEAKER.sub(rb"\1:7:7 ", line) for line in lines_of(NAME)]
    once, twice = read_lines(lines), read_lines([*lines, *lines])
    assert set(once.processes) == {Speaker("node0", 7), Speaker("node1", 7)}
    assert set(twice.processes) == set(once.processes)
    assert facts_of(twice)["communicators"] == facts_of(once)["communicators"]
    assert findings_of(twice) == findings_of(once)


@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress, lzma.compress])
def test_a_damaged_archive_is_read_as_far_as_it_goes(
    packed: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    data = b"".join(b"%d %s\n" % (i, line) for i, line in enumerate(lines_of(NAME) * 100))
    whole = packed(data + random.Random(1).randbytes(2**21))
    path = tmp_path / "job.log.gz"
    path.write_bytes(whole[: len(whole) // 2])
    reading = read_paths(path)
    assert facts_of(reading)["processes"] == facts_of(clean(NAME))["processes"]
    [problem] = reading.problems
    assert problem.startswith(f"{path} is read up to line ")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be-mark", "utf-8-sig"])
def test_other_encodings(encoding: str, tmp_path: Path) -> None:
    text = log_of(NAME).decode()
    data = (
        b"\xfe\xff" + text.encode("utf-16-be")
        if encoding == "utf-16-be-mark"
        else text.encode(encoding)
    )
    path = tmp_path / "job.log"
    path.write_bytes(data)
    assert facts_of(read_paths(path)) == facts_of(clean(NAME))


def test_what_is_no_log_is_refused_in_one_message(tmp_path: Path) -> None:
    pipe, program, empty = tmp_path / "pipe", tmp_path / "program", tmp_path / "folder"
    os.mkfifo(pipe)
    program.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(100))
    empty.mkdir()
    for path, words in (
        (pipe, "is a named pipe"),
        (program, "is a program, no log"),
        (empty, "no log in the folder"),
        (tmp_path / "missing.log", "can't be read: No such file or directory"),
        ("/dev/zero", "is a device or a socket, no log"),
        (f"{program}/x.log", "can't be read: Not a directory"),
    ):
        with pytest.raises(InputError, match=words) as refused:
            read_paths(path)
        assert refused.value.hint


def test_a_file_that_vanishes_is_a_problem_of_its_own(tmp_path: Path) -> None:
    gone = write(tmp_path / "a.log", lines_of(NAME))
    write(tmp_path / "b.log", lines_of(NAME))
    sources = list(open_sources([tmp_path]))
    gone.unlink()
    reading = read_logs(sources)
    assert findings_of(reading) == findings_of(clean(NAME))
    assert reading.problems == [f"{gone} can't be read: No such file or directory"]


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "job.log", [])
    reading = read_paths(path)
    assert (reading.num_lines, reading.num_bytes, reading.problems) == (0, 0, [])
    assert findings_of(reading) == []


def test_standard_input_is_unpacked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (log_of(NAME), gzip.compress(log_of(NAME))):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert facts_of(read_paths("-")) == facts_of(clean(NAME))


def test_a_pipe_that_a_shell_made(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=write_end) as cat:
        os.close(write_end)
        assert cat.stdin is not None
        cat.stdin.write(log_of(NAME)[:60_000])
        cat.stdin.close()
        reading = read_paths(f"/dev/fd/{read_end}")
    os.close(read_end)
    assert facts_of(reading) == facts_of(read_text(log_of(NAME)[:60_000]))


def test_lines_cut_in_the_middle_lose_no_more_than_themselves() -> None:
    lines = lines_of(NAME)
    told = facts_of(clean(NAME))["seen"]
    for cut in range(1, 120, 7):
        ends = [line[:-cut] if i % 3 == 0 else line for i, line in enumerate(lines)]
        begins = [line[cut:] if i % 3 == 0 else line for i, line in enumerate(lines)]
        for reading in (read_lines(ends), read_lines(begins)):
            assert {speaker.host for speaker in reading.processes} <= HOSTS
            assert len(facts_of(reading)["seen"]) <= len(told)


def test_messages_of_two_ranks_glued_on_one_line() -> None:
    lines = lines_of(NAME)
    first, rest = lines[:20], lines[20:]
    glued = [*first, *(b"".join(rest[at : at + 2]) for at in range(0, len(rest), 2))]
    assert set(read_lines(glued).processes) == set(clean(NAME).processes)
    assert facts_of(read_lines(glued))["communicators"] == facts_of(clean(NAME))["communicators"]


def test_a_glued_line_that_comes_first_is_of_no_process_of_its_own() -> None:
    lines = [b"loss 2.31" + lines_of(NAME)[0], *lines_of(NAME)]
    assert set(read_lines(lines).processes) == set(clean(NAME).processes)
