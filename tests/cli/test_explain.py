"""Proves `broadgauge explain` from outside: what it prints, writes and refuses."""

import json
import sys
from pathlib import Path

import pytest
from tests.traces import jobs

from broadgauge.cli.main import main
from broadgauge.specs.errors import ExitCode
from broadgauge.traces.explanation import StepPart

RECORDED = Path(__file__).parents[1] / "traces/recorded"


def explain(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["explain", *map(str, arguments)]) == ExitCode.OK
    return capsys.readouterr().out


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["explain", *map(str, arguments)]) == ExitCode.BAD_INPUT
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


@pytest.fixture
def late(tmp_path: Path) -> Path:
    folder = tmp_path / "late"
    folder.mkdir()
    jobs.ddp(late_us=(0, 300)).write(folder, is_zipped=True)
    return folder


@pytest.fixture
def usual(tmp_path: Path) -> Path:
    folder = tmp_path / "usual"
    folder.mkdir()
    jobs.ddp().write(folder)
    return folder


def test_the_document_is_as_the_page_says(capsys: pytest.CaptureFixture[str], late: Path) -> None:
    found = json.loads(explain(capsys, late, "--json"))
    assert found["steps"] == 3
    assert set(found["parts_s"]) == set(map(str, StepPart))
    assert sum(found["parts_s"].values()) == pytest.approx(found["step_time_s"], abs=1e-12)
    assert [rank["rank"] for rank in found["ranks"]] == [0, 1]
    for rank in found["ranks"]:
        assert sum(rank["parts_s"].values()) == pytest.approx(rank["step_time_s"], abs=1e-12)
    assert found["stragglers"] == [
        {"rank": 1, "delay_s": pytest.approx(800e-6), "cause": "compute"}
    ]
    (collective,) = found["collectives"]
    assert (collective["op"], collective["message_bytes"]) == ("all_reduce", 2 << 20)
    assert found["overlapped_communication_s"] > 0
    assert "compute_slowdown_s" in found


def test_one_rank_s_document_says_what_it_can_not(
    capsys: pytest.CaptureFixture[str], late: Path
) -> None:
    found = json.loads(explain(capsys, late / "rank0.pt.trace.json.gz", "--json"))
    assert found["parts_s"]["straggler_wait"] is None
    assert found["ranks"][0]["parts_s"]["straggler_wait"] is None
    assert found["is_all_ranks"] is False
    assert "upper bound" in found["notes"][0]


@pytest.mark.parametrize("columns", [60, 100])
def test_it_fits_the_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], late: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = explain(capsys, late)
    assert max(map(len, text.splitlines())) <= columns
    for words in ("compute", "exposed communication", "waiting for a late rank", "for rank 1"):
        assert words in " ".join(text.split())


def test_a_part_of_the_steps_is_explained(capsys: pytest.CaptureFixture[str], late: Path) -> None:
    found = json.loads(explain(capsys, late, "--json", "--steps", "1"))
    assert found["step_numbers"] == [1]


def test_two_folders_are_two_runs(
    capsys: pytest.CaptureFixture[str], usual: Path, late: Path
) -> None:
    found = json.loads(explain(capsys, usual, late, "--json"))
    a, b = found["a"]["step_time_s"], found["b"]["step_time_s"]
    assert found["step_ratio"] == pytest.approx(b / a)
    differences = [part["difference_s"] for part in found["parts"]]
    assert sum(differences) == pytest.approx(b - a)
    (collective,) = found["collectives"]
    assert collective["time_ratio"] == pytest.approx(1.0)
    assert collective["busbw_ratio"] == pytest.approx(1.0)
    text = explain(capsys, usual, "--against", late)
    assert "First all_reduce of the backward pass" in " ".join(text.split())


def test_two_traces_of_one_rank_are_two_runs(
    capsys: pytest.CaptureFixture[str], usual: Path, late: Path
) -> None:
    traces = (usual / "rank0.pt.trace.json", late / "rank0.pt.trace.json.gz")
    found = json.loads(explain(capsys, *traces, "--json"))
    waits = {part["part"]: part["difference_s"] for part in found["parts"]}
    assert waits["straggler_wait"] is None
    assert waits["exposed_communication"] == pytest.approx(900e-6)


def test_perfetto_gets_the_parts_as_a_track(
    capsys: pytest.CaptureFixture[str], late: Path, tmp_path: Path
) -> None:
    path = tmp_path / "explained.json"
    explain(capsys, late, "--perfetto", path)
    events = json.loads(path.read_text())["traceEvents"]
    tracks = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in events
        if event["name"] == "thread_name"
    }
    parts = [e for e in events if e["ph"] == "X" and e["pid"] == 0
             and tracks[e["pid"], e["tid"]] == "where the time went"]  # fmt: skip
    steps = [e for e in events if e["name"].startswith("step ") and e["pid"] == 0]
    assert sum(part["dur"] for part in parts) == pytest.approx(sum(s["dur"] for s in steps))
    assert {"compute", "straggler wait", "exposed communication"} <= {p["name"] for p in parts}


def test_the_trace_itself_is_not_overwritten(
    capsys: pytest.CaptureFixture[str], usual: Path
) -> None:
    path = usual / "rank0.pt.trace.json"
    before = path.read_bytes()
    assert "is the trace itself" in refusal(capsys, path, "--perfetto", path)
    assert path.read_bytes() == before


def test_bad_input_is_one_message(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, usual: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    junk = tmp_path / "junk.json"
    junk.write_text("hello")
    assert "no trace in" in refusal(capsys, empty)
    assert "no profiler trace" in refusal(capsys, junk)
    assert "can't be read" in refusal(capsys, tmp_path / "nothing.json")
    assert "no list of steps" in refusal(capsys, usual, "--steps", "one")
    assert "no step 9" in refusal(capsys, usual, "--steps", "9")
    again = tmp_path / "again.json"
    again.write_bytes((usual / "rank0.pt.trace.json").read_bytes())
    assert "--against" in refusal(capsys, usual, again)


def test_a_recorded_trace_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(explain(capsys, *sorted(RECORDED.glob("fsdp2.*torch-2.11.json.gz"))).split())
    assert "FSDP's copies" in text
    assert "First reduce_scatter of the backward pass: FSDP::post_backward_reduce" in text


def test_a_light_install_is_told_what_it_lacks(
    capsys: pytest.CaptureFixture[str], usual: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("broadgauge.traces.reading")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "msgspec", None)
    assert "pip install 'broadgauge[traces]'" in refusal(capsys, usual)


def test_a_name_that_no_file_can_have_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "can't be read: File name too long" in refusal(capsys, "x" * 300)
