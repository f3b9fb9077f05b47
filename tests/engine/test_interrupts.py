"""Signals end a run between two writes, never inside one."""

import importlib
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from broadgauge.engine.interrupts import Interrupt, Interrupts, signals_to


def test_a_request_is_raised_at_once() -> None:
    with pytest.raises(Interrupt) as caught:
        Interrupts().request(signal.SIGINT)
    assert caught.value.exit_code == 130
    assert not isinstance(caught.value, Exception)


def in_two_shields(interrupts: Interrupts, num_requests: int, done: list[str]) -> None:
    with interrupts.shielded():
        with interrupts.shielded():
            for _ in range(num_requests):
                interrupts.request(signal.SIGTERM)
            done.append("inner")
        done.append("outer")
    done.append("after")


def test_a_shielded_part_is_finished_first() -> None:
    done: list[str] = []
    with pytest.raises(Interrupt):
        in_two_shields(Interrupts(), 1, done)
    assert done == ["inner", "outer"]


def test_a_second_request_does_not_wait() -> None:
    interrupts, done = Interrupts(), list[str]()
    with pytest.raises(Interrupt):
        in_two_shields(interrupts, 2, done)
    assert not done
    in_two_shields(interrupts, 0, done)
    assert done == ["inner", "outer", "after"]


def test_an_error_in_a_shielded_part_is_what_is_raised() -> None:
    interrupts = Interrupts()

    def fail() -> None:
        with interrupts.shielded():
            interrupts.request(signal.SIGINT)
            raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        fail()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_become_requests_and_handlers_come_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Interrupt) as caught, signals_to(Interrupts()):
        os.kill(os.getpid(), number)
    assert caught.value.signal_number == number
    assert signal.getsignal(number) is before


SENDS = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"


@pytest.mark.parametrize(("times", "is_whole"), [(1, True), (2, False)])
def test_a_module_is_imported_to_its_end_unless_asked_twice(
    times: int, is_whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C parts of numpy print what is raised in them, and lose it."""
    name = f"sends_{times}"
    (tmp_path / f"{name}.py").write_text(SENDS * times + "is_whole = True\n")
    monkeypatch.syspath_prepend(tmp_path)

    def imported_and_more() -> None:
        importlib.import_module(name)
        time.sleep(60)

    with pytest.raises(Interrupt) as caught, signals_to(Interrupts()):
        imported_and_more()
    assert caught.value.signal_number == signal.SIGINT
    assert (name in sys.modules) == is_whole
    sys.modules.pop(name, None)


def test_no_request_is_lost_that_waits_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sends_last.py").write_text(SENDS)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Interrupt), signals_to(Interrupts()):
        importlib.import_module("sends_last")
    sys.modules.pop("sends_last", None)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
