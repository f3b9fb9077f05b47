"""Proves platforms/led/one_per_case.py: one allocation at a time, each told of its own launches."""

from typing import Any

from tests.platforms.launches import make_case

from broadgauge.platforms.led.one_per_case import OnePerCase
from broadgauge.specs.case import Case
from broadgauge.specs.launching import LaunchRequest


class Recorder:
    """A platform that notes what it is asked."""

    def __init__(self, case: Case, log: list[Any]) -> None:
        self.name, self.log = case.shape, log
        self.notes = (f"note of {self.name}",)

    def expect(self, requests: Any) -> None:
        self.log.append((self.name, "expect", [each.launch_id for each in requests]))

    def start(self, request: LaunchRequest, progress: Any) -> str:
        del progress
        self.log.append((self.name, "start", request.launch_id))
        return request.launch_id

    def rank_commands(self, request: LaunchRequest) -> tuple[str, ...]:
        return (f"{self.name} {request.launch_id}",)

    def leave(self) -> None:
        self.log.append((self.name, "leave"))

    def close(self) -> None:
        self.log.append((self.name, "close"))


A, B = make_case("emulated", nodes=2), make_case("emulated", nodes=4)


class Asked:
    """A request, as far as this platform looks at it."""

    def __init__(self, launch_id: str, case: Case) -> None:
        self.launch_id, self.cases = launch_id, (case,)


def made() -> tuple[OnePerCase, list[Any]]:
    log: list[Any] = []
    return OnePerCase([A, B], lambda case: Recorder(case, log)), log  # type: ignore[arg-type,return-value]


def test_the_one_before_is_given_back_before_the_next_is_asked_for() -> None:
    platform, log = made()
    asked: Any = [Asked("a0", A), Asked("a1", A), Asked("b0", B)]
    platform.expect(asked)
    assert log == []  # nothing is asked of a cluster yet
    for each in asked:
        platform.start(each, lambda *_: None)
    assert log == [
        ("2x1", "expect", ["a0", "a1"]),
        ("2x1", "start", "a0"),
        ("2x1", "start", "a1"),
        ("2x1", "close"),
        ("4x1", "expect", ["b0"]),
        ("4x1", "start", "b0"),
    ]
    assert platform.notes == ("note of 2x1", "note of 4x1")
    platform.close()
    assert log[-1] == ("4x1", "close")


def test_what_changes_for_another_case_is_not_told() -> None:
    """To be told anything anew ends the life that runs."""
    platform, log = made()
    a0, a1, b0 = asked = [Asked("a0", A), Asked("a1", A), Asked("b0", B)]
    told: Any = asked
    platform.expect(told)
    platform.start(told[0], lambda *_: None)
    without_b: Any = [a0, a1]
    platform.expect(without_b)
    assert log[-1] == ("2x1", "start", "a0")
    without_a1: Any = [a0, b0]
    platform.expect(without_a1)
    assert log[-1] == ("2x1", "expect", ["a0"])


def test_a_run_that_is_over_leaves_nothing_of_an_earlier_life() -> None:
    platform, log = made()
    platform.leave()
    assert log == []
    platform.close()
    assert log == [("2x1", "close")]
