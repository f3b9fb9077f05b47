"""How long does a step of the reference trainer take on a machine that was calibrated?

The system file says what its ranks compute and what its paths carry; each network is the shaped or
unshaped emulated one, or the path inside a node, that the experiment names.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from broadgauge.messages.strategies import STRATEGIES
from broadgauge.predict.asking.workload_case import training_case
from broadgauge.predict.case import Fabric, TrainingCase
from broadgauge.predict.costs.pieces import ComputeCosts
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.facts.columns import Columns, columns_of
from broadgauge.predict.facts.knowledge import default_knowledge
from broadgauge.predict.system.costs import stand_in, steps_of, system_costs
from broadgauge.predict.system.curves import fabric_on, host_share, with_all_ops
from broadgauge.predict.system.paths import path_curves
from broadgauge.predict.system.trainer_bytes import step_bytes
from broadgauge.predict.timeline.evaluation import evaluate
from broadgauge.specs.case import Backend
from broadgauge.specs.machines.system import System, TrainedStep
from broadgauge.specs.networks.network import AnyNetwork, Network, NodePath
from broadgauge.specs.workloads.gpt import DATA_TYPE_BYTES
from broadgauge.specs.workloads.model_messages import ddp_buckets, fsdp_units, gradient_elements
from broadgauge.specs.workloads.workload import TrainWorkload

MOST_OVERHEAD_RATIO = 0.75
"""Of a step's compute that a strategy's own work on the host may be taken for: more is a machine
that was busy with something else. Source: docs/measurements.md: 0.66 for FSDP2 on an H200."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedStep:
    """One training on one network of the calibrated machine."""

    workload: TrainWorkload
    network: AnyNetwork | None
    nodes: int
    ranks_per_node: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedStep:
    """Its step."""

    step_s: float
    without_s: float
    """With communication off."""
    network_bytes: float


def predict_steps(system: System, asked: Sequence[AskedStep]) -> list[PredictedStep]:
    """One answer each."""
    if not asked:
        return []
    cases = [question_on(system, each) for each in asked]
    columns = columns_of(cases)
    costs = _with_overheads(columns, system_costs(columns, system), _overheads(system), asked)
    if system.device.kind == "cpu":
        shares = [
            host_share(system.paths, case.fabric, usual_message_bytes(each.workload))
            for case, each in zip(cases, asked, strict=True)
        ]
        costs = replace(costs, overlap_slowdown_ratio=np.array(shares))
    else:
        usual = default_knowledge().value("overlap_slowdown_ratio")
        costs = replace(costs, overlap_slowdown_ratio=np.full(len(columns), usual))
    found = evaluate(columns, costs)
    step_s, without_s = steps_of(found, columns, is_cpu=system.device.kind == "cpu")
    return [
        PredictedStep(
            step_s=float(step_s[index]),
            without_s=float(without_s[index]),
            network_bytes=step_bytes(
                each.workload, backend_of(system), each.nodes, each.ranks_per_node
            ),
        )
        for index, each in enumerate(asked)
    ]


def why_unknown_here(workload: TrainWorkload) -> str | None:
    """What of this training has no system file measured? Its steps are a GPT's, as PyTorch runs
    them, with DDP and FSDP. None: it has measured such a step."""
    unknown = {
        "a Llama-like model": workload.model.kind != "gpt",
        "`compile: true`": workload.compile,
        "`strategy: hsdp`": workload.strategy == "hsdp",
        "`lora`": workload.lora is not None,
        f"`attention: {workload.attention}`": workload.attention != "sdpa",
        "`activation_checkpointing`": workload.activation_checkpointing != "none",
        "`cpu_offload`": workload.cpu_offload,
    }
    found = " and ".join(words for words, is_there in unknown.items() if is_there)
    return f"`{workload.name}`: a system file has measured no step with {found}" if found else None


def backend_of(system: System) -> Backend:
    """What its ranks send with."""
    return "nccl" if system.device.kind == "cuda" else "gloo"


def question_on(system: System, asked: AskedStep) -> TrainingCase:
    """The case, its fabric with curves."""
    return training_case(
        asked.workload,
        gpu=stand_in(system),
        nodes=asked.nodes,
        ranks_per_node=asked.ranks_per_node,
        fabric=fabric_for(system, asked.network, asked.nodes, asked.ranks_per_node),
    )


def fabric_for(
    system: System, network: AnyNetwork | None, nodes: int, ranks_per_node: int
) -> Fabric:
    """What was measured of this way between these ranks."""
    if isinstance(network, Network):
        fabric = fabric_on(system.paths, network, nodes, ranks_per_node)
        return replace(fabric, curves=with_all_ops(fabric.curves, backend_of(system)))
    inside = [path for path in system.paths if path.nodes == 1 and path.collectives]
    if isinstance(network, NodePath):
        inside = [path for path in inside if path.path == network.path]
    path = next((each for each in inside if each.ranks_per_node == ranks_per_node), None)
    if path is None:
        return Fabric()
    return Fabric(curves=with_all_ops(path_curves(path), path.backend))


def usual_message_bytes(workload: TrainWorkload) -> float:
    """Of the collective that moves most: the largest bucket, or a block's unit."""
    if STRATEGIES[workload.strategy].is_sharded:
        units = fsdp_units(workload.model, workload.adapters)
        return float(DATA_TYPE_BYTES[workload.dtype] * max(units))
    elements = gradient_elements(workload.model, workload.adapters)
    buckets = ddp_buckets(elements, workload.bucket_cap_bytes)
    return float(DATA_TYPE_BYTES[workload.gradient_dtype] * max(buckets))


def _overheads(system: System) -> dict[str, float]:
    """Of each strategy: what a block needs beside its own passes, by the short trainings.

    Hooks, and for FSDP the host's work around each unit.
    """
    found: dict[str, float] = {}
    for trained in system.trained:
        workload = _workload_of(trained)
        alone = training_case(
            workload, gpu=stand_in(system), nodes=1, ranks_per_node=1, fabric=Fabric()
        )
        split = replace(alone, nodes=2, data_parallel=2, global_batch=2 * alone.global_batch)
        columns = columns_of([split])
        costs = system_costs(columns, system)
        answer = evaluate(columns, costs)
        without = answer.step_s - answer.exposed_network_s - answer.exposed_intra_node_s
        extra_s = trained.without_communication.median_s - float(without[0])
        most_s = MOST_OVERHEAD_RATIO * trained.without_communication.median_s
        found[trained.strategy] = float(np.clip(extra_s, 0.0, most_s)) / trained.model.layers
    return found


def _workload_of(trained: TrainedStep) -> TrainWorkload:
    return TrainWorkload(
        kind="train",
        strategy=trained.strategy,
        model=trained.model,
        dtype=trained.dtype,
        batch_per_rank=trained.batch,
    )


def _with_overheads(
    columns: Columns, costs: ComputeCosts, overheads: dict[str, float], asked: Sequence[AskedStep]
) -> ComputeCosts:
    """A block's share in its passes, one third forward as its work is; only where there are ranks
    to hook for."""
    each_s: Times = np.array(
        [
            overheads.get(one.workload.strategy, 0.0) if case.gpus > 1 else 0.0
            for one, case in zip(asked, columns.cases, strict=True)
        ]
    )
    return replace(
        costs,
        layer_forward_s=costs.layer_forward_s + each_s / 3,
        layer_backward_s=costs.layer_backward_s + each_s * 2 / 3,
    )
