"""How is a measured figure written? By the unit at the end of its name, and with its spread."""

import math
import re
from collections.abc import Callable, Iterable

from broadgauge.report.words.cost import usd_words
from broadgauge.results.model import CollectiveSummary
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.units import (
    show_bandwidth,
    show_count,
    show_rate,
    show_ratio,
    show_size,
    show_time,
)
from broadgauge.specs.workloads.metrics import REGISTRY, unit_of

LAUNCHES_ONLY = re.compile(r"\(\d+ launch(es)?\)")
"""What `spread` says of a figure without an interval."""
TIMES_METRICS = ("amplification_ratio", "speedup_ratio")
"""Ratios that are read as a multiple rather than a share."""

_SHOWN_BY: dict[str, Callable[[float, int, float | None], str]] = {
    "s": show_time,
    "s/GB": lambda value, digits, like: f"{show_time(value, digits, like)}/GB",
    "GB/s": show_bandwidth,
    "Gbit/s": show_rate,
    "bytes": show_size,
    "ratio": lambda value, digits, _: show_ratio(value, digits),
    "1/s": lambda value, digits, like: f"{show_count(value, digits, like)} /s",
    "count": show_count,
    "USD": lambda value, *_: usd_words(value),
    "USD/10⁹ tokens": lambda value, *_: usd_words(value),
}
_WITH_MULTIPLES = ("s", "s/GB", "GB/s", "Gbit/s", "1/s", "count")
LEAST_OF_A_UNIT, MOST_OF_A_UNIT = 0.01, 10_000
"""More noughts behind the point, or digits before it, are read worse than two units in a column."""
_OF_EACH_UNIT = (1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e4, 1e6, 1e9, 1e12)
"""Sizes of which each unit of any table shows one; thousands begin at 10,000 of a count."""

_TITLES = {
    "wire_bytes": "bytes on the wire",
    "cpu_s_per_gbyte": "CPU time per GB",
    "cpu_busy_ratio": "cores busy",
    "mfu_ratio": "MFU",
    "step_without_communication_s": "step without communication",
    "link_rate_gbps": "rate on the wire",
    "line_share_ratio": "share of the line rate",
    "amplification_ratio": "bytes over the ring's",
    "retransmits_count": "retransmits",
    "drops_count": "packets dropped",
    "usd_per_gigatoken": "$/10⁹ tokens",
    "usd_per_run": "$ a run",
    "start_up_time_s": "start-up",
    "load_time_s": "loading",
    "model_load_s": "model loaded",
    "epoch_time_s": "second epoch",
    "epoch_measured_ratio": "of it measured",
    "training_time_s": "all epochs",
    "completion_time_s": "time to completion",
    "completion_measured_ratio": "of its steps run",
}


def show(name: str, value: float, digits: int = 3, like: float | None = None) -> str:
    """`step_time_s`, 0.0123 → `12.3 ms`; with `like` in the unit that this value is shown in."""
    if name in TIMES_METRICS:
        return f"{show_count(value, digits)}×"
    unit = unit_of(name) or ""
    if unit in _SHOWN_BY:
        return _SHOWN_BY[unit](value, digits, like)
    return f"{show_count(value, digits, like)} {unit}".rstrip()


def column_like(name: str, values: Iterable[float]) -> float | None:
    """The value in whose unit all of a column are shown: the smallest that makes no number long.

    None: each is shown in its own, as there is one, its unit has no multiples, or in each unit some
    number is long. What is unknown or infinite has no unit.
    """
    sizes = sorted(abs(value) for value in values if value and math.isfinite(value))
    if len(sizes) < 2 or unit_of(name) not in _WITH_MULTIPLES:
        return None
    ends = (sizes[0], sizes[-1])
    fitting = (
        size
        for size in (*sizes, *_OF_EACH_UNIT)
        if all(_is_short(show(name, end, like=size)) for end in ends)
    )
    return next(fitting, None)


def _is_short(words: str) -> bool:
    number = float(words.split(maxsplit=1)[0].replace(",", ""))
    return LEAST_OF_A_UNIT <= number < MOST_OF_A_UNIT


def show_estimate(name: str, estimate: Estimate, like: float | None = None) -> str:
    """`723 ms ± 0.4 %`."""
    return f"{show(name, estimate.value, like=like)} {spread(name, estimate, like)}"


def spread(name: str, estimate: Estimate, like: float | None = None) -> str:
    """`± 0.4 %`: half the 95 % interval over the value. Shares, already in percent, give its ends;
    figures near zero give it in their own unit."""
    if estimate.low is None or estimate.high is None:
        return f"({launches_words(estimate.launches)})"
    half = (estimate.high - estimate.low) / 2
    relative = estimate.half_width_ratio
    if unit_of(name) == "ratio" and name not in TIMES_METRICS:
        low, high = show_ratio(estimate.low, 2), show_ratio(estimate.high, 2)
        if low == high:
            low, high = show_ratio(estimate.low, 3), show_ratio(estimate.high, 3)
        return f"{low.removesuffix(' %')}–{high}"
    if relative is None or relative > 1:
        return f"± {show(name, half, 2, like)}"
    return f"± {show_ratio(relative, 2)}"


def launches_words(count: int) -> str:
    """`1 launch`, `5 launches`."""
    return f"{count} launch{'' if count == 1 else 'es'}"


def smallest_change(ratio: float) -> str:
    """The least that launches would show, at two digits; no nonsense where nothing scatters."""
    return "less than 0.01 %" if ratio < 1e-4 else show_ratio(ratio, 2)


def interval(name: str, estimate: Estimate) -> str:
    """`721 ms to 726 ms`, in the figure's own unit; a dash where nothing is known of the spread."""
    if estimate.low is None or estimate.high is None:
        return "–"
    like = estimate.value or max(abs(estimate.low), abs(estimate.high))
    return f"{show(name, estimate.low, 4, like)} to {show(name, estimate.high, 4, like)}"


def title_of(name: str) -> str:
    """`step_time_s` → `step time`: the unit is printed with each value."""
    if name in _TITLES:
        return _TITLES[name]
    unit_words = {"_gbyte_per_s", "_s_per_gbyte", "_gbps", "_bytes", "_ratio", "_count", "_s"}
    if name.endswith("_per_s") and not name.endswith("_gbyte_per_s"):
        return name.removesuffix("_per_s").replace("_", " ") + "/s"
    for suffix in sorted(unit_words, key=len, reverse=True):
        if name.endswith(suffix) and name != suffix:
            return name.removesuffix(suffix).replace("_", " ")
    return name.replace("_", " ")


def meaning_of(name: str) -> str:
    """What a metric is, by the registry; the user's own say only their name."""
    known = REGISTRY.get(name)
    return "a metric of the experiment's command" if known is None else known.meaning


def kind_of(row: CollectiveSummary) -> str:
    """`all_reduce float32`, and who ran it where that was not torch."""
    by = "" if row.engine == "torch" else f" by {row.engine}"
    return f"{row.op} {row.dtype}{by}"
