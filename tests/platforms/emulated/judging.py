"""When is a point of a fidelity test no fault of the shaper?"""

from typing import Any

import pytest


def skip_where_the_host_is_the_bound(point: Any, rate_gbps: float) -> None:
    """As docs/architecture.md has it: a low unshaped ceiling, or processors 90 % busy."""
    if point["ceiling_gbps"] < 2 * rate_gbps or min(point["busy_ratios"]) > 0.9:
        pytest.skip(f"host-bound: {point}")
