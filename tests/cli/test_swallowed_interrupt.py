"""Does a signal end the command in one line where a library made another error of it?"""

import signal

import pytest

from broadgauge.cli import main as command


def swallow() -> int:
    """As pydantic does while it builds a model."""
    try:
        signal.raise_signal(signal.SIGHUP)
    except BaseException as error:
        raise ValueError("SchemaError: Interrupt: SIGHUP") from error
    return 0


def test_one_line_and_the_signals_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "main", swallow)
    with pytest.raises(SystemExit) as ended:
        command.entry_point()
    assert ended.value.code == 128 + signal.SIGHUP
    assert capsys.readouterr().err == "broadgauge: interrupted by SIGHUP\n"


def test_an_error_without_a_signal_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> int:
        raise ValueError("a fault")

    monkeypatch.setattr(command, "main", fail)
    with pytest.raises(ValueError, match="a fault"):
        command.entry_point()
