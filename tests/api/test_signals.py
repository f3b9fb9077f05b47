"""Proves api/ending.py: a signal ends a run in good order, and then goes where it would have."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from broadgauge.api.ending import interruptible
from broadgauge.api.open_run import open_run
from broadgauge.api.progress import Watching
from broadgauge.engine.interrupts import Interrupts, signals_to

ROOT = Path(__file__).parents[2]
SCRIPT = f"""
import signal, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.api.scripted import stand_ins
from tests.api.test_run_and_resume import TINY
for place, name, value in stand_ins():
    setattr(place, name, value)
import broadgauge, os

def told(progress):
    print(progress, flush=True)

first = TINY["workloads"][0] | {{"name": "first"}}
two = [first, first | {{"name": "second", "steps": 6}}]
try:
    broadgauge.run(TINY | {{"workloads": two}}, progress=told)
except KeyboardInterrupt as error:
    print("ended:", error, flush=True)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    del os.environ["LINGER_IN"]
    print(broadgauge.resume("last").is_complete)
"""


def ended_by(number: signal.Signals, folder: Path) -> tuple[int, str]:
    """Its exit code and last words: the signal came in the first trials, which linger after one."""
    command = [sys.executable, "-c", SCRIPT]
    lingering = {**os.environ, "LINGER_IN": "measure"}
    with subprocess.Popen(
        command, cwd=folder, env=lingering, stdout=subprocess.PIPE, text=True
    ) as script:
        assert script.stdout is not None
        for line in script.stdout:
            if line.startswith("[1/4]"):
                break
        script.send_signal(number)
        rest = script.stdout.read()
    return script.returncode, rest


def test_ctrl_c_becomes_a_keyboard_interrupt_that_says_how_to_go_on(empty_folder: Path) -> None:
    code, rest = ended_by(signal.SIGINT, empty_folder)
    ended, complete = rest.splitlines()[-2:]
    folder = open_run("last").folder
    assert (
        ended == f"ended: the run was ended by SIGINT; broadgauge.resume({str(folder)!r}) goes on"
    )
    assert (code, complete) == (0, "True")


def test_another_signal_ends_the_process_as_it_would_have(empty_folder: Path) -> None:
    code, rest = ended_by(signal.SIGTERM, empty_folder)
    assert code == -signal.SIGTERM
    assert "ended" not in rest
    begun = open_run("last")
    assert (begun.num_ok, begun.is_complete) == (1, False)


def test_handlers_are_put_back_and_foreign_ones_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match="ended by SIGINT"), interruptible(Watching()):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    set_to: list[int] = []
    monkeypatch.setattr(signal, "getsignal", lambda _: None)
    monkeypatch.setattr(signal, "signal", lambda number, _: set_to.append(number))
    with signals_to(Interrupts()):
        pass
    assert set_to == []


def test_no_signal_is_taken_in_another_thread() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def take() -> None:
        with interruptible(Watching()):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    assert seen == [before]


def test_an_error_that_a_signal_was_turned_into_is_the_signal() -> None:
    def ends_badly() -> None:
        with interruptible(Watching()) as interrupts:
            interrupts.requested = signal.SIGINT
            raise ValueError("as pydantic does")

    with pytest.raises(KeyboardInterrupt):
        ends_badly()
    with pytest.raises(ValueError, match="mine"), interruptible(Watching()):
        raise ValueError("mine")
