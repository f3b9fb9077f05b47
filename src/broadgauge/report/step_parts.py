"""Where does a step's time go, as rows and words that page and terminal share?"""

from collections.abc import Iterator, Sequence

from broadgauge.results.measured_beside import communication_off, probed_path
from broadgauge.results.model import RunSummary
from broadgauge.results.traced_cases import TracedCase, traced_cases, untraced_cases
from broadgauge.specs.units import (
    show_bandwidth,
    show_count,
    show_ratio,
    show_size,
    show_time,
)

PART_WORDS = {
    "compute": "compute",
    "fsdp_copies": "FSDP's copies",
    "exposed_communication": "exposed communication",
    "straggler_wait": "waiting for a late rank",
    "data_wait": "waiting for data",
    "checkpoint": "checkpoint",
    "host_idle": "idle: not launched yet",
    "other": "other",
}
"""In the order in which bars are stacked (traces/explanation.py, `StepPart`)."""
SHORT_WORDS = PART_WORDS | {
    "fsdp_copies": "copies",
    "exposed_communication": "exposed",
    "straggler_wait": "late rank",
    "data_wait": "data",
    "host_idle": "idle",
}
"""Above the columns of a table."""
TITLE = "Where a step's time goes"
HOW = (
    "By PyTorch's profiler, over steps that are in no other figure; of several traced trials the "
    "one whose step is the median. The parts are means over ranks and add up to the traced step."
)
BUSY = (
    "NVML's utilisation is the share of time in which any kernel runs. An NCCL kernel that waits "
    "for the last rank or for the network spins on the GPU and counts: a GPU can read as 100 % "
    "busy while it waits."
)
"""Source: nvml.h, nvmlUtilization_t: one or more kernels was executing on the GPU."""
COLLECTIVES_HOW = (
    "Collectives of the traced steps, those that expose most. Of the probe: share of the busbw "
    "that this run's collectives reached on the same network, between the same ranks, at this size."
)
MOST_COLLECTIVES = 6
"""A case, on the page."""
_HIDDEN_RATIO = 0.0005
"""A part below this share of every case's step has no column."""


def part_rows(run: RunSummary) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The head and a row a traced case; no rows where none was traced."""
    cases = traced_cases(run)
    parts = [part for part in PART_WORDS if _is_shown(part, cases)]
    has_gpu = any(case.traced.gpu_busy_ratio is not None for case in cases)
    busy = ("GPU busy", "NVML") if has_gpu else ()
    head = ("", "traced step", *(SHORT_WORDS[part] for part in parts), "hidden", *busy, "overhead")
    return head, [_row(case, parts, has_gpu=has_gpu) for case in cases]


def _is_shown(part: str, cases: Sequence[TracedCase]) -> bool:
    return any(
        (case.traced.parts_s.get(part) or 0.0) > _HIDDEN_RATIO * case.step_time_s for case in cases
    )


def _row(case: TracedCase, parts: Sequence[str], *, has_gpu: bool) -> tuple[str, ...]:
    traced = case.traced
    busy = (_ratio(traced.gpu_busy_ratio), _ratio(case.utilization_ratio)) if has_gpu else ()
    overhead = traced.tracing_overhead_ratio
    return (
        case.summary.case.label,
        _step_words(case),
        *(_part(case, part) for part in parts),
        _time(traced.overlapped_communication_s),
        *busy,
        "–" if overhead is None else f"{show_count(overhead)}×",
    )


def _step_words(case: TracedCase) -> str:
    """The median trial's; with what the others took."""
    step = show_time(case.step_time_s)
    if case.num_trials == 1:
        return f"{step}\n1 trial"
    between = f"{show_time(case.shortest_step_s)} to {show_time(case.longest_step_s)}"
    return f"{step}\n{case.num_trials} trials: {between}"


def _part(case: TracedCase, part: str) -> str:
    time_s = case.traced.parts_s.get(part)
    if time_s is None:
        return "–"
    return f"{show_time(time_s)}\n{show_ratio(time_s / case.step_time_s, 2)}"


def _time(time_s: float | None) -> str:
    return "–" if time_s is None else show_time(time_s)


def _ratio(ratio: float | None) -> str:
    return "–" if ratio is None else show_ratio(ratio, 2)


def _costs(case: TracedCase) -> Iterator[str]:
    """What communication costs, by steps without it and by the trace, side by side."""
    off = communication_off(case.record)
    if off is None:
        return
    parts = case.traced.parts_s
    exposed, waiting = (parts.get(part) for part in ("exposed_communication", "straggler_wait"))
    waits = "" if waiting is None else f" and {show_time(waiting)} waiting for late ranks"
    sign = "−" if off.network_cost_s < 0 else ""
    yield (
        f"{case.summary.case.label}: the network costs {sign}{show_time(abs(off.network_cost_s))} "
        f"of a step by the same trial's steps with communication off, not traced; by the trace "
        f"{show_time(exposed or 0.0)} of communication is exposed{waits}"
    )


def collective_rows(run: RunSummary) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The head and, of each traced case, the collectives that expose most; no rows: none known."""
    rows: list[tuple[str, ...]] = []
    for case in traced_cases(run):
        probe = probed_path(run, case.summary.case)
        for each in case.traced.collectives[:MOST_COLLECTIVES]:
            size, ranks = each.message_bytes, each.ranks_count
            reached = probe and probe.busbw_gbyte_per_s(each.kind, size, ranks)
            busbw = each.busbw_gbyte_per_s
            rows.append(
                (
                    case.summary.case.label,
                    each.kind if size is None else f"{each.kind} {show_size(size)}",
                    "–" if ranks is None else str(ranks),
                    f"{each.calls_per_step_count:g}",
                    show_time(each.transfer_s),
                    show_time(each.exposed_s),
                    "–" if busbw is None else show_bandwidth(busbw),
                    "unknown" if not reached or busbw is None else show_ratio(busbw / reached, 2),
                )
            )
    head = ("case", "collective", "ranks", "a step", "transfer", "exposed", "busbw", "of the probe")
    return head, rows


def part_notes(run: RunSummary) -> Iterator[str]:
    """What the rows do not say: late ranks, busy GPUs, what the reader must know, gaps."""
    cases = traced_cases(run)
    for case in cases:
        for late in case.traced.stragglers[:2]:
            cause = PART_WORDS.get(late.cause)
            why = "" if cause is None else f" ({cause})"
            yield (
                f"{case.summary.case.label}: others wait {show_time(late.delay_s)} a step for "
                f"rank {late.rank}{why}"
            )
        yield from _costs(case)
        if case.num_missing:
            asked = case.num_missing + case.num_trials
            yield f"{case.summary.case.label}: {case.num_missing} of {asked} trials left no trace"
    if any(case.utilization_ratio is not None for case in cases):
        yield BUSY
    yield from dict.fromkeys(note for case in cases for note in case.traced.notes)
    for untraced in untraced_cases(run):
        yield f"{untraced.summary.case.label} was not traced: {untraced.problem}"
