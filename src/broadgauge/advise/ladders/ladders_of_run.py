"""Which ladders of link rates does a run hold, and what do they say?

A ladder is one workload, shape and backend on networks that differ in their rate alone. An unshaped
one is its last rung, at the rate that plain streams carried. Networks that were found are a ladder,
too, by what was measured on each (found_rates.py). Left out of its curve are rates that this host
limited rather than the network, as advise/verdicts/link_use.py says.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from broadgauge.advise.findings.shared_cores import foreign_load_of
from broadgauge.advise.ladders.checks import checked
from broadgauge.advise.ladders.found_rates import NORMAL_95, RateOf, differences, found_rates
from broadgauge.advise.ladders.ladder import (
    Ladder,
    LeftOutNetwork,
    NodeRate,
    carried_gbps,
    carried_payload_gbps,
    is_found,
    is_unshaped,
    node_payload_gbps,
    node_rate_gbps,
)
from broadgauge.advise.verdicts.link_use import host_limit, link_use_of
from broadgauge.predict.sensitivity.ladder import Rung
from broadgauge.predict.sensitivity.levels import FEWEST_FOR_INTERVAL
from broadgauge.predict.sensitivity.sensitivity import FEWEST_RUNGS, GAIN_RATIO, analyse
from broadgauge.results.comparing.blocks import ValueOf
from broadgauge.results.kinds.registry import in_results
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.results.student import mean
from broadgauge.results.summary import estimate_over
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.networks.network import Network
from broadgauge.specs.records.record import Record
from broadgauge.specs.workloads.metrics import unit_of
from broadgauge.specs.workloads.workload import Workload

STEP_NAMES = ("step_time_s", "iteration_time_s")
Prediction = Mapping[str, Estimate]
"""Predicted step times by the case's key."""


def ladders(
    run: RunSummary,
    *,
    metric: str | None = None,
    gain_ratio: float = GAIN_RATIO,
    predicted: Prediction | None = None,
) -> tuple[Ladder, ...]:
    """Every ladder of this run, in the plan's order.

    Raises InputError where it has none: no workload with a time a step on several nodes, or no
    such metric.
    """
    groups = _groups(run)
    if not groups:
        raise InputError(
            f"{run.folder} holds no training and no command on several nodes",
            hint="a ladder is made by `broadgauge sensitivity EXPERIMENT`",
        )
    return tuple(_ladder(run, members, metric, gain_ratio, predicted or {}) for members in groups)


def seen_ladders(run: RunSummary) -> tuple[Ladder, ...]:
    """Those of any run that have rates enough for a curve; mostly none."""
    full = (members for members in _groups(run) if len(members) >= FEWEST_RUNGS)
    seen = (_ladder(run, members, None, GAIN_RATIO, {}) for members in full)
    return tuple(ladder for ladder in seen if ladder.found is not None)


def _groups(run: RunSummary) -> list[list[CaseSummary]]:
    """Cases that differ in their rate alone."""
    groups: dict[str, list[CaseSummary]] = {}
    for summary in run.candidates:
        if summary.case.link is not None and summary.case.workload.has_steps:
            groups.setdefault(_place(summary.case), []).append(summary)
    return list(groups.values())


def step_metric(workload: Workload, wanted: str | None = None) -> str | None:
    """Which metric tells the time of a step? None: none does.

    Raises InputError where the one wanted is not there, or is neither a time nor a rate.
    """
    names = in_results(workload).step_metrics
    usable = [name for name in names if unit_of(name) in ("s", "1/s")]
    if wanted is not None:
        if wanted not in usable:
            raise InputError(
                f"--metric {wanted}: {workload.name} has no such time or rate",
                hint=f"one of {', '.join(usable)}" if usable else "a metric that ends with `_s`",
            )
        return wanted
    known = [name for name in STEP_NAMES if name in usable]
    times = [name for name in usable if unit_of(name) == "s"]
    return next(iter([*known, *times, *usable]), None)


def _place(case: Case) -> str:
    """What rungs of one ladder have in common: all but the rate, and what is named after it; of
    networks that were found, all but the network."""
    assert case.link is not None
    bare = case.link.model_copy(
        update={"name": "rung", "rate_gbps": None, "receive_rate_gbps": None}
    )
    if case.link.face is not None:
        bare = Network(name="found")
        case = case.model_copy(update={"environment": {}})
    # The name, too: keys leave it out, and two workloads of one text are two ladders.
    return f"{case.workload.name} {case.model_copy(update={'network': bare}).key}"


def _ladder(
    run: RunSummary,
    members: Sequence[CaseSummary],
    wanted: str | None,
    gain_ratio: float,
    predicted: Prediction,
) -> Ladder:
    case = members[0].case
    metric = step_metric(case.workload, wanted)
    value_of = partial(_step_s, metric)
    measured = found_rates(members, run) if is_found(case) else None
    rate_of = _set_rate if measured is None else measured.of
    rungs, left_out = _judged(members, run, value_of, rate_of)
    ladder = Ladder(
        label=_label(case, run),
        metric=metric or "",
        is_inverse=metric is not None and _is_rate(metric),
        rungs=rungs,
        left_out=left_out,
        rates_words="" if measured is None else measured.words,
        found=None,
        why=_why_nothing(metric, sum(not is_unshaped(rung.case) for rung in rungs), case),
        counted_bytes=None,
        counted_how="",
        is_counted_by_sample=in_results(case.workload).counted_by is not None,
        costs=(),
        off_step_s=None,
        predicted=(),
        predicted_found=None,
        disagreements=(),
        notes=tuple(_notes(members, rungs)),
    )
    if ladder.why:
        return ladder
    torn, torn_words = _torn_blocks(rungs, value_of)
    found = analyse(
        [_rung(summary, _known(rate_of(summary)), value_of, torn) for summary in rungs],
        gain_ratio=gain_ratio,
    )
    ladder = replace(ladder, found=found, notes=(*ladder.notes, *torn_words))
    return checked(ladder, run.folder, predicted)


def _judged(
    members: Sequence[CaseSummary], run: RunSummary, value_of: ValueOf, rate_of: RateOf
) -> tuple[tuple[CaseSummary, ...], tuple[LeftOutNetwork, ...]]:
    """The rungs from the slowest rate on, and what is none."""
    rungs: dict[float, CaseSummary] = {}
    left_out: list[LeftOutNetwork] = []
    for summary in members:
        rate = rate_of(summary)
        why = _why_no_rung(summary, run, value_of, rate)
        payload_gbps = rate.payload_gbps if isinstance(rate, NodeRate) else 0.0
        place = math.inf if is_unshaped(summary.case) else payload_gbps
        if why is None and place in rungs:
            why = f"the same rate as {rungs[place].case.network_name}"
        if why is None:
            rungs[place] = summary
        else:
            step = estimate_over(summary.good, value_of)
            step_s = None if step is None else step.value
            left_out.append(LeftOutNetwork(summary=summary, why=why or "", step_s=step_s))
    ordered = [rungs[place] for place in sorted(rungs)]
    ordered, alike = _told_apart(ordered, rate_of)
    left_out += alike
    if _is_slower_unshaped(ordered):
        why = "unshaped, this host carries no more than the fastest rate"
        left_out.append(LeftOutNetwork(summary=ordered.pop(), why=why, step_s=None))
    return tuple(ordered), tuple(left_out)


def _told_apart(
    ordered: Sequence[CaseSummary], rate_of: RateOf
) -> tuple[list[CaseSummary], list[LeftOutNetwork]]:
    """Of networks that were found: those whose rate is surely another than the one before; two
    points at one rate would count as two, and test nothing."""
    kept: list[CaseSummary] = []
    alike: list[LeftOutNetwork] = []
    for summary in ordered:
        before = kept[-1] if kept and is_found(summary.case) else None
        if before is not None and _is_same_rate(_known(rate_of(before)), _known(rate_of(summary))):
            name = before.case.network_name
            why = f"what it carries can't be told from what {name} does"
            alike.append(LeftOutNetwork(summary=summary, why=why, step_s=None))
        else:
            kept.append(summary)
    return kept, alike


def _is_same_rate(one: NodeRate, other: NodeRate) -> bool:
    reach = NORMAL_95 * math.hypot(one.error_ratio, other.error_ratio)
    return abs(math.log(other.payload_gbps / one.payload_gbps)) <= reach


def _is_slower_unshaped(rungs: Sequence[CaseSummary]) -> bool:
    """Is the last rung unshaped, and no faster than the one before?"""
    if len(rungs) < 2 or not is_unshaped(rungs[-1].case):
        return False
    return (carried_gbps(rungs[-1]) or 0.0) <= (node_rate_gbps(rungs[-2].case) or 0.0)


def _why_no_rung(
    summary: CaseSummary, run: RunSummary, value_of: ValueOf, rate: NodeRate | str
) -> str | None:
    """Why does the curve not go through this case? None: it does."""
    if not any(value_of(record) is not None for record in summary.good):
        return "no trial succeeded" if not summary.num_ok else "it has no such figure"
    if isinstance(rate, str):
        return rate
    if is_unshaped(summary.case):
        return None
    return host_limit(link_use_of(summary, run, summary.value("network_cost_s")))


def _set_rate(summary: CaseSummary) -> NodeRate | str:
    """Of a link that is ours: the rate it was given; of an unshaped one what streams carried."""
    if is_unshaped(summary.case):
        rate_gbps, payload_gbps = carried_gbps(summary), carried_payload_gbps(summary)
    else:
        rate_gbps, payload_gbps = node_rate_gbps(summary.case), node_payload_gbps(summary.case)
    if rate_gbps is None or payload_gbps is None:
        return "what this host carries unshaped was not measured"
    return NodeRate(rate_gbps=rate_gbps, payload_gbps=payload_gbps)


def _known(rate: NodeRate | str) -> NodeRate:
    assert isinstance(rate, NodeRate), "a rung has a rate"
    return rate


def _torn_blocks(
    rungs: Sequence[CaseSummary], value_of: ValueOf
) -> tuple[frozenset[int], tuple[str, ...]]:
    """Blocks that a resume tore apart, whose rungs did not run next to each other, and a note.

    They are left out where whole ones are enough for an interval, and every rung is in one.
    """
    measured = [[r for r in summary.good if value_of(r) is not None] for summary in rungs]
    spans: dict[int, list[float]] = {}
    for record in (record for records in measured for record in records):
        spans.setdefault(record.block, []).extend((record.started_unix_s, record.ended_unix_s))
    pauses = rungs[0].pauses
    torn = frozenset(
        block
        for block, times in spans.items()
        if any(min(times) < p.until_unix_s and p.from_unix_s < max(times) for p in pauses)
    )
    if not torn:
        return torn, ()
    why = f"{len(torn)} of {len(spans)} blocks were interrupted in between"
    whole = [{record.block for record in records} - torn for records in measured]
    if len(set().union(*whole)) < FEWEST_FOR_INTERVAL or not all(whole):
        return frozenset(), (f"{why}: drift of the machine may be in the answers",)
    return torn, (f"{why}, and are left out",)


def _rung(summary: CaseSummary, rate: NodeRate, value_of: ValueOf, torn: frozenset[int]) -> Rung:
    """Each block's mean over its trials."""
    blocks: dict[int, list[float]] = {}
    for record in summary.good:
        value = value_of(record)
        if value is not None and record.block not in torn:
            blocks.setdefault(record.block, []).append(value)
    return Rung(
        rate_gbps=rate.rate_gbps,
        payload_gbps=rate.payload_gbps,
        step_s_by_block={block: mean(values) for block, values in blocks.items()},
        is_unshaped=is_unshaped(summary.case),
        rate_error_ratio=rate.error_ratio,
        name=summary.case.network_name if is_found(summary.case) else "",
    )


def _step_s(metric: str | None, record: Record) -> float | None:
    """The time of a step; one that is not positive is none."""
    value = None if metric is None else record.metrics.get(metric)
    if metric is None or value is None or value <= 0:
        return None
    return 1 / value if _is_rate(metric) else value


def _is_rate(metric: str) -> bool:
    """Is its inverse the time of a step, or of a part of one?"""
    return unit_of(metric) == "1/s"


def _why_nothing(metric: str | None, num_rungs: int, case: Case) -> str:
    """Why is no curve possible? Empty: it is."""
    if metric is None:
        return "no metric is a time or a rate: let the command print `step_time_s`"
    if num_rungs >= FEWEST_RUNGS:
        return ""
    what = "network" if is_found(case) else "rate"
    have = f"{num_rungs} {what}{'' if num_rungs == 1 else 's'} can be used"
    return f"{have}, and a curve needs {FEWEST_RUNGS}"


def _label(case: Case, run: RunSummary) -> str:
    """`train 2x1`, with what tells it from others of the run."""
    backend = f" {case.backend}" if _has_several_backends(run) else ""
    platform = f" on {case.platform}" if case.platform is not None else ""
    return f"{case.workload.name} {case.shape}{backend}{platform}"


def _has_several_backends(run: RunSummary) -> bool:
    return len({summary.case.backend for summary in run.candidates}) > 1


def _notes(members: Sequence[CaseSummary], rungs: Sequence[CaseSummary]) -> Iterator[str]:
    """What limits the answers beside chance?"""
    if any(s.case.link is not None and s.case.link.slow_pairs for s in members):
        yield "bytes are stated for the network's rate: what its slow pairs carry takes longer"
    if rungs and is_found(rungs[0].case):
        differ = differences(rungs)
        yield from () if differ is None else (differ,)
    foreign = [words for s in members if (words := foreign_load_of(s)) is not None]
    if foreign:
        what = "networks" if is_found(members[0].case) else "rates"
        yield f"{len(foreign)} of {len(members)} {what}: {foreign[0]}"
