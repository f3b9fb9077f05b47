"""How is a ladder of link rates said? The same words in the terminal and on the page."""

from collections.abc import Callable, Iterator

from broadgauge.advise.ladders.checks import hidden_ratio, is_apart
from broadgauge.advise.ladders.ladder import Ladder
from broadgauge.advise.ladders.next_step import NextStep, next_step
from broadgauge.predict.sensitivity.curve import Form
from broadgauge.predict.sensitivity.ladder import FittedRung, Lack, LadderAnswer, Sensitivity
from broadgauge.report.words.quantities import launches_words
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.units import show_rate, show_ratio, show_size, show_time

Show = Callable[[float], str]
CRITICAL = "Bytes on the critical path"
BASE = "Floor: the time that no network can remove"
KNEE = "Knee: the rate below which more bytes are waited for"
ENOUGH = "Rate beyond which nothing is gained"
NOT_YET = "not yet known"
ALL_RATIO = 0.05
"""Hidden bytes below this share can't be told from acknowledgements."""


def show_bytes(size_bytes: float, digits: int = 3) -> str:
    """`13.1 MB`: of an estimate, so that no chance of digits makes it a power of two."""
    return show_size(float(f"{size_bytes:.{digits}g}") if size_bytes >= 1 else 0.0, digits)


def answers(ladder: Ladder) -> tuple[tuple[str, str], ...]:
    """The answers, each a title and what is known."""
    found = ladder.found
    if found is None:
        return ()
    parts = [
        (CRITICAL, _bytes(ladder, found), _predicted(ladder, _critical, show_bytes)),
        (BASE, _base(ladder, found), _predicted(ladder, lambda f: f.base_s, show_time)),
        (KNEE, _knee(ladder, found), _predicted(ladder, lambda f: f.knee_gbps, show_rate)),
        (ENOUGH, _enough(ladder, found), _predicted(ladder, lambda f: f.enough_gbps, show_rate)),
    ]
    if found.knee_gbps.estimate is None and found.knee_gbps.lack is None:
        del parts[2]
    return tuple(
        (title, "; ".join([*words, *([] if predicted is None else [predicted])]))
        for title, words, predicted in parts
    )


def _critical(found: Sensitivity) -> LadderAnswer:
    return found.critical_bytes


def rung_name(rung: FittedRung) -> str:
    """`200 Mbit/s`, or `unshaped`; `sriov, 38.4 Gbit/s` of a network that was found."""
    if rung.name:
        return f"{rung.name}, {show_rate(rung.rate_gbps)}"
    return "unshaped" if rung.is_unshaped else show_rate(rung.rate_gbps)


def rates_note(ladder: Ladder) -> str | None:
    """What the rates are where nobody set them; None: they were set."""
    if not ladder.rates_words:
        return None
    return (
        f"rates are what {ladder.rates_words} on each network; bytes are as many as take the time "
        "at these rates"
    )


def interval(estimate: Estimate, show: Show) -> str:
    """`13.1 MB (12.9 MB to 13.3 MB)`; without an interval why not."""
    value = show(estimate.value)
    if estimate.low is None and estimate.high is None:
        return f"{value} ({launches_words(estimate.launches)}: no interval)"
    if estimate.high is None:
        return f"{value} (at least {show(estimate.low or 0.0)}, no upper end)"
    return f"{value} ({show(estimate.low or 0.0)} to {show(estimate.high)})"


def _predicted(
    ladder: Ladder, answer: Callable[[Sensitivity], LadderAnswer], show: Show
) -> str | None:
    """The same answer by the predictor's step times; None where it gives none."""
    if ladder.predicted_found is None:
        return None
    estimate = answer(ladder.predicted_found).estimate
    return f"predicted {'unknown' if estimate is None else show(estimate.value)}"


def _bytes(ladder: Ladder, found: Sensitivity) -> Iterator[str]:
    critical = found.critical_bytes
    unit = "for each item that the rate counts" if ladder.is_inverse else "a step"
    if critical.estimate is None:
        yield f"unknown, {critical.why}"
        if critical.at_most is not None:
            yield f"at most {show_bytes(critical.at_most)} {unit}"
        return
    is_bent = found.knee_gbps.estimate is not None
    yield f"{interval(critical.estimate, show_bytes)} {unit}{' below the knee' * is_bent}"
    fast = found.fast_bytes.estimate
    if is_bent:
        more = "none: all is hidden" if fast is None else interval(fast, show_bytes)
        yield f"above it {more}"
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
        more = ", or a line is of several steps" if ladder.is_counted_by_sample else ""
        yield f"{link}: {show_ratio(hidden, 2)} is hidden even at the slowest rate{more}"
    else:
        yield f"{link}: whether some of it is hidden can't be told"


def _base(ladder: Ladder, found: Sensitivity) -> Iterator[str]:
    base = found.base_s
    if base.estimate is None:
        yield _not_yet(ladder, base, show_time)
    else:
        yield f"{interval(base.estimate, show_time)} a step"
    if ladder.off_step_s is not None:
        yield f"with communication off {show_time(ladder.off_step_s.value)} were measured"


def _knee(ladder: Ladder, found: Sensitivity) -> Iterator[str]:
    knee = found.knee_gbps
    if knee.estimate is None:
        yield _not_yet(ladder, knee, show_rate)
    else:
        yield f"{interval(knee.estimate, show_rate)} a node"


def _enough(ladder: Ladder, found: Sensitivity) -> Iterator[str]:
    enough = found.enough_gbps
    within = f"within {show_ratio(found.gain_ratio, 2)} of the floor"
    if enough.estimate is not None:
        yield f"{interval(enough.estimate, show_rate)} a node: there a step is {within}"
    elif enough.lack is None and enough.at_most is not None:
        yield f"{show_rate(enough.at_most)} a node or less, {enough.why}"
    else:
        yield _not_yet(ladder, enough, show_rate)


def _not_yet(ladder: Ladder, answer: LadderAnswer, show: Show) -> str:
    """`not yet known, 28.8 ms to 35.3 ms: a step gets shorter up to the fastest rate; try …`."""
    ends = ""
    if answer.at_least is not None and answer.at_most is not None and "anything" not in answer.why:
        ends = f", {show(answer.at_least)} to {show(answer.at_most)}"
    tried = _try(next_step(ladder), answer)
    return "; ".join(filter(None, (f"{NOT_YET}{ends}: {answer.why}", tried)))


def _try(step: NextStep, answer: LadderAnswer) -> str:
    """`try 3.2 Gbit/s and 6.4 Gbit/s`; empty where nothing would tell."""
    if step.is_found and answer.lack in (Lack.SLOWER_RATES, Lack.FASTER_RATES):
        which = "slower" if answer.lack is Lack.SLOWER_RATES else "faster"
        return f"a {which} network would tell"
    if answer.lack is Lack.LAUNCHES:
        number = answer.launches
        return "try a quieter machine" if number is None else f"try {number} launches"
    if answer.lack is Lack.SLOWER_RATES:
        return _rates(step.slower_gbps)
    if answer.lack is Lack.FASTER_RATES:
        unshaped = "a network without a rate" if step.lacks_unshaped else ""
        rates = _rates(step.faster_gbps).removeprefix("try ")
        words = " or ".join(filter(None, (rates, unshaped)))
        return f"try {words}" if words else "this host carries no faster rate"
    return ""


def _rates(rates_gbps: tuple[float, ...]) -> str:
    shown = [show_rate(rate) for rate in rates_gbps]
    return f"try {', '.join(shown[:-1])}{' and ' if shown[:-1] else ''}{shown[-1]}" if shown else ""


_OF_FORMS = {
    Form.FLAT: "no rate makes a difference",
    Form.LINE: "every byte counts at every rate",
    Form.HINGE: "bytes are hidden down to some rate",
    Form.TWO_SLOPES: "below some rate more bytes count",
}


def forms(ladder: Ladder) -> str | None:
    """Where the data can't tell how the curve goes; None where they can."""
    others = () if ladder.found is None else ladder.found.possible_forms[1:]
    if ladder.found is None or not others:
        return None
    named = " and ".join(map(_form_words, others))
    fit = "fits" if len(others) == 1 else "fit"
    answers = (ladder.found.critical_bytes, ladder.found.base_s, ladder.found.enough_gbps)
    has_intervals = any(a.estimate is not None and a.estimate.low is not None for a in answers)
    included = "; the intervals include them" if has_intervals else ""
    best = _form_words(ladder.found.curve.form)
    return f"the best fit is {best}; {named} {fit} as well{included}"


def _form_words(form: Form) -> str:
    """`line (every byte counts at every rate)`."""
    return f"{form.value} ({_OF_FORMS[form]})"


def what_next(ladder: Ladder) -> str | None:
    """The options that would tell more, as they are typed; None: nothing lacks."""
    step = next_step(ladder)
    rates = ",".join(f"{rate:g}" for rate in step.rates_gbps)
    options = [f"--rates {rates}" if rates else ""]
    options += [f"--set launches={step.launches}" if step.launches is not None else ""]
    words = " ".join(filter(None, options))
    return f"To know more: {words}" if words else None
