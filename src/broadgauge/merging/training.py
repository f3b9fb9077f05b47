"""What do the ranks' steps of one training add up to?

The slowest rank counts in each step. Only steps with communication on count for rates, bytes and
the nodes' use; those with communication off say what the network costs.
"""

import math
import statistics
from collections.abc import Sequence

from broadgauge.catalog.traffic import grouped_node_bytes, ring_node_bytes
from broadgauge.merging.collectives import slowest_rank_s
from broadgauge.merging.counters import (
    MarkedInterval,
    add_traffic,
    busiest_bytes,
    intervals_by_label,
)
from broadgauge.merging.epochs import put_completion
from broadgauge.merging.metrics import (
    ONE_RANK,
    MeasurementBuilder,
    put_link,
    put_nodes,
    why_no_traffic,
)
from broadgauge.merging.packed_steps import SameSteps, put_packing, samples_by_step
from broadgauge.merging.rank_blocks import RankBlocks, same_of_all_ranks
from broadgauge.messages.rank import StepCollective, StepsBlock, TrainSummary
from broadgauge.messages.vocabulary import StepMode
from broadgauge.specs.case import Case
from broadgauge.specs.launching import Mark
from broadgauge.specs.records.record import ErrorKind, Phase, TrialError
from broadgauge.specs.workloads.workload import PreparedData, TrainWorkload

CHECKSUM_TOLERANCE = 1e-7
"""Relative; ranks that trained together differ by nothing, ranks that did not by far more."""
NO_STEPS = "no block of steps was finished by all ranks"


def merge_training(
    case: Case,
    train: TrainWorkload,
    ranks: Sequence[RankBlocks],
    marks: Sequence[Mark],
    peak_flops: float | None,
) -> MeasurementBuilder:
    found = MeasurementBuilder()
    intervals = intervals_by_label(marks)
    blocks = same_of_all_ranks([rank.of(StepsBlock) for rank in ranks], case.world_size)
    on = [same for same in blocks if same[0].mode is StepMode.TIMED]
    off = [same for same in blocks if same[0].mode is StepMode.COMMUNICATION_OFF]
    found.series["step_time_s"] = on_s = _slowest(on)
    found.series["step_without_communication_s"] = off_s = _slowest(off)
    found.series["loss"] = tuple(loss for same in on for loss in mean_losses(same))
    step_s = statistics.fmean(on_s) if on_s else None
    summaries = [said for rank in ranks if (said := rank.last(TrainSummary)) is not None]
    _put_times(found, step_s, off_s, _why_no_off_steps(case, train))
    _put_throughput(found, summaries, step_s, case.world_size)
    _put_mfu(found, summaries, step_s, peak_flops)
    _put_loss(found, on)
    used = [intervals[same[0].label] for same in on if same[0].label in intervals]
    _put_traffic(found, case, used, (step_s, len(on_s)), summaries)
    put_nodes(found, case, used)
    put_packing(found, on, summaries, step_s)
    samples = samples_by_step(on)
    put_completion(found, case, train, summaries, measured_s=on_s, num_samples=samples)
    found.data = summaries[0].data if summaries else None
    found.error = _other_data(train, ranks) or _apart(ranks) or _thawed(ranks)
    return found


def mean_losses(same: SameSteps) -> tuple[float | None, ...]:
    """The mean over ranks of each step's loss; None where one is not finite."""
    by_step = zip(*(block.losses for block in same), strict=True)
    return tuple(
        statistics.fmean(known) if len(known) == len(losses) else None
        for losses in by_step
        for known in [[loss for loss in losses if loss is not None]]
    )


def _slowest(blocks: Sequence[SameSteps]) -> tuple[float, ...]:
    return tuple(s for same in blocks for s in slowest_rank_s([b.seconds for b in same]))


def _put_times(
    found: MeasurementBuilder, step_s: float | None, off_s: Sequence[float], reason: str
) -> None:
    """step_time_s, the same without communication, and what the network costs: the difference.

    `reason`: why there are no steps without communication, where there are none.
    """
    off_mean_s = statistics.fmean(off_s) if off_s else None
    cost_s = None if step_s is None or off_mean_s is None else step_s - off_mean_s
    found.put("step_time_s", step_s, NO_STEPS)
    found.put("step_without_communication_s", off_mean_s, reason)
    found.put("network_cost_s", cost_s, reason if off_mean_s is None else NO_STEPS)
    share = None if cost_s is None or step_s is None else cost_s / step_s
    found.put("network_share_ratio", share, reason if off_mean_s is None else NO_STEPS)


def _why_no_off_steps(case: Case, train: TrainWorkload) -> str:
    if case.world_size == 1:
        return ONE_RANK
    if not train.communication_off:
        return "`communication_off: false` in the workload"
    return NO_STEPS


def _put_throughput(
    found: MeasurementBuilder,
    summaries: Sequence[TrainSummary],
    step_s: float | None,
    world_size: int,
) -> None:
    is_known = step_s is not None and len(summaries) == world_size
    reason = "the training did not end" if step_s is not None else NO_STEPS
    for name, per_step in (
        ("tokens_per_s", sum(s.tokens_per_step for s in summaries)),
        ("samples_per_s", sum(s.sequences_per_step for s in summaries)),
    ):
        found.put(name, per_step / step_s if is_known and step_s else None, reason)
    peak_bytes = max((float(s.peak_memory_bytes) for s in summaries), default=None)
    found.put("peak_memory_bytes", peak_bytes, "the training did not end")
    compiled_s = [s.compile_s for s in summaries if s.compile_s is not None]
    if compiled_s:
        found.put("compile_s", max(compiled_s))


def _put_mfu(
    found: MeasurementBuilder,
    summaries: Sequence[TrainSummary],
    step_s: float | None,
    peak_flops: float | None,
) -> None:
    """Model FLOPs of all ranks / (step time x peak of all ranks' devices).

    Source: Chowdhery et al. 2022 (PaLM), appendix B: no recomputation counted.
    """
    if peak_flops is None:
        found.put("mfu_ratio", None, "no peak FLOP/s is known for this device")
        return
    if step_s is None or not summaries:
        found.put("mfu_ratio", None, NO_STEPS)
        return
    flops_per_rank = statistics.fmean(s.flops_per_step for s in summaries)
    found.put("mfu_ratio", flops_per_rank / (step_s * peak_flops))


def _put_loss(found: MeasurementBuilder, on: Sequence[SameSteps]) -> None:
    """The mean over the last block of steps with communication on, and over ranks."""
    losses = mean_losses(on[-1]) if on else ()
    known = [loss for loss in losses if loss is not None]
    is_finite = bool(known) and len(known) == len(losses)
    found.put(
        "loss",
        statistics.fmean(known) if is_finite else None,
        "the loss is not finite" if losses else NO_STEPS,
    )


def _put_traffic(
    found: MeasurementBuilder,
    case: Case,
    used: Sequence[MarkedInterval],
    steps: tuple[float | None, int],
    summaries: Sequence[TrainSummary],
) -> None:
    """Bytes on the wire a step, against those of rings for the step's collectives."""
    step_s, num_steps = steps
    traffic = add_traffic(interval.traffic for interval in used) if case.nodes > 1 else None
    wire_bytes = None if traffic is None or not num_steps else busiest_bytes(traffic) / num_steps
    put_link(found, case, wire_bytes, step_s)
    amplification = None
    if wire_bytes is not None and summaries and case.world_size > 1:
        amplification = wire_bytes / ring_step_bytes(summaries[0], case)
    found.put("amplification_ratio", amplification, why_no_traffic(case))


def ring_step_bytes(summary: TrainSummary, case: Case) -> float:
    """How many bytes would leave a node in a step, each of its collectives being one ring of the
    ranks that take part?

    A rank that does not say its collectives reduces its gradients once, with all others.
    """
    whole = StepCollective(op="all_reduce", size_bytes=summary.gradient_bytes)
    return sum(
        each.count * _ring_bytes(each, case.world_size, case.ranks_per_node)
        for each in summary.collectives or (whole,)
    )


def _ring_bytes(each: StepCollective, ranks: int, ranks_per_node: int) -> float:
    if each.group is None:
        return ring_node_bytes(each.op, ranks, each.size_bytes, ranks_per_node=ranks_per_node)
    return grouped_node_bytes(
        each.op, each.group, ranks, each.size_bytes, ranks_per_node=ranks_per_node
    )


def _other_data(train: TrainWorkload, ranks: Sequence[RankBlocks]) -> TrialError | None:
    """Has a rank read another text than the first? Nodes' files may differ under one path, and the
    standard library between versions of Python. (Of prepared sets ranks compare their keys, before
    they train.)"""
    is_named = train.text is not None or train.data is not None
    if not is_named or isinstance(train.data, PreparedData):
        return None
    told = [(rank.rank, said.data) for rank in ranks if (said := rank.last(TrainSummary))]
    for rank, data in told:
        first_rank, first = told[0]
        if data != first:
            return TrialError(
                kind=ErrorKind.WRONG_RESULT,
                message=f"rank {rank} read other data than rank {first_rank}: {data}; and {first}",
                phase=Phase.MEASURE,
                rank=rank,
            )
    return None


def _apart(ranks: Sequence[RankBlocks]) -> TrialError | None:
    """Did all ranks end with the same weights?"""
    checksums = [
        (rank.rank, checksum)
        for rank in ranks
        if (said := rank.last(TrainSummary)) is not None
        and (checksum := said.parameter_checksum) is not None
    ]
    for rank, checksum in checksums:
        first = checksums[0][1]
        if not math.isclose(checksum, first, rel_tol=CHECKSUM_TOLERANCE, abs_tol=1e-9):
            return TrialError(
                kind=ErrorKind.WRONG_RESULT,
                message=f"rank {rank} ended with other weights than rank 0: their sums are "
                f"{checksum:.9g} and {first:.9g}",
                phase=Phase.MEASURE,
                rank=rank,
            )
    return None


def _thawed(ranks: Sequence[RankBlocks]) -> TrialError | None:
    """Have frozen weights changed on any rank?"""
    for rank in ranks:
        said = rank.last(TrainSummary)
        if said is not None and said.is_frozen_unchanged is False:
            return TrialError(
                kind=ErrorKind.WRONG_RESULT,
                message=f"rank {rank.rank} ended with other frozen weights than it began with",
                phase=Phase.MEASURE,
                rank=rank.rank,
            )
    return None
