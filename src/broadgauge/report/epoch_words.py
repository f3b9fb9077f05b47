"""Was an epoch's time measured, or extrapolated from fewer steps?"""

from broadgauge.report.quantities import show
from broadgauge.results.model import CaseSummary
from broadgauge.specs.units import show_ratio

RATIO = "epoch_measured_ratio"


def epoch_words(summary: CaseSummary) -> str | None:
    """One sentence for below a case's metrics; None: it has no epochs."""
    measured, epoch_s = summary.value(RATIO), summary.value("epoch_time_s")
    if measured is None or epoch_s is None:
        return None
    what = f"the second epoch's {show('epoch_time_s', epoch_s)}"
    if measured >= 1:
        return f"{what} are measured, every step of it"
    share = "none" if measured == 0 else show_ratio(measured, 2)
    return f"{what} are extrapolated from the measured steps: {share} of that epoch was measured"
