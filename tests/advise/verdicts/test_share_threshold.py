"""Which shares of a step are above the threshold, below it, or neither?"""

import pytest

from broadgauge.advise.verdicts.share_threshold import side_of
from broadgauge.specs.estimate import Estimate


@pytest.mark.parametrize(
    ("value", "low", "high", "launches", "side"),
    [
        (0.77, None, None, 1, "above"),
        (0.10, None, None, 1, "below"),
        (0.77, 0.20, 0.95, 2, "above"),
        (0.77, 0.00, 0.95, 2, None),
        (0.10, 0.00, 0.95, 2, "below"),
        (0.77, 0.70, 0.80, 5, "above"),
        (0.77, 0.10, 0.95, 5, None),
        (0.10, 0.05, 0.15, 5, "below"),
    ],
)
def test_a_share_that_may_be_nothing_is_not_above(
    value: float, low: float | None, high: float | None, launches: int, side: str | None
) -> None:
    share = Estimate(
        value=value, low=low, high=high, launches=launches, trials=launches, method="made up"
    )
    assert side_of(share) == side
