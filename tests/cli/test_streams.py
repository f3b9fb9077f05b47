"""Holds what a command does when its output can't be written: in words, and never a traceback."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from broadgauge.cli.main import COMMANDS, make_parser

GOLDEN = Path(__file__).parents[1] / "results/golden/schema-1"
LIMIT_S = 300
"""Against hangs."""
SHOWING = (["show", "run"], ["export", "run", "--format", "json"], ["schema"])


@pytest.fixture(autouse=True)
def run_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy: what shows a run stores its analysis in it."""
    shutil.copytree(GOLDEN, tmp_path / "run")
    monkeypatch.chdir(tmp_path)


def shell(line: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a line of bash in which `"$@"` is the command."""
    command = [sys.executable, "-m", "broadgauge", *arguments]
    return subprocess.run(
        ["bash", "-c", line, "bash", *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
        env=os.environ | environment,
    )


@pytest.mark.parametrize("arguments", SHOWING, ids=lambda words: words[0])
def test_a_reader_that_leaves_ends_it_quietly(arguments: list[str]) -> None:
    """The reader has left before anything is written."""
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(
        [sys.executable, "-m", "broadgauge", *arguments],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, "")


@pytest.mark.parametrize("arguments", [*SHOWING, ["compare", "run"]], ids=lambda words: words[0])
def test_a_full_disk_is_one_message(arguments: list[str]) -> None:
    ran = shell('"$@" > /dev/full', *arguments)
    assert ran.stderr == "broadgauge: stdout can't be written: No space left on device\n"
    assert ran.returncode == 2


def closings() -> list[Any]:
    """Each stream closed for one command, and all for each; the rest is thorough."""
    every = "<&- >&- 2>&-"
    return [
        pytest.param(
            closing,
            words,
            marks=[] if closing == every or words == SHOWING[-1] else [pytest.mark.thorough],
            id=f"{closing}-{words[0]}",
        )
        for closing in (">&-", "2>&-", every)
        for words in (*SHOWING, ["--help"])
    ]


@pytest.mark.parametrize(("closing", "arguments"), closings())
def test_a_closed_stream_is_no_error(arguments: list[str], closing: str) -> None:
    ran = shell(f'"$@" {closing}', *arguments)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_an_error_with_stderr_closed_has_its_exit_code() -> None:
    ran = shell('"$@" 2>&-', "show", "nowhere")
    assert (ran.returncode, ran.stdout, ran.stderr) == (5, "", "")


def test_help_texts_say_percent_once() -> None:
    parser = make_parser()
    (choices,) = [action.choices for action in parser._actions if isinstance(action.choices, dict)]
    assert len(choices) == len(COMMANDS)
    for text in [parser.format_help(), *(each.format_help() for each in choices.values())]:
        assert "%%" not in text
    assert "95 % intervals" in choices["compare"].format_help()


def test_the_program_is_named_as_it_can_be_typed_again(tmp_path: Path) -> None:
    python = Path(sys.executable)
    ask = "import sys; sys.argv[0] = {started!r}; from broadgauge.cli.output import program"

    def asked(started: str, path: str) -> str:
        code = f"{ask.format(started=started)}; print(program())"
        return shell(f'"{python}" -c "$CODE"', CODE=code, PATH=f"{path}:/usr/bin:/bin").stdout

    away = str(tmp_path)
    assert asked("my venv/bin/broadgauge", away) == "'my venv/bin/broadgauge'\n"
    assert asked("/x/broadgauge/__main__.py", away) == f"{python} -m broadgauge\n"
    installed = shutil.which("broadgauge", path=str(python.parent))
    if installed is not None:
        assert asked(installed, str(python.parent)) == "broadgauge\n"
