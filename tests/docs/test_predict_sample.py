"""docs/predict.md shows what `broadgauge predict` prints today."""

import re
import shlex
from pathlib import Path

import pytest

from broadgauge.cli.main import main


def test_the_sample_is_what_the_command_prints(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (repository / "docs" / "predict.md").read_text(encoding="utf-8")
    found = re.search(
        r"`broadgauge (predict --model[^`]+)` has this table:\n\n```\n(.*?)```", text, re.S
    )
    assert found is not None
    monkeypatch.setenv("COLUMNS", "80")
    assert main(shlex.split(found[1])) == 0
    assert found[2] in capsys.readouterr().out, f"broadgauge {found[1]}"
