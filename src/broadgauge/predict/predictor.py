"""How long does a step of each of these trainings take? The one entry point of this room."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from broadgauge.predict.case import Bottleneck, TrainingCase
from broadgauge.predict.costs.compute import compute_costs
from broadgauge.predict.costs.pieces import ComputeCosts
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.facts.columns import Columns, columns_of
from broadgauge.predict.facts.knowledge import Knowledge, default_knowledge
from broadgauge.predict.intervals.uncertainty import WORDS, Intervals, intervals
from broadgauge.predict.memory.fullest_gpu import MemoryTable, memory_table
from broadgauge.predict.prediction import Interval, Prediction, StepParts, Widened
from broadgauge.predict.timeline.evaluation import Evaluation, evaluate

BOUNDS = (
    Bottleneck.COMPUTE,
    Bottleneck.MEMORY,
    Bottleneck.LAUNCH,
    Bottleneck.NETWORK,
    Bottleneck.INTRA_NODE,
    Bottleneck.PIPELINE,
    Bottleneck.STORAGE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionTable:
    """Predictions of many cases as arrays, for sweeps."""

    columns: Columns
    compute: ComputeCosts
    evaluation: Evaluation
    intervals: Intervals
    bound_index: npt.NDArray[np.intp]
    """Into BOUNDS."""
    memory: MemoryTable
    tokens_per_s: Times
    mfu_ratio: Times
    flops_per_token: Times


def predict(cases: Sequence[TrainingCase], knowledge: Knowledge | None = None) -> list[Prediction]:
    """One answer a case, in order. Raises InputError for what is unknown or impossible."""
    if not cases:
        return []
    table = predict_table(cases, knowledge)
    return [_prediction(table, index) for index in range(len(cases))]


def predict_table(
    cases: Sequence[TrainingCase], knowledge: Knowledge | None = None
) -> PredictionTable:
    """The same as arrays; at least one case."""
    known = default_knowledge() if knowledge is None else knowledge
    columns = columns_of(cases, known)
    compute = compute_costs(columns, known)
    evaluation = evaluate(columns, compute)
    flops = flops_per_token(columns)
    batch = np.array([case.global_batch for case in cases], dtype=np.float64)
    tokens_per_s = batch * columns.seq_len / evaluation.step_s
    peak = columns.gemm_flops * columns.nodes * columns.gpus_per_node
    return PredictionTable(
        columns=columns,
        compute=compute,
        evaluation=evaluation,
        intervals=intervals(columns, compute, evaluation, known),
        bound_index=_bound_index(compute, evaluation),
        memory=memory_table(columns),
        tokens_per_s=tokens_per_s,
        mfu_ratio=tokens_per_s * flops / peak,
        flops_per_token=flops,
    )


def flops_per_token(columns: Columns) -> Times:
    """Of the model, forward and backward, without recomputation: 6N + 12LHS.

    N are the parameters that a token passes, without those that multiply nothing: an embedding of
    tokens that is not the head's, too, and learned positions. Source: torchtitan 0.2.2,
    `get_nparams_and_flops`; messages/model_shape.py, `multiplying_parameters`, of which
    the measured MFU is.

    4N where the weights are frozen (LoRA): their gradients, 2N, are not computed, and adapters are
    too small to count. Source: Chowdhery et al. 2022 (PaLM, arXiv 2204.02311), appendix B.
    """
    shapes = columns.shapes
    active = np.array([case.model.active_params for case in columns.cases], dtype=np.float64)
    table = shapes.embedding_params - shapes.vocabulary * shapes.hidden
    loose = shapes.outside_params - shapes.embedding_params
    multiplying = active - table - loose
    per_parameter = np.where(columns.is_lora, 4.0, 6.0)
    attention = 12 * shapes.layers * shapes.attention_width * columns.seq_len
    return per_parameter * multiplying + attention


def _bound_index(compute: ComputeCosts, evaluation: Evaluation) -> npt.NDArray[np.intp]:
    """What is busiest decides: to make anything else faster gains less. The network is as busy as
    it is waited for, at least: latencies and ends that don't overlap count."""
    kernels_s = evaluation.compute_s + evaluation.optimizer_s
    is_memory = compute.memory_bound_ratio > 0.5
    nothing = np.zeros_like(kernels_s)
    busy = [
        np.where(is_memory, nothing, kernels_s),
        np.where(is_memory, kernels_s, nothing),
        np.where(evaluation.launch_s > 0.02 * evaluation.step_s, evaluation.host_busy_s, 0.0),
        np.maximum(evaluation.inter_busy_s, evaluation.exposed_network_s),
        evaluation.intra_busy_s,
        evaluation.bubble_s,
        evaluation.storage_s,
    ]
    return np.asarray(np.argmax(np.stack(busy), axis=0))


def _prediction(table: PredictionTable, index: int) -> Prediction:
    evaluation = table.evaluation
    dominant, narrowed_by = WORDS[str(table.intervals.regimes[index])]

    def at(values: Times) -> float:
        return float(values[index])

    return Prediction(
        case=table.columns.cases[index],
        step_time_s=Interval(
            value=at(evaluation.step_s),
            low=at(table.intervals.low_s),
            high=at(table.intervals.high_s),
        ),
        parts=StepParts(
            compute_s=at(evaluation.compute_s),
            launch_s=at(evaluation.launch_s),
            exposed_intra_node_s=at(evaluation.exposed_intra_node_s),
            exposed_network_s=at(evaluation.exposed_network_s),
            bubble_s=at(evaluation.bubble_s),
            optimizer_s=at(evaluation.optimizer_s),
            storage_s=at(evaluation.storage_s),
        ),
        overlapped_communication_s=at(evaluation.overlapped_s),
        network_bytes=at(evaluation.network_bytes),
        network_busy_s=at(evaluation.inter_busy_s),
        bound=BOUNDS[int(table.bound_index[index])],
        dominant=dominant,
        narrowed_by=narrowed_by,
        is_calibrated=bool(table.intervals.is_calibrated[index]),
        is_outside=bool(table.intervals.is_outside[index]),
        widened=_widened(table.intervals, index),
        memory=table.memory.use(index),
        tokens_per_s=at(table.tokens_per_s),
        mfu_ratio=at(table.mfu_ratio),
        flops_per_token=at(table.flops_per_token),
    )


def _widened(intervals: Intervals, index: int) -> Widened | None:
    ratio = float(intervals.widenings.width_ratio[index])
    is_known = intervals.is_calibrated[index] and intervals.widenings.is_measured[index]
    if ratio == 1 or is_known:
        return None
    return Widened(kind=str(intervals.widenings.kinds[index]), width_ratio=ratio)
