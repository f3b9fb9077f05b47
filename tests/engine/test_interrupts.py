"""Signals end a run between two writes, never inside one."""

import os
import signal

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
