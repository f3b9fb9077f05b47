"""What does `broadgauge explain --json` print? Seconds, and parts that add up to the step."""

from typing import Any

from broadgauge.report.explanation_words import probed_busbw
from broadgauge.results.measured_beside import NOTHING_BESIDE, MeasuredBeside
from broadgauge.traces.attribution.comparing import ExplanationComparison
from broadgauge.traces.explanation import (
    CollectiveTimes,
    FirstReduction,
    RankExplanation,
    TraceExplanation,
)


def explanation_document(
    found: TraceExplanation, beside: MeasuredBeside = NOTHING_BESIDE
) -> dict[str, Any]:
    """One job: its mean step, each rank's, who is waited for, and each kind of collective."""
    return {
        "steps": found.num_steps,
        "step_numbers": list(found.step_numbers),
        "has_steps": found.has_steps,
        "is_all_ranks": found.is_all_ranks,
        "step_time_s": found.step_time_s,
        "parts_s": found.parts_s(),
        "exposed_by_network_s": found.exposed_by_network_s(),
        "overlapped_communication_s": found.overlapped_communication_s,
        "compute_slowdown_s": found.compute_slowdown_s,
        "communication_off": _off(beside),
        "ranks": [_rank(rank) for rank in found.ranks],
        "stragglers": [
            {"rank": each.rank, "delay_s": each.delay_s, "cause": each.cause}
            for each in found.stragglers
        ],
        "collectives": [_collective(each, beside) for each in found.collectives],
        "probe": None if beside.probe is None else beside.probe.source,
        "first_reduction": _first(found.first_reduction),
        "notes": [*found.notes, *beside.notes],
    }


def _off(beside: MeasuredBeside) -> dict[str, Any] | None:
    off = beside.off
    if off is None:
        return None
    return {
        "step_time_s": off.step_time_s,
        "step_without_communication_s": off.step_without_communication_s,
        "network_cost_s": off.network_cost_s,
    }


def comparison_document(
    found: ExplanationComparison,
    beside_a: MeasuredBeside = NOTHING_BESIDE,
    beside_b: MeasuredBeside = NOTHING_BESIDE,
) -> dict[str, Any]:
    """Two jobs, and what differs: B less A in seconds, B over A as ratios."""
    return {
        "a": explanation_document(found.a, beside_a),
        "b": explanation_document(found.b, beside_b),
        "step_ratio": found.step_ratio,
        "parts": [
            {
                "part": each.part,
                "a_s": each.a_s,
                "b_s": each.b_s,
                "difference_s": each.difference_s,
                "a_share_ratio": each.a_share_ratio,
                "b_share_ratio": each.b_share_ratio,
            }
            for each in found.parts
        ],
        "collectives": [
            {
                "op": str(each.kind),
                "message_bytes": each.message_bytes,
                "a_transfer_s": each.a_transfer_s,
                "b_transfer_s": each.b_transfer_s,
                "time_ratio": each.time_ratio,
                "busbw_ratio": each.busbw_ratio,
            }
            for each in found.collectives
        ],
        "only_a": [_collective(each, beside_a) for each in found.only_a],
        "only_b": [_collective(each, beside_b) for each in found.only_b],
    }


def _rank(rank: RankExplanation) -> dict[str, Any]:
    steps = len(rank.steps)

    def mean_s(total_ns: float) -> float:
        return total_ns / 1e9 / steps

    idle: dict[str, int] = {}
    hidden: dict[str, int] = {}
    for step in rank.steps:
        for name, time_ns in step.idle_names_ns.items():
            idle[name] = idle.get(name, 0) + time_ns
        for part, time_ns in step.hidden_ns.items():
            hidden[part] = hidden.get(part, 0) + time_ns
    slowdown_ns = rank.compute_slowdown_ns
    return {
        "rank": rank.rank,
        "host": rank.host,
        "source": rank.source,
        "step_time_s": rank.step_time_s,
        "parts_s": rank.parts.seconds(steps),
        "overlapped_communication_s": mean_s(
            sum(step.overlapped_communication_ns for step in rank.steps)
        ),
        "compute_slowdown_s": None if slowdown_ns is None else mean_s(slowdown_ns),
        "bound_by": [step.bound_by for step in rank.steps],
        "gpu_busy_s": mean_s(sum(step.gpu_busy_ns for step in rank.steps))
        if rank.has_gpu
        else None,
        "hidden_s": {part: mean_s(time_ns) for part, time_ns in hidden.items()},
        "idle_by_range_s": {
            name: mean_s(time_ns) for name, time_ns in sorted(idle.items(), key=lambda i: -i[1])
        },
        "steps": [
            {
                "number": step.number,
                "step_time_s": step.duration_ns / 1e9,
                "parts_s": step.parts.seconds(1),
                "bound_by": step.bound_by,
            }
            for step in rank.steps
        ],
    }


def _collective(times: CollectiveTimes, beside: MeasuredBeside) -> dict[str, Any]:
    probed = probed_busbw(times, beside.probe)
    busbw = times.busbw_gbyte_per_s
    return {
        "op": str(times.kind),
        "group": times.group,
        "ranks": times.num_ranks,
        "nodes": times.num_nodes,
        "message_bytes": times.message_bytes,
        "dtype": times.dtype,
        "calls_per_step": times.calls_per_step_count,
        "time_s": times.time_s,
        "transfer_s": times.transfer_s,
        "waiting_s": times.waiting_s,
        "exposed_s": times.exposed_s,
        "busbw_gbyte_per_s": busbw,
        "probe_busbw_gbyte_per_s": probed,
        "probe_share_ratio": None if probed is None or busbw is None else busbw / probed,
    }


def _first(found: FirstReduction | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "op": str(found.kind),
        "name": found.name,
        "message_bytes": found.message_bytes,
        "after_begin_s": found.after_begin_s,
        "time_s": found.time_s,
        "transfer_s": found.transfer_s,
    }
