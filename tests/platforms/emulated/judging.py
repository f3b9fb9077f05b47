"""When is a rate reached, when is it no fault of the shaper, and when is it always one?"""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def is_reached(attempts: Sequence[float], least: float) -> bool:
    """By most of two or three: a shaper that is right now and then is wrong."""
    return sorted(attempts)[-2] >= least


def skip_where_the_host_is_the_bound(point: Any, rate_gbps: float) -> None:
    """As docs/architecture.md has it: a low unshaped ceiling, or processors 90 % busy."""
    if point["ceiling_gbps"] < 2 * rate_gbps or point["busy_ratio"] > 0.9:
        pytest.skip(f"not judged: host-bound: {point}")


def refuse_above(seen: Iterable[float], most: float) -> None:
    """No busy host makes a link too fast, so this is no AssertionError: tests/disturbance.py."""
    above = [each for each in seen if each > most]
    if above:
        pytest.fail(f"more than {most}: {above}")
