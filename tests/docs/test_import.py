"""Proves docs/import.md: its commands run, and its flags are there."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from broadgauge.cli.main import main, make_parser


def page(repository: Path) -> str:
    return (repository / "docs/import.md").read_text()


def test_its_commands_run(
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = repository / "tests/importing/files"
    shutil.copy(repository / "tests/probes/nccl_tests_outputs/all_reduce.txt", tmp_path)
    shutil.copy(files / "iperf3.json", tmp_path)
    shutil.copy(files / "fio-randread.json", tmp_path / "fio.json")
    (tmp_path / "nccl-inspector-1234").mkdir()
    for log in files.glob("node*.log"):
        shutil.copy(log, tmp_path / "nccl-inspector-1234")
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```\n(.*?)^```", page(repository), re.MULTILINE | re.DOTALL)
    commands = [shlex.split(line, comments=True)[1:] for line in block.splitlines()]
    assert [command[0] for command in commands] == ["import"] * 3 + ["show", "report"]
    for command in commands:
        is_too_low = command[:2] == ["import", "nccl-inspector-1234/"]
        assert main(command) == (8 if is_too_low else 0), command
        told = capsys.readouterr()
        assert "Traceback" not in told.err
    assert len(list(tmp_path.glob("runs/*"))) == 3
    assert len(list(tmp_path.glob("runs/*/report.html"))) == 1


def test_its_flags_are_there(repository: Path) -> None:
    (choices,) = [a.choices for a in make_parser()._actions if isinstance(a.choices, dict)]
    known = set(re.findall(r"--[a-z-]+", choices["import"].format_help()))
    others = {"--bidir", "--output-format", "--against"}
    named = set(re.findall(r"--[a-z]+(?:-[a-z]+)*", page(repository)))
    assert named - others <= known
    assert known - {"--help", "--runs-folder", "--name"} <= named
