"""Holds that an interrupt outside of a trial is one line and an exit code, and no traceback."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from broadgauge.cli import schema
from broadgauge.cli.main import main
from broadgauge.engine.interrupts import Interrupt
from broadgauge.running import starting

PREPARING = """\
name: preparing
platform: local
cluster: {shapes: [1x1], device: cpu}
workloads:
  - kind: command
    command: [script.py]
    prepare: [sh, -c, "echo begun; exec sleep 60"]
    metrics: [{name: step_time_s, json_key: a}]
"""
INTERRUPTS = pytest.mark.parametrize(
    ("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)


@INTERRUPTS
def test_an_interrupt_is_one_line_and_its_exit_code(
    number: signal.Signals,
    exit_code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(_options: object) -> int:
        raise Interrupt(number)

    monkeypatch.setattr(schema, "handle", interrupted)
    assert main(["schema"]) == exit_code
    assert capsys.readouterr().err == f"broadgauge: interrupted by {number.name}\n"


@INTERRUPTS
def test_a_signal_before_the_first_trial_ends_the_command_in_words(
    number: signal.Signals, exit_code: int, empty_folder: Path
) -> None:
    (empty_folder / "script.py").touch()
    (empty_folder / "e.yaml").write_text(PREPARING)
    command = [sys.executable, "-m", "broadgauge", "run", "e.yaml"]
    with subprocess.Popen(command, cwd=empty_folder, stderr=subprocess.PIPE, text=True) as tool:
        assert tool.stderr is not None
        for line in tool.stderr:
            if line == "begun\n":
                break
        tool.send_signal(number)
        assert tool.stderr.read() == f"broadgauge: interrupted by {number.name}\n"
    assert tool.returncode == exit_code
    assert not (empty_folder / "runs").exists(), "nothing had been run"


def test_an_interrupt_after_the_last_trial_says_how_to_go_on(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_arguments: object) -> None:
        raise Interrupt(signal.SIGTERM)

    monkeypatch.setattr(starting, "run", interrupted)
    (empty_folder / "script.py").touch()
    file = empty_folder / "e.yaml"
    file.write_text(PREPARING.replace("exec sleep 60", "true"))
    assert main(["run", str(file), "--runs-folder", str(empty_folder)]) == 143
    how, last = capsys.readouterr().err.splitlines()[-2:]
    assert how.startswith("go on with: ")
    assert "--resume" in how
    assert last == "broadgauge: interrupted by SIGTERM"
