"""How long should a launch and its trials take? Rough: for the first screen and the remaining time.

Wrong by a factor of two is normal; while a run goes on, the remaining time is scaled by how long
the trials so far took (engine/pace.py). Constants marked "measured" were seen once between emulated
nodes of one machine; the others are guesses, and nothing but waiting rests on them.
"""

from broadgauge.catalog.traffic import gloo_node_bytes, ring_node_bytes
from broadgauge.specs.case import Case
from broadgauge.specs.model_messages import fsdp_units
from broadgauge.specs.network import Network
from broadgauge.specs.pairs import ordered_pairs
from broadgauge.specs.workload import (
    DATA_TYPE_BYTES,
    CollectiveOp,
    CollectivesWorkload,
    TrainWorkload,
)

COMMAND_S = 60.0
"""Of a user's command nothing is known."""

_START_S = {"cpu": 3.0, "cuda": 10.0}
"""Processes, imports, first process group, end. 2.8 s for two Gloo ranks (measured)."""
_START_S_PER_RANK = {"cpu": 0.7, "cuda": 0.3}
"""Importing torch is CPU work that ranks queue for."""
_PROCESS_GROUP_S = {"gloo": 0.3, "nccl": 2.0}
_UNSHAPED_GBYTE_PER_S = {"gloo": 0.35, "nccl": 3.4}
"""Between emulated nodes (measured: 2.8 Gbit/s over Gloo, 3.4 GB/s over NCCL)."""
_ONE_NODE_GBYTE_PER_S = {"gloo": 0.7, "nccl": 200.0}
_LATENCY_S = {"gloo": 5e-4, "nccl": 5e-5}
_BETWEEN_SIZES_S = 0.03
"""Marks, counters and the check of the result, at each size."""
_PROGRAM_S = 4.0
"""A program of nccl-tests: CUDA, NCCL, memory, marks. A guess."""
_FLOPS = {"cpu": 20e9, "cuda": 150e12}
"""FLOP/s of one rank in a small GPT's step."""
_LATENCY_PER_STEP_S = 0.02
_READ_DATA_S = 1.0


def start_s(case: Case) -> float:
    """How long until the ranks of such a case are up, and down again?"""
    return _START_S[case.device] + _START_S_PER_RANK[case.device] * case.world_size


def trial_s(case: Case) -> float:
    """How long does one trial of this case take, its process group included?"""
    match case.workload:
        case CollectivesWorkload() as collectives:
            return _PROCESS_GROUP_S[case.backend] + _collectives_s(case, collectives)
        case TrainWorkload() as train:
            return _PROCESS_GROUP_S[case.backend] + _train_s(case, train)
        case _:
            return COMMAND_S


def _collectives_s(case: Case, collectives: CollectivesWorkload) -> float:
    ops: tuple[CollectiveOp, ...] = collectives.ops
    if collectives.pairwise:
        ops = tuple("send_recv" for _ in ordered_pairs(case.nodes, case.ranks_per_node))
    total_s = 0.0
    for op in ops:
        for size_bytes in collectives.sizes_bytes():
            time_s = _LATENCY_S[case.backend] + transfer_s(case, op, size_bytes)
            fewest_s = collectives.min_iterations * time_s
            most_s = collectives.max_iterations * time_s
            measured_s = min(max(collectives.budget_s, fewest_s), most_s)
            warm_up_s = collectives.warm_up_iterations * time_s
            total_s += measured_s + warm_up_s + _BETWEEN_SIZES_S
            if collectives.engine == "nccl-tests":  # its own warm-up, and as many in place
                total_s += measured_s + warm_up_s + _PROGRAM_S
    return total_s * len(collectives.dtypes)


def _train_s(case: Case, train: TrainWorkload) -> float:
    """Steps with communication on and off; what computing hides of it is not taken off."""
    tokens = train.batch_per_rank * train.accumulation * train.model.seq_len
    compute_s = tokens * train.model.flops_per_token / _FLOPS[case.device]
    compute_s += _LATENCY_PER_STEP_S * train.accumulation
    sent = step_bytes(train).items()
    communicating_s = compute_s + sum(transfer_s(case, op, size_bytes) for op, size_bytes in sent)
    total_s = _READ_DATA_S + (train.warm_up_steps + train.steps) * communicating_s
    if train.communication_off:
        total_s += (train.steps + 1) * compute_s
    return total_s


def step_bytes(train: TrainWorkload) -> dict[CollectiveOp, int]:
    """What does a step give to each collective, of size S, padding left out?

    DDP reduces every gradient once. FSDP gathers a block for its forward pass and, where it was
    freed, for its backward pass, in each micro-batch; what is in no block is gathered once. Source:
    torch 2.11 fully_shard; tests/probes/test_training_strategies.py holds what real ranks sent.
    """
    gradients = train.model.parameters * DATA_TYPE_BYTES[train.gradient_dtype]
    if train.strategy == "ddp":
        return {"all_reduce": gradients}
    *blocks, rest = fsdp_units(train.model)
    passes = train.accumulation if train.reshard_after_forward else 1
    gathers = 2 * passes if train.reshard_after_forward else 1
    gathered = gathers * sum(blocks) + passes * rest
    gathered_bytes = gathered * DATA_TYPE_BYTES[train.dtype]
    return {"all_gather": gathered_bytes, "reduce_scatter": gradients}


def transfer_s(case: Case, op: CollectiveOp, size_bytes: int) -> float:
    """How long are one collective's bytes under way on the busiest node's link, or between the
    ranks of one node? Source: catalog/traffic.py; NCCL is taken for a ring."""
    node_bytes = gloo_node_bytes if case.backend == "gloo" else ring_node_bytes
    ranks_per_node = 1 if case.nodes == 1 else case.ranks_per_node
    crossing = node_bytes(op, case.world_size, size_bytes, ranks_per_node=ranks_per_node)
    return crossing / (_rate_gbyte_per_s(case, case.link) * 1e9)


def _rate_gbyte_per_s(case: Case, network: Network | None) -> float:
    if network is None:
        return _ONE_NODE_GBYTE_PER_S[case.backend]
    unshaped = _UNSHAPED_GBYTE_PER_S[case.backend]
    payload_gbps = network.payload_rate_gbps
    return unshaped if payload_gbps is None else min(unshaped, payload_gbps / 8)
