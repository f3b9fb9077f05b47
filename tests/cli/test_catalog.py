"""Proves cli/catalog.py: what is listed, shown and checked, and how it ends."""

import json
from pathlib import Path

import pytest

from broadgauge.cli.main import main

MINE = """\
networks:
  - name: vnic-100g
    transport: virtio
    nominal_gbps: 100
    typical_gbyte_per_s: {value: 2.1, low: 2.0, high: 2.2}
    source: measured here with broadgauge calibrate
    date: 2026-11-21
"""
IMPOSSIBLE = MINE.replace("high: 2.2", "high: 22") + (
    "prices:\n  - {name: ours, gpu: h100-sxm, price_usd_per_hour: 2, source: our own books}\n"
)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(MINE)
    return path


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["catalog", *words]) == 0
    return capsys.readouterr().out


def test_without_an_action_it_says_which_kinds_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = printed(capsys)
    assert out.splitlines()[0].startswith("gpus ")
    assert "busbw" in out


@pytest.mark.parametrize("width", ["50", "80"])
def test_every_list_fits_the_terminal(
    width: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    out = printed(capsys, "list")
    assert max(map(len, out.splitlines())) <= int(width)
    for name in ("h100-sxm", "roce-400g", "p5.48xlarge", "llama3-8b", "nebius-h100", "dgx1-roce"):
        assert name in out


def test_a_kind_may_be_written_in_the_singular(capsys: pytest.CaptureFixture[str]) -> None:
    assert "llama3-8b" in printed(capsys, "list", "model")


@pytest.mark.parametrize("width", ["50", "80"])
@pytest.mark.parametrize("name", ["h100", "roce-400g*8", "deepseek-v3", "tcp", "p5.48xlarge"])
def test_show_fits_the_terminal_and_names_its_source(
    name: str, width: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    out = printed(capsys, "show", name)
    assert max(map(len, out.splitlines())) <= int(width)
    assert "source" in out


def test_show_has_units(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "show", "h100-sxm")
    assert "989.5 TFLOP/s" in out
    assert "3,350 GB/s" in out
    assert "450 GB/s" in out
    assert "80 GiB" in out


def test_a_name_of_several_kinds_shows_all(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "show", "nebius-h100", "--json")
    document = json.loads(out)
    assert [entry["kind"] for entry in document["entries"]] == ["nodes", "prices"]


def test_json_of_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(printed(capsys, "--json", "list", "gpus"))
    (h100,) = [each for each in document["gpus"] if each["name"] == "h100-sxm"]
    assert h100["peaks"]["bf16"] == 989.5
    assert h100["source"]


@pytest.mark.parametrize("before", [True, False])
def test_the_users_entries_replace_and_say_so(
    before: bool, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flag, action = ["--catalog", str(mine)], ["show", "vnic-100g"]
    out = printed(capsys, *(flag + action if before else action + flag))
    assert "2.1 (2 to 2.2)" in out
    assert "replaces the shipped entry" in " ".join(out.split())


def test_unknown_names_and_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "show", "h1000-sxm"]) == 2
    assert "did you mean `h100-sxm`" in capsys.readouterr().err
    assert main(["catalog", "list", "gpuss"]) == 2
    assert "did you mean `gpus`" in capsys.readouterr().err


def test_what_is_shipped_has_no_problem(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "check"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no problem" in captured.err


def test_check_prints_a_line_a_problem_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(IMPOSSIBLE)
    assert main(["catalog", "check", str(path)]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"{path}:2:5: networks `vnic-100g`: typical 22 GB/s is above")
    assert lines[1] == f"{path}:9:5: prices `ours`: a price without a date: prices age"


def test_check_of_a_file_that_is_no_catalog(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("gpuss: []\nnetworks: 3\n")
    assert main(["catalog", "check", str(path), "--json"]) == 2
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert problems[0] == f"{path}:1:1: unknown kind `gpuss`; did you mean `gpus`?"
    assert problems[1].startswith(f"{path}:2:1: `networks` takes a list")
