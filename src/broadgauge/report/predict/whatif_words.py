"""Which part of a what-if was measured, and which modelled? In sentences."""

from collections.abc import Iterator

from broadgauge.predict.runs.network import Basis
from broadgauge.predict.whatif.changes import WhatIf
from broadgauge.report.words.quantities import launches_words
from broadgauge.specs.units import show_ratio, show_time

REMARKABLE_RATIO = 0.15
"""Of a step, unexplained, that asks for an explanation."""
OWN_WORDS: dict[Basis, str] = {
    "own": "this run's own collectives on it, by size",
    "found": "this run's own collectives on its network, their bytes at the rate asked for",
    "host": "collectives measured on this host unshaped, and the line's rate",
    "line": "the line's rate; no collectives were measured",
    "unknown": "nothing: it was not shaped and no collectives were measured",
}


def measured_lines(found: WhatIf) -> Iterator[str]:
    """What the run itself says."""
    base = found.base
    launches = launches_words(base.step_s.launches)
    yield f"the step, {show_time(base.step_s.value)} ({launches})"
    if found.is_without_measured:
        yield (
            f"the same step with communication off, {show_time(found.without_s)}: the time "
            f"that it computes; it waits {show_ratio(max(0.0, found.exposed_ratio), 2)} of the step"
        )
    elif base.case.world_size == 1:
        yield "it is one rank: all of its step computes"
    if found.basis == "own":
        yield f"its network: {OWN_WORDS['own']}"


def modelled_lines(found: WhatIf) -> Iterator[str]:
    """What the answer takes from a model."""
    if not found.is_without_measured and found.base.case.world_size > 1:
        yield (
            f"what it computes, {show_time(found.without_s)}: this run has no step with "
            "communication off (`communication_off: true` measures it)"
        )
    if found.base.case.world_size > 1:
        if found.basis != "own":
            yield f"its network: {OWN_WORDS[found.basis]}"
        yield from _calibration(found)
    yield f"the order of its work within a step: {found.machine_words}"
    bases = dict.fromkeys(
        "nominal figures of the catalog" if each.basis is None else OWN_WORDS[each.basis]
        for each in found.answers
        if not each.is_measured and each.basis != "own"
    )
    if bases:
        yield f"the networks asked for: {'; '.join(bases)}"


def _calibration(found: WhatIf) -> Iterator[str]:
    if not found.is_identified:
        yield (
            "how communication hides behind compute: this run's step hardly waits for its network, "
            "so the run can't tell how fast that network is. Faster ones gain next to nothing, as "
            "measured; slower ones rest on the model alone"
        )
        return
    step_s, excess_s = found.base.step_s.value, found.excess_s
    until = (
        "the most that a link explains" if excess_s else "so that the model's step is this run's"
    )
    yield (
        f"how communication hides behind compute, its time × {found.communication_ratio:.3g}, "
        f"{until}"
    )
    if excess_s:
        yield (
            f"{show_time(excess_s)} of the step ({show_ratio(excess_s / step_s, 2)}) that no link "
            "explains: kept for as many bytes on any network of this machine"
        )
    if excess_s > REMARKABLE_RATIO * step_s:
        yield (
            "that is a lot: something outside the model adds to it, such as another program on "
            "the same cores"
        )


def check_lines(found: WhatIf) -> Iterator[str]:
    """How well does the chosen case predict the run's other networks?"""
    for each in found.checks:
        error = f"{each.error_ratio:+.1%}".replace("%", " %")
        yield (
            f"{each.label}: predicted {show_time(each.predicted_s)}, measured "
            f"{show_time(each.measured_s)} ({error})"
        )
