"""Holds that a hint names only flags that exist."""

import re
from pathlib import Path

import pytest
from tests.engine.making import a_machine

from broadgauge.cli.main import main, make_parser
from broadgauge.results.folder.disk import _HINTS


def test_the_disks_hints_name_flags_of_run() -> None:
    (choices,) = [a.choices for a in make_parser()._actions if isinstance(a.choices, dict)]
    known = set(re.findall(r"--[a-z-]+", choices["run"].format_help()))
    named = set(re.findall(r"--[a-z-]+", " ".join(_HINTS.values())))
    assert named == {"--runs-folder", "--resume"}
    assert named <= known


NEEDS_GPUS = """
name: gpus
platform: local
cluster: {shapes: [1x4], device: cuda}
workloads: [{kind: train}]
networks: [{name: loop, path: sockets}]
"""


def test_a_dry_run_without_the_gpus_names_the_flag_that_plans_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("broadgauge.running.preparing.read_machine", a_machine)
    file = tmp_path / "e.yaml"
    file.write_text(NEEDS_GPUS)
    told = {}
    for flags in ("--dry-run", "--dry-run --assume-gpus 2", f"--runs-folder {tmp_path}/runs"):
        assert main(["run", str(file), *flags.split()]) == 2
        told[flags] = "hint: --assume-gpus 4 plans as if" in capsys.readouterr().err
    assert list(told.values()) == [True, False, False], "where it would work"
    assert main(["run", str(file), "--dry-run", "--assume-gpus", "4"]) == 0


def test_a_run_that_ends_with_the_tool_is_not_let_go_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "quickstart", "--detach", "--runs-folder", str(tmp_path / "runs")]) == 2
    said = capsys.readouterr().err
    assert "this one runs here" in said
    assert "--on hosts" in said
    assert not (tmp_path / "runs").exists()
