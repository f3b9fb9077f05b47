"""How small a difference could these launches have shown, and how many would show a given one?

Neither uses the difference that was seen: a sample size for the effect one happened to see says
nothing new. Source: Hoenig & Heisey, The American Statistician 55 (2001).
"""

import math

from broadgauge.results import student
from broadgauge.results.statistics import FEWEST_FOR_A_VERDICT, FEWEST_UNFLAGGED, Comparison

MOST_LAUNCHES = 1000


def smallest_ratio(comparison: Comparison) -> float | None:
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


def launches_for(comparison: Comparison, difference_ratio: float) -> int | None:
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
        within=(FEWEST_UNFLAGGED, MOST_LAUNCHES),
    )
