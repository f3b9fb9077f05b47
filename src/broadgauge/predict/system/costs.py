"""What does each piece of a step cost on a machine that was measured? System file → ComputeCosts.

A layer is its matrix products, by the measured products of about its shape; attention, likewise;
element-wise kernels by the bytes they move at the copy's rate; and launches as a tiny layer needs
them. What this leaves out (casts, norms' own speed, allocation) is in measured training steps: all
pieces are multiplied by what those took over what the pieces gave, of the step that is most alike.
"""

from dataclasses import replace

import numpy as np

from broadgauge.predict.asking.workload_case import training_case
from broadgauge.predict.case import Fabric
from broadgauge.predict.costs.compute import RECOMPUTE_LAUNCH
from broadgauge.predict.costs.pieces import ComputeCosts
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.facts.columns import Columns, columns_of
from broadgauge.predict.system.measured_points import (
    PassTimes,
    Points,
    attention,
    by_dtype,
    gemm,
    nearness,
)
from broadgauge.predict.timeline.evaluation import Evaluation, evaluate
from broadgauge.specs.machines.system import Compute, StepTime, System
from broadgauge.specs.workloads.workload import TrainWorkload

FORWARD_TRAFFIC, BACKWARD_TRAFFIC = 20.0, 40.0
"""Elements of a layer moved a token and hidden unit beside products and attention: two norms (2
each), two sums (3 each), GELU on four times the width (8), a transposed copy (2). Backward reads
each input and gradient and writes a gradient. Source: counted on probes/training/gpt.py."""
LOSS_BYTES = 24.0
"""Of a logit: written, made float32, its log-softmax, its gradient, and that cast back. Source:
counted on probes/training/gpt.py with torch 2.11's cross entropy."""
ACCUMULATE_BYTES = 12.0
"""Of a parameter: a gradient added to the one before, float32."""
ROUND_BYTES = 12.0
"""Of a parameter: float32 to bfloat16 and back around a collective."""
GATHER_COPIES = 2.0
"""Times that a gathered unit is read and written beside the collective itself (FSDP2 copies the
shards in and the parameters out). Source: torch 2.11, _fsdp_collectives.py."""
CAST_OPERATIONS = 8.0
"""Of a layer under autocast: inputs and weights of four linear layers."""


NO_GPU = "l4"
"""Stands where a case must name a GPU and the machine's device is in no catalog: nothing of the
entry is used in a step's time, all costs being measured."""


def stand_in(system: System) -> str:
    """Under which name of the catalog do cases of this machine go? A GPU's own; a CPU has none."""
    from broadgauge.catalog.gpus import find_gpu

    gpu = find_gpu(system.device.name) if system.device.kind == "cuda" else None
    return NO_GPU if gpu is None else gpu.name


def system_costs(columns: Columns, system: System) -> ComputeCosts:
    """Everything but communication, for each case."""
    raw = _raw_costs(columns, system)
    ratio = _correction(columns, system)
    return scaled_costs(raw, ratio)


def scaled_costs(costs: ComputeCosts, ratio: Times) -> ComputeCosts:
    """Every duration multiplied; shares stay."""
    kept = ("memory_bound_ratio", "overlap_slowdown_ratio")
    names = [name for name in ComputeCosts.__dataclass_fields__ if name not in kept]
    return replace(costs, **{name: getattr(costs, name) * ratio for name in names})


def steps_of(found: Evaluation, columns: Columns, *, is_cpu: bool) -> tuple[Times, Times]:
    """Seconds of each step, and of the step without communication.

    FSDP on cores hides nothing: its streams are a GPU's, and without them each gather and reduction
    is waited for where it is called. Source: torch 2.11, torch/distributed/fsdp/_fully_shard/
    _fsdp_param_group.py (`unshard_async_op` is False) and torch/cpu (`Stream` does nothing).
    """
    alone_s = found.step_s - found.exposed_network_s - found.exposed_intra_node_s
    if not is_cpu:
        return found.step_s, alone_s
    busy_s = np.where(found.inter_busy_s > 0, found.inter_busy_s, found.intra_busy_s)
    return np.where(columns.is_sharded, alone_s + busy_s, found.step_s), alone_s


def _raw_costs(columns: Columns, system: System) -> ComputeCosts:
    compute = system.compute
    layer, moved = _layer(columns, compute)
    head = _head(columns, compute)
    launch = _launches(columns, compute)
    is_cpu = system.device.kind == "cpu"
    zero = np.zeros(len(columns))
    if is_cpu:  # nothing runs beside the thread that launches
        layer = PassTimes(
            forward_s=layer.forward_s + launch.forward_s,
            backward_s=layer.backward_s + launch.backward_s,
        )
    shown = PassTimes(forward_s=zero, backward_s=zero) if is_cpu else launch
    return ComputeCosts(
        layer_forward_s=layer.forward_s,
        layer_backward_s=layer.backward_s,
        layer_recompute_s=columns.recomputed_ratio * layer.forward_s,
        layer_forward_launch_s=shown.forward_s,
        layer_backward_launch_s=shown.backward_s,
        layer_recompute_launch_s=RECOMPUTE_LAUNCH * columns.recomputed_ratio * shown.forward_s,
        head_forward_s=head.forward_s,
        head_backward_s=head.backward_s,
        head_forward_launch_s=0.6 * shown.forward_s,
        head_backward_launch_s=0.6 * shown.backward_s,
        optimizer_s=_optimizer_s(columns, compute),
        optimizer_launch_s=zero,
        step_fixed_s=zero,
        memory_bound_ratio=moved / (layer.forward_s + layer.backward_s),
        overlap_slowdown_ratio=zero,
    )


def _layer(columns: Columns, compute: Compute) -> tuple[PassTimes, Times]:
    """Both passes of one layer, and the part of them that memory bounds."""
    shapes, split, tokens = columns.shapes, columns.tensor_parallel, columns.tokens
    up = shapes.ffn_hidden * (shapes.mlp_matrices - 1)
    routed = np.maximum(1.0, tokens * shapes.active_experts / shapes.experts)
    times = tokens * shapes.active_experts / routed  # as many products as experts, or as rows
    one = np.ones(len(columns))
    matrices = (
        (one, tokens, shapes.hidden, shapes.qkv_width / split),
        (one, tokens, shapes.attention_width / split, shapes.hidden),
        (times, routed, shapes.hidden, up / split),
        (times, routed, shapes.ffn_hidden / split, shapes.hidden),
    )
    products = [gemm(columns, compute, *sizes).times(count) for count, *sizes in matrices]
    core = attention(columns, compute)
    rate = _copy_rate(compute)
    element = columns.element_bytes * tokens * shapes.hidden
    cast = 6.0 * shapes.layer_params / split * _is_autocast(columns)  # experts are cast together
    sharded = GATHER_COPIES * 2 * columns.element_bytes * shapes.layer_params / split
    sharded = np.where(columns.is_sharded, sharded, 0.0)
    summed = ACCUMULATE_BYTES * shapes.layer_params / split * (columns.micro_batches > 1)
    rounded = _rounding_bytes(columns) * shapes.layer_params / split / columns.micro_batches
    forward_s = (FORWARD_TRAFFIC * element + cast + sharded) / rate
    backward_s = (BACKWARD_TRAFFIC * element + cast + sharded + summed + rounded) / rate
    layer = PassTimes(
        forward_s=sum((each.forward_s for each in products), core.forward_s) + forward_s,
        backward_s=sum((each.backward_s for each in products), core.backward_s) + backward_s,
    )
    return layer, forward_s + backward_s


def _head(columns: Columns, compute: Compute) -> PassTimes:
    """Embedding, head and loss."""
    shapes, tokens = columns.shapes, columns.tokens
    product = gemm(columns, compute, tokens, shapes.hidden, shapes.vocabulary)
    rate = _copy_rate(compute)
    loss_s = LOSS_BYTES * tokens * shapes.vocabulary / rate
    embedding_s = 4.0 * columns.element_bytes * tokens * shapes.hidden / rate
    summed = np.where(columns.micro_batches > 1, ACCUMULATE_BYTES, 0.0)
    table_s = (summed + 8.0) * shapes.embedding_params / rate  # its gradient is dense
    return PassTimes(
        forward_s=product.forward_s + loss_s / 2 + embedding_s,
        backward_s=product.backward_s + loss_s / 2 + embedding_s + table_s,
    )


def _is_autocast(columns: Columns) -> Times:
    """1 where weights are cast in each pass: DDP in 16 bits."""
    return np.where(columns.is_sharded | (columns.element_bytes > 2), 0.0, 1.0)


def _rounding_bytes(columns: Columns) -> Times:
    """Of a parameter, where gradients travel in half the bytes."""
    given = [case.gradient_bytes for case in columns.cases]
    is_half = np.array([each is not None and each < 4 for each in given])
    return np.where(is_half & (columns.data_parallel > 1), ROUND_BYTES, 0.0)


def _copy_rate(compute: Compute) -> float:
    """byte/s read and written together, of the largest copy: what does not fit any cache."""
    largest = max(compute.copies, key=lambda each: each.size_bytes)
    return 2 * largest.size_bytes / largest.time.median_s


def _launches(columns: Columns, compute: Compute) -> PassTimes:
    """Of a layer; under autocast with its casts."""
    launch = compute.launch
    casts_s = _is_autocast(columns) * CAST_OPERATIONS * launch.operation.median_s
    zero = np.zeros(len(columns))
    return PassTimes(
        forward_s=zero + launch.layer_forward.median_s + casts_s,
        backward_s=zero + launch.layer_backward.median_s + casts_s,
    )


def _optimizer_s(columns: Columns, compute: Compute) -> Times:
    """A straight line through the smallest and the largest that were measured."""
    ordered = sorted(compute.optimizer, key=lambda each: each.parameters)
    small, large = ordered[0], ordered[-1]
    local = columns.shapes.params / columns.tensor_parallel / columns.pipeline_parallel
    local = np.where(columns.is_optimizer_sharded, local / columns.data_parallel, local)
    if small.parameters == large.parameters:
        return local * large.time.median_s / large.parameters
    each_s = (large.time.median_s - small.time.median_s) / (large.parameters - small.parameters)
    fixed_s = max(0.0, small.time.median_s - each_s * small.parameters)
    return fixed_s + max(each_s, 0.0) * local


def _correction(columns: Columns, system: System) -> Times:
    """Measured over modelled, of the training steps that are most like each case."""
    ratio = np.ones(len(columns))
    for mask, dtype in by_dtype(columns, {each.dtype for each in system.compute.steps}):
        mine = [each for each in system.compute.steps if each.dtype == dtype]
        points, ratios = _step_points(mine, system)
        shapes = columns.shapes
        wanted = np.log2(np.stack([shapes.hidden, columns.tokens], axis=1))
        ratio[mask] = np.exp(nearness(wanted[mask], points) @ np.log(ratios))
    return ratio


def _step_points(steps: list[StepTime], system: System) -> tuple[Points, Points]:
    cases = [
        training_case(
            TrainWorkload(
                kind="train", model=step.model, dtype=step.dtype, batch_per_rank=step.batch
            ),
            gpu=stand_in(system),
            nodes=1,
            ranks_per_node=1,
            fabric=Fabric(),
        )
        for step in steps
    ]
    columns = columns_of(cases)
    modelled_s = evaluate(columns, _raw_costs(columns, system)).step_s
    measured_s = np.array([step.time.median_s for step in steps])
    points = np.log2([[step.model.hidden, step.batch * step.model.seq_len] for step in steps])
    return points, measured_s / modelled_s
