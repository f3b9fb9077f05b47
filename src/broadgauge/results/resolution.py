"""How small a difference could these launches have shown, and how many would show a given one?

Neither uses the difference that was seen: a sample size for the effect one happened to see says
nothing new. Source: Hoenig & Heisey, The American Statistician 55 (2001). What would settle a
question about a bound is another matter (`launches_to_tell`): there the estimate is what is known.
"""

import math

from broadgauge.results import student
from broadgauge.results.statistics import FEWEST_FOR_A_VERDICT, FEWEST_UNFLAGGED, PairedComparison
from broadgauge.specs.estimate import Estimate

MOST_TO_DETECT = 1000
"""Launches that are counted up to; where more are needed it is a question for another day."""
MOST_TO_SETTLE = 200
"""More than that nobody runs to have an interval on one side of a bound."""


def smallest_ratio(comparison: PairedComparison) -> float | None:
    """Which difference is told from none in 4 of 5 tries? 0.03 for 3 %; None below 3 launches.

    (t(0.975) + t(0.8)) × the standard error, on the scale of logarithms. Source: Chow, Shao & Wang,
    Sample Size Calculations in Clinical Research, 2nd ed., section 3.1, with t for normal.
    """
    fitted = comparison.log_ratio
    if fitted.standard_error is None or comparison.ratio.launches < FEWEST_FOR_A_VERDICT:
        return None
    upper = student.student_quantile((1 + student.CONFIDENCE) / 2, fitted.dof)
    power = student.student_quantile(student.POWER, fitted.dof)
    return math.expm1(min(700.0, (upper + power) * fitted.standard_error))


def launches_for(comparison: PairedComparison, difference_ratio: float) -> int | None:
    """How many launches tell this difference (0.03 for 3 %) from none in 4 of 5 tries?

    At the spread seen; 5 at least. None where that is unknown, or where more than 1,000 are needed.
    """
    launches = comparison.ratio.launches
    if launches < FEWEST_FOR_A_VERDICT:
        return None
    return student.num_needed(
        comparison.log_ratio,
        launches,
        difference=math.log1p(difference_ratio),
        within=(FEWEST_UNFLAGGED, MOST_TO_DETECT),
    )


def launches_to_tell(estimate: Estimate, *bounds: float) -> str:
    """`: about 12 launches would tell` on which side of the nearest bound the figure lies.

    The interval's width goes with 1 / √launches. Empty where too many would be needed, or where the
    estimate is on the bound.
    """
    distance = min(abs(estimate.value - bound) for bound in bounds)
    if estimate.low is None or estimate.high is None or distance == 0:
        return ""
    needed = estimate.launches * ((estimate.high - estimate.low) / 2 / distance) ** 2
    return "" if needed > MOST_TO_SETTLE else f": about {math.ceil(needed) + 1} launches would tell"
