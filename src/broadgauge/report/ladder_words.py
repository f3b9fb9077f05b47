"""How is a ladder of link rates said? The same words in the terminal and on the page."""

from collections.abc import Callable, Iterator

from broadgauge.advise.ladder_checks import hidden_ratio, is_apart
from broadgauge.advise.ladder_model import Ladder
from broadgauge.predict.sensitivity.curve import Form
from broadgauge.predict.sensitivity.ladder import Answer, Sensitivity
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.units import show_rate, show_ratio, show_size, show_time

Show = Callable[[float], str]
CRITICAL = "Bytes on the critical path"
BASE = "Time that no network can remove"
ENOUGH = "Rate beyond which nothing is gained"
ALL_RATIO = 0.05
"""Hidden bytes below this share can't be told from acknowledgements."""
WIDER = 1.25
"""A rung so far beyond the rate that is looked for shows it."""


def show_bytes(size_bytes: float, digits: int = 3) -> str:
    """`13.1 MB`: of an estimate, so that no chance of digits makes it a power of two."""
    return show_size(float(f"{size_bytes:.{digits}g}") if size_bytes >= 1 else 0.0, digits)


def answers(ladder: Ladder) -> tuple[tuple[str, str], ...]:
    """The three answers, each a title and what is known."""
    found = ladder.found
    if found is None:
        return ()
    parts = (
        (CRITICAL, _bytes(ladder, found), _predicted(ladder, _critical, show_bytes)),
        (BASE, _base(ladder, found), _predicted(ladder, lambda f: f.base_s, show_time)),
        (ENOUGH, _enough(found), _predicted(ladder, lambda f: f.enough_gbps, show_rate)),
    )
    return tuple(
        (title, "; ".join([*words, *([] if predicted is None else [predicted])]))
        for title, words, predicted in parts
    )


def _critical(found: Sensitivity) -> Answer:
    return found.critical_bytes


def interval(estimate: Estimate, show: Show) -> str:
    """`13.1 MB (12.9 MB to 13.3 MB)`; without an interval why not."""
    value = show(estimate.value)
    if estimate.low is None and estimate.high is None:
        launches = "1 launch" if estimate.launches == 1 else f"{estimate.launches} launches"
        return f"{value} ({launches}: no interval)"
    if estimate.high is None:
        return f"{value} (at least {show(estimate.low or 0.0)}, no upper end)"
    return f"{value} ({show(estimate.low or 0.0)} to {show(estimate.high)})"


def _predicted(ladder: Ladder, answer: Callable[[Sensitivity], Answer], show: Show) -> str | None:
    """The same answer by the predictor's step times; None where it gives none."""
    if ladder.predicted_found is None:
        return None
    estimate = answer(ladder.predicted_found).estimate
    return f"predicted {'unknown' if estimate is None else show(estimate.value)}"


def _bytes(ladder: Ladder, found: Sensitivity) -> Iterator[str]:
    critical = found.critical_bytes
    unit = "for each of what the rate counts" if ladder.is_inverse else "a step"
    if critical.estimate is None:
        yield f"unknown, {critical.why}"
        if critical.at_most is not None:
            yield f"at most {show_bytes(critical.at_most)} {unit}"
        return
    yield f"{interval(critical.estimate, show_bytes)} {unit}"
    knee, fast = found.knee_gbps.estimate, found.fast_bytes.estimate
    if knee is not None:
        more = "none: all is hidden" if fast is None else interval(fast, show_bytes)
        yield f"so below {interval(knee, show_rate)} a node, and above it {more}"
    elif found.curve.form in (Form.HINGE, Form.TWO_SLOPES):
        yield f"below which rate is unknown, {found.knee_gbps.why}"
    counted = ladder.counted_bytes
    if counted is None:
        return
    each = "a sample printed" if ladder.is_counted_by_sample else "a step"
    link = f"the busiest link carries {show_bytes(counted.value)} {each}"
    hidden = hidden_ratio(critical.estimate, counted)
    if critical.estimate.value > counted.value * (1 + ALL_RATIO):
        yield f"{link} in its busier direction"
    elif hidden < ALL_RATIO:
        yield f"{link}: all of it is waited for"
    elif is_apart(critical.estimate, counted):
        rest = "hidden even at the slowest rate"
        more = ", or not sent by these steps" if ladder.is_counted_by_sample else ""
        yield f"{link}: {show_ratio(hidden, 2)} is {rest}{more}"
    else:
        yield f"{link}: whether some of it is hidden can't be told"


def _base(ladder: Ladder, found: Sensitivity) -> Iterator[str]:
    base = found.base_s
    assert base.estimate is not None, "a curve has a base"
    yield f"{interval(base.estimate, show_time)} a step"
    if found.is_extrapolated and base.at_most is not None:
        fastest = show_rate(found.rungs[-1].rate_gbps)
        yield (
            f"{show_time(base.at_most)} were measured at {fastest}, and from there on it is a "
            "straight line that nothing was measured on"
        )
    if ladder.off_step_s is not None:
        yield f"with communication off {show_time(ladder.off_step_s.value)} were measured"


def _enough(found: Sensitivity) -> Iterator[str]:
    enough = found.enough_gbps
    fastest = found.rungs[-1].rate_gbps
    within = f"within {show_ratio(found.gain_ratio, 2)} of that time"
    if enough.estimate is not None:
        yield f"{interval(enough.estimate, show_rate)} a node: there a step is {within}"
        if enough.estimate.value > fastest:
            yield f"no rate beyond {show_rate(fastest)} was measured"
    elif found.curve.form is Form.FLAT and enough.at_most is not None:
        yield f"{show_rate(enough.at_most)} a node or less, {enough.why}"
    else:
        yield f"unknown, {enough.why}"


def forms(ladder: Ladder) -> str | None:
    """Where the data can't tell how the curve goes; None where they can."""
    others = () if ladder.found is None else ladder.found.possible_forms[1:]
    if ladder.found is None or not others:
        return None
    named = " and ".join(f"`{form.value}`" for form in others)
    return (
        f"the curve is `{ladder.found.curve.form.value}`; {named} fit as well, and the intervals "
        "hold what they say too"
    )


def more_rates(ladder: Ladder) -> tuple[float, ...]:
    """Which rates would show what is not seen yet? In Gbit/s; empty where none would, or could."""
    found = ladder.found
    if found is None:
        return ()
    slowest, fastest = found.rungs[0].rate_gbps, found.rungs[-1].rate_gbps
    rates = [rung.rate_gbps for rung in found.rungs]
    if found.curve.form is Form.FLAT:
        return (*_between(slowest / 16, slowest, 2), *rates)
    enough = _looked_for(found.enough_gbps)
    if not found.is_extrapolated or enough is None:
        return ()
    ceilings = [s.ceiling_gbps.value for s in ladder.rungs if s.ceiling_gbps is not None]
    nics = ladder.rungs[0].case.link
    most = 0.0 if not ceilings or nics is None else min(ceilings) / 2 * nics.num_nics
    wanted = min(enough * WIDER, most)
    return (*rates, *reversed(_between(wanted, fastest, 3))) if wanted > 1.5 * fastest else ()


def _looked_for(rate: Answer) -> float | None:
    """The rate, or how far up it may lie; None: nothing is known of it."""
    if rate.estimate is not None:
        return rate.estimate.value
    return rate.at_least if rate.at_most is None else rate.at_most


def _between(start_gbps: float, end_gbps: float, number: int) -> tuple[float, ...]:
    """Geometric, from `start` on, without `end`."""
    ratio = (end_gbps / start_gbps) ** (1 / number)
    return tuple(float(f"{start_gbps * ratio**step:.2g}") for step in range(number))
