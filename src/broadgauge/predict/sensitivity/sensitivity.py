"""What do step times at several link rates say, without any trace or knowledge of the model?

Four answers, each with its 95 % interval or "not yet known" and why: the bytes on the critical
path, the floor (the time that no network can remove), the knee, the rate beyond which nothing is
gained. From the curve of `curve.py` on the levels of `levels.py`; intervals are of all curves that
the launches allow (`region.py`); what may be stated, and what lacks, is in `statements.py`.
"""

import math
from collections.abc import Sequence

import numpy as np

from broadgauge.predict.sensitivity.figures import RungArrays
from broadgauge.predict.sensitivity.ladder import Rung, Sensitivity
from broadgauge.predict.sensitivity.levels import levels_of
from broadgauge.predict.sensitivity.statements import Reading

FEWEST_RUNGS = 3
"""Two rates give a line through any two times, and nothing to doubt it by."""
GAIN_RATIO = 0.02
"""A step within 2 % of what no network can remove is called as good as that."""


def analyse(
    rungs: Sequence[Rung], *, gain_ratio: float = GAIN_RATIO, is_exact: bool = False
) -> Sensitivity:
    """What do these rungs say? At least 3 different rates; their order does not matter.

    `is_exact`: the times are computed, not measured, so that what the curve gives is stated. Raises
    ValueError for fewer rungs, for several unshaped ones, or times and rates that are not positive.
    """
    ordered = _checked(rungs)
    blocks = sorted({block for rung in ordered for block in rung.step_s_by_block})
    levels = levels_of([[rung.step_s_by_block.get(block) for block in blocks] for rung in ordered])
    off = np.array([rung.rate_error_ratio for rung in ordered])
    ladder = RungArrays(
        x=np.array([8.0 / rung.payload_gbps for rung in ordered]),
        step_s=np.exp(levels.log_level),
        error_ratio=np.sqrt(levels.variance + off**2),
        levels=levels,
        gain_ratio=gain_ratio,
        is_first_unshaped=ordered[0].is_unshaped,
    )
    return Reading(
        ladder=ladder,
        rungs=ordered,
        fits=ladder.fits(),
        region=None if is_exact else ladder.region(),
        is_exact=is_exact,
    ).sensitivity()


def _checked(rungs: Sequence[Rung]) -> tuple[Rung, ...]:
    ordered = tuple(sorted(rungs, key=lambda rung: -rung.payload_gbps))
    num_shaped = len({rung.payload_gbps for rung in ordered if not rung.is_unshaped})
    if len({rung.payload_gbps for rung in ordered}) != len(ordered) or num_shaped < FEWEST_RUNGS:
        raise ValueError(f"a ladder has {FEWEST_RUNGS} different rates at least, each once")
    if any(rung.is_unshaped for rung in ordered[1:]):
        raise ValueError("an unshaped rung is one, and the fastest")
    for rung in ordered:
        values = (rung.rate_gbps, rung.payload_gbps, *rung.step_s_by_block.values())
        if len(values) < 3 or not all(math.isfinite(value) and value > 0 for value in values):
            raise ValueError(f"rates and times are positive numbers, and there is one: {rung}")
    return ordered
