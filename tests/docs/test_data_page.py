"""docs/data.md: can its commands be typed, and is what it shows what is printed?"""

import re
import shlex
from pathlib import Path

import pytest

from broadgauge.cli.main import main, make_parser

PAGE = (Path(__file__).parents[2] / "docs/data.md").read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_its_commands_can_be_typed() -> None:
    typed = [
        shlex.split(line, comments=True)
        for block in BLOCKS
        for line in block.splitlines()
        if line.startswith("broadgauge ")
    ]
    assert len(typed) >= 7
    for _, *words in typed:
        assert make_parser().parse_args(words).command == "data"


def test_what_it_shows_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setenv("BROADGAUGE_CACHE", str(tmp_path))
    (shown,) = [block for block in BLOCKS if block.startswith("$ ")]
    typed, *lines = shown.splitlines()
    assert main(shlex.split(typed)[2:]) == 0
    assert capsys.readouterr().out.startswith("\n".join(lines))
