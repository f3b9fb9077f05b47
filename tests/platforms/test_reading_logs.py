"""Are a launch's logs read within bounds, and is what was not read said?"""

from itertools import count
from pathlib import Path

import pytest
from tests.platforms.planted_nccl import MEMLOCK, nccl_log

from broadgauge.platforms import reading_logs
from broadgauge.platforms.launch_logs import ReadLogs
from broadgauge.platforms.reading_logs import read_logs

NOISE = "node0:100:100 [0] NCCL INFO something that no rule knows\n"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all sizes were a thousandth."""
    monkeypatch.setattr(reading_logs, "FIRST_BYTES", 4096)
    monkeypatch.setattr(reading_logs, "LAST_BYTES", 1024)
    monkeypatch.setattr(reading_logs, "_CHUNK_BYTES", 512)


def paths_in(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / f"b0.l0.rank{rank}.nccl.log" for rank in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


def test_nothing_is_read_of_no_files() -> None:
    assert read_logs(()) == ReadLogs()


def test_two_ranks_are_one_job(tmp_path: Path) -> None:
    told = read_logs(paths_in(tmp_path, nccl_log("sockets", 0), nccl_log("sockets", 1)))
    assert told.nccl is not None
    assert (told.nccl.network, told.nccl.num_nodes, told.nccl.notes) == ("Socket", 2, ())
    (way,) = told.nccl.ways
    assert (way.way, way.pairs) == ("sockets", ((0, 1), (1, 0)))
    assert way.line is not None
    assert way.line.startswith("logs/b0.l0.rank0.nccl.log:")
    assert told.why_sockets is not None


@pytest.mark.usefixtures("small")
def test_of_a_long_log_beginning_and_end_are_read(tmp_path: Path) -> None:
    text = nccl_log("roce", 0) + NOISE * 1000 + nccl_log("roce", 0, MEMLOCK).split("\n\n")[1]
    told = read_logs(paths_in(tmp_path, text))
    assert told.nccl is not None
    assert told.nccl.network == "IB"
    (note,) = told.nccl.notes
    assert note.startswith("b0.l0.rank0.nccl.log was read to its first 4 KiB and last 1 KiB of ")
    evidence = [line for finding in told.findings for line in finding.evidence if MEMLOCK in line]
    assert evidence
    assert evidence[0].startswith("logs/b0.l0.rank0.nccl.log (its end):")


@pytest.mark.usefixtures("small")
def test_no_more_than_so_many_bytes_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_logs, "MOST_BYTES", 4096)
    told = read_logs(paths_in(tmp_path, *(nccl_log("roce", 0) + NOISE * 50 for _ in range(8))))
    assert told.nccl is not None
    assert told.nccl.notes == ("reading ended after 4 KiB of all files",)


def test_nor_for_longer_than_so_long(tmp_path: Path) -> None:
    ticks_s = count(0.0, reading_logs.MOST_S / 3)
    paths = paths_in(tmp_path, *(nccl_log("roce", 0) for _ in range(9)))
    told = read_logs(paths, clock=lambda: next(ticks_s))
    assert told.nccl is not None
    assert told.nccl.notes == ("reading ended after 10 s",)


def test_nor_of_more_than_so_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_logs, "MOST_FILES", 1)
    told = read_logs(paths_in(tmp_path, nccl_log("roce", 0), nccl_log("sockets", 1)))
    assert told.nccl is not None
    assert (told.nccl.network, told.nccl.notes) == ("IB", ("1 of 2 files were read",))


def test_a_file_that_is_gone_is_said(tmp_path: Path) -> None:
    paths = paths_in(tmp_path, nccl_log("roce", 0))
    told = read_logs([*paths, tmp_path / "b0.l0.rank9.nccl.log"])
    assert told.nccl is not None
    assert told.nccl.notes == ("b0.l0.rank9.nccl.log can't be read: No such file or directory",)
