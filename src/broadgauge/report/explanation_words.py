"""What is said of an explained step, in words and rows that page and terminal share?"""

from collections.abc import Sequence

from broadgauge.report import step_parts
from broadgauge.report.words import printable
from broadgauge.results.measured_beside import MeasuredBeside, ProbedPath
from broadgauge.specs.units import show_ratio, show_size, show_time
from broadgauge.traces.explanation import (
    CollectiveTimes,
    FirstReduction,
    RankExplanation,
    StepPart,
    TraceExplanation,
)

MOST_NAMES = 5
PART_WORDS = {part: step_parts.PART_WORDS[part] for part in StepPart}


def opening_words(found: TraceExplanation) -> str:
    ranks = f"{len(found.ranks)} ranks" if len(found.ranks) > 1 else "one rank"
    steps = f"{found.num_steps} steps" if found.num_steps > 1 else f"step {found.step_numbers[0]}"
    what = steps if found.has_steps else "the whole trace"
    words = f"{ranks}, {what}: {show_time(found.step_time_s)}"
    return f"{words} a step" if found.num_steps > 1 else words


def beside_words(found: TraceExplanation) -> list[str]:
    """What is no part of the step and yet belongs to its explanation."""
    words = []
    hidden = found.overlapped_communication_s
    if hidden > 0:
        words.append(f"{show_time(hidden)} more of communication is hidden behind compute.")
    network = found.exposed_by_network_s()
    if network["inside_nodes"] + network["between_nodes"] > 0:
        words.append(
            f"Exposed communication: {show_time(network['inside_nodes'])} within nodes, "
            f"{show_time(network['between_nodes'])} between nodes."
        )
    slowdown = found.compute_slowdown_s
    if slowdown is not None and slowdown > 0.005 * found.step_time_s:
        words.append(
            f"Kernels take {show_time(slowdown)} a step longer beside communication than alone."
        )
    for part, kind in (("data_wait", "Loading data"), ("checkpoint", "Checkpoints")):
        time_s = _mean_hidden_s(found.ranks, part)
        if time_s > 0.001 * found.step_time_s:
            words.append(f"{kind}: {show_time(time_s)} a step more, hidden behind other work.")
    bound = [step.bound_by for rank in found.ranks for step in rank.steps]
    if found.ranks[0].has_gpu:
        who = "the GPU" if bound.count("gpu") * 2 > len(bound) else "the CPU"
        other = "the CPU runs ahead of it" if who == "the GPU" else "the GPU has nothing queued"
        words.append(f"Steps end with {who}: {other}.")
        words.append(_busy(found))
    if found.first_reduction is not None:
        words.append(f"{first_reduction_words(found.first_reduction, found.step_time_s)}.")
    idle = _idle_names(found.ranks)
    if idle:
        words.append(f"Idle, by the range that the CPU was in: {idle}.")
    for late in found.stragglers[:MOST_NAMES]:
        why = "" if late.cause == "unknown" else f" ({PART_WORDS[StepPart(late.cause)]})"
        words.append(f"Others wait {show_time(late.delay_s)} a step for rank {late.rank}{why}.")
    return words


def _busy(found: TraceExplanation) -> str:
    """Why a GPU that waits reads as busy."""
    steps = [step for rank in found.ranks for step in rank.steps]
    total = sum(step.duration_ns for step in steps)
    busy = sum(step.gpu_busy_ns for step in steps) / total
    parts = found.parts_s()
    compute = (parts[StepPart.COMPUTE] or 0.0) / found.step_time_s
    return (
        f"The GPU reads as {show_ratio(busy)} busy and computes {show_ratio(compute)} of the step: "
        "a kernel of NCCL that waits spins, and counts as busy."
    )


def _mean_hidden_s(ranks: Sequence[RankExplanation], part: str) -> float:
    steps = [step for rank in ranks for step in rank.steps]
    return sum(step.hidden_ns.get(part, 0) for step in steps) / 1e9 / len(steps)


def _idle_names(ranks: Sequence[RankExplanation]) -> str:
    """The names under which most time was idle, the mean over ranks and steps."""
    steps = [step for rank in ranks for step in rank.steps]
    total: dict[str, int] = {}
    for step in steps:
        for name, time_ns in step.idle_names_ns.items():
            total[name] = total.get(name, 0) + time_ns
    longest = sorted(total.items(), key=lambda item: -item[1])[:MOST_NAMES]
    least_ns = 0.005 * sum(step.duration_ns for step in steps)
    return ", ".join(
        f"{_short(name)} {show_time(time_ns / 1e9 / len(steps))}"
        for name, time_ns in longest
        if time_ns > least_ns
    )


def _short(name: str, most: int = 48) -> str:
    """A user's name, whatever is in it."""
    words = printable(name).removeprefix("enumerate(DataLoader)#")
    return words if len(words) <= most else f"{words[: most - 1]}…"


def probed_busbw(times: CollectiveTimes, probe: ProbedPath | None) -> float | None:
    """What the same path reached in the collectives probe, at this size; None: unknown."""
    if probe is None:
        return None
    return probe.busbw_gbyte_per_s(str(times.kind), times.message_bytes, times.num_ranks)


def off_words(found: TraceExplanation, beside: MeasuredBeside) -> list[str]:
    """What communication costs by the trace, and by steps without it: both, side by side."""
    off = beside.off
    if off is None:
        return []
    parts = found.parts_s()
    exposed = parts[StepPart.EXPOSED_COMMUNICATION] or 0.0
    waiting = parts[StepPart.STRAGGLER_WAIT]
    waits = "" if waiting is None else f" and {show_time(waiting)} waiting for late ranks"
    return [
        f"The same trial without the profiler: {show_time(off.step_time_s)} a step, "
        f"{show_time(off.step_without_communication_s)} with communication off, so the network "
        f"costs {_signed(off.network_cost_s)}. By the trace {show_time(exposed)} of communication "
        f"is exposed{waits}."
    ]


def probe_words(beside: MeasuredBeside) -> list[str]:
    """Where the last column's figures are from."""
    if beside.probe is None:
        return list(beside.notes)
    return [
        f"Of the probe: share of the busbw that the collectives probe reached at this size "
        f"({beside.probe.source}); – where size, ranks or the probe's figure are unknown."
    ]


def _signed(time_s: float) -> str:
    return f"{'−' if time_s < 0 else ''}{show_time(abs(time_s))}"


def collective_rows(
    all_times: Sequence[CollectiveTimes], probe: ProbedPath | None = None
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The head and a row each. Without other ranks a transfer is not told from waiting."""
    rows: list[tuple[str, ...]] = [
        (
            f"{times.kind}{sized(times.message_bytes)}",
            "–" if times.num_ranks is None else str(times.num_ranks),
            f"{times.calls_per_step_count:g}",
            show_time(times.transfer_s),
            time_or_dash(times.waiting_s),
            show_time(times.exposed_s),
            _rate(times.busbw_gbyte_per_s),
            *(() if probe is None else (_probe_share(times, probe),)),
        )
        for times in all_times
    ]
    transfer = "transfer" if all_times and all_times[0].waiting_s is not None else "time"
    of_probe = () if probe is None else ("of the probe",)
    return ("", "ranks", "a step", transfer, "waiting", "exposed", "busbw", *of_probe), rows


def _probe_share(times: CollectiveTimes, probe: ProbedPath) -> str:
    probed, busbw = probed_busbw(times, probe), times.busbw_gbyte_per_s
    return "–" if probed is None or busbw is None else show_ratio(busbw / probed, 2)


def first_reduction_words(found: FirstReduction, step_s: float) -> str:
    """By name, absolute and as a share of the step."""
    at = f"{show_time(found.after_begin_s)} ({found.after_begin_s / step_s:.0%}) into the step"
    return f"First {found.kind} of the backward pass: {_short(found.name)}, {at}"


def sized(message_bytes: int | None) -> str:
    return "" if message_bytes is None else f" {show_size(message_bytes)}"


def time_or_dash(time_s: float | None) -> str:
    return "–" if time_s is None else show_time(time_s)


def _rate(gbyte_per_s: float | None) -> str:
    return "–" if gbyte_per_s is None else f"{gbyte_per_s:.3g} GB/s"
