"""When is a rate reached, when is it no fault of the shaper, and when is it always one?"""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from tests.disturbance import DISTURBED_RATIO
from tests.platforms.emulated.attempts import Attempt, num_missed, num_reached
from tests.stolen_trials import StolenError


def assert_reached(attempts: Sequence[Attempt], least: float, agreeing: int = 2) -> None:
    """By most of two or three: a shaper that is right now and then is wrong. Of more, where nothing
    else than what was stolen made them necessary, by two.

    Where steal explains what is missing, neither is shown: not judged if that much was stolen that
    tests/disturbance.py calls it a disturbance, else it is a failure as well.
    """
    if num_reached(attempts, least) >= agreeing:
        return
    said = f"{least} is not reached: {attempts}"
    short = [each["stolen_ratio"] for each in attempts if each["ratio"] < least]
    if num_missed(attempts, least) < agreeing and sum(short) / len(short) >= DISTURBED_RATIO:
        raise StolenError(f"as little as was stolen: {said}")
    raise AssertionError(said)


def assert_point_reached(point: Any, least: float, rate_gbps: float) -> None:
    """The same of an answer of `fidelity`. Not judged where the host is the bound, as
    docs/architecture.md has it: a low unshaped ceiling, or processors 90 % busy."""
    is_reached = num_reached(point["attempts"], least) >= 2
    if not is_reached and (point["ceiling_gbps"] < 2 * rate_gbps or point["busy_ratio"] > 0.9):
        pytest.skip(f"not judged: host-bound: {point}")
    assert_reached(point["attempts"], least)


def refuse_above(attempts: Iterable[Attempt], most: float) -> None:
    """No busy host makes a link too fast, so this is no AssertionError: tests/disturbance.py."""
    above = [each for each in attempts if each["ratio"] > most]
    if above:
        pytest.fail(f"more than {most}: {above}")
