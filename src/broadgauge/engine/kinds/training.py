"""What does the engine know of a training? The arithmetic and the bytes of its step."""

from dataclasses import dataclass
from typing import assert_never

from broadgauge.engine.kinds.kind import KindInEngine
from broadgauge.engine.storage_rate import storage_gbyte_per_s
from broadgauge.engine.transfers import PROCESS_GROUP_S, transfer_s
from broadgauge.messages.checkpoints import SAVED_BYTES
from broadgauge.messages.rank import RankGroup, StepCollective
from broadgauge.specs.case import Case
from broadgauge.specs.model_messages import fsdp_units, trained_elements
from broadgauge.specs.prepared_data import Packing
from broadgauge.specs.workload import DATA_TYPE_BYTES, CollectiveOp, SynthesizedData, TrainWorkload

_FLOPS = {"cpu": 20e9, "cuda": 150e12}
"""FLOP/s of one rank in a small GPT's step. A guess."""
_LATENCY_PER_STEP_S = 0.02
_READ_DATA_S = 1.0
_COMPILE_S = 40.0
"""A block and the head, forward and backward. A guess: 15 s and more on GPUs, a minute on slow
cores."""


@dataclass(frozen=True, slots=True)
class TrainingInEngine(KindInEngine):
    """A training as it is planned."""

    train: TrainWorkload

    def trial_s(self, case: Case) -> float:
        """Steps with communication on and off; what computing hides of it is not taken off."""
        train = self.train
        tokens = tokens_per_rank(train, case.world_size)
        compute_s = tokens * train.model.flops_per_token / _FLOPS[case.device]
        compute_s += _LATENCY_PER_STEP_S * most_micro_batches(train, case.world_size)
        communicating_s = compute_s + sum(
            transfer_s(case, each.op, each.size_bytes, each.group)
            for each in step_collectives(train, case.nodes, case.ranks_per_node)
        )
        total_s = PROCESS_GROUP_S[case.backend] + _READ_DATA_S
        total_s += _COMPILE_S if train.compile else 0.0
        num_traced = 0 if train.trace is None else 1 + train.trace.steps
        total_s += (train.warm_up_steps + train.steps + num_traced) * communicating_s
        total_s += saving_s(train, case)
        if train.communication_off:
            total_s += (train.steps + 1) * compute_s
        return total_s

    def why_not_run(self, case: Case) -> str | None:
        shards = shard_ranks(self.train, case.nodes, case.ranks_per_node)
        if case.world_size % shards:
            return f"{case.world_size} ranks are no whole number of replicas over {shards}"
        return None

    @property
    def uses_folder(self) -> bool:
        is_made_up = isinstance(self.train.data, SynthesizedData)
        return self.train.text is not None or (self.train.data is not None and not is_made_up)


def saving_s(train: TrainWorkload, case: Case) -> float:
    """What all checkpoints take until they are durable: the last one of a block is waited for."""
    if train.checkpoints is None:
        return 0.0
    saved_bytes = SAVED_BYTES * trained_elements(train.model, train.lora)
    saves = train.steps // train.checkpoints.every_steps
    return saves * saved_bytes / (storage_gbyte_per_s(case.storage, reads=False) * 1e9)


def tokens_per_rank(train: TrainWorkload, world_size: int) -> int:
    """Of a step; of batches by tokens as many as made-up samples have on average, else at most:
    every sample being as long as is taken."""
    if train.packing is None:
        return train.batch_per_rank * train.accumulation * train.model.seq_len
    sample_tokens = longest_sample(train.model.seq_len, train.packing)
    if isinstance(train.data, SynthesizedData):
        sample_tokens = train.data.synthesized.mean_tokens
    return -(-train.packing.effective_batch_size * sample_tokens // world_size)


def longest_sample(seq_len: int, packing: Packing) -> int:
    """What the model takes and the budget does not leave out."""
    return min(seq_len, packing.max_batch_len)


def most_micro_batches(train: TrainWorkload, world_size: int) -> int:
    """Of a step. Of batches by tokens: a micro-batch that is full leaves less than a sample's
    length empty on each rank, and less than half, since the longest come first; and none has fewer
    than one sample of the step's."""
    if train.packing is None:
        return train.accumulation
    budget = train.packing.max_batch_len
    used = max(budget - longest_sample(train.model.seq_len, train.packing), budget // 2)
    full = -(-tokens_per_rank(train, world_size) // used)
    return min(full, train.packing.effective_batch_size)


def shard_ranks(train: TrainWorkload, nodes: int, ranks_per_node: int) -> int:
    """How many ranks share the parameters?"""
    match train.strategy:
        case "ddp":
            return 1
        case "fsdp":
            return nodes * ranks_per_node
        case "hsdp":
            return train.shard_ranks or ranks_per_node
        case unknown:
            assert_never(unknown)


def step_collectives(
    train: TrainWorkload, nodes: int, ranks_per_node: int
) -> tuple[StepCollective, ...]:
    """What does a step give to each collective of each group of ranks, all of a kind as one?"""
    world, shards = nodes * ranks_per_node, shard_ranks(train, nodes, ranks_per_node)
    sent = step_bytes(train, world)
    if train.strategy != "hsdp" or shards == world:
        return tuple(StepCollective(op=op, size_bytes=size) for op, size in sent.items())
    inside, across = RankGroup(size=shards), RankGroup(size=world // shards, stride=shards)
    reduced = StepCollective(
        op="all_reduce",
        size_bytes=sent["reduce_scatter"] // shards,
        group=across if shards > 1 else None,
    )
    if shards == 1:
        return (reduced,)
    scattered = (StepCollective(op=op, size_bytes=size, group=inside) for op, size in sent.items())
    return (*scattered, reduced)


def step_bytes(train: TrainWorkload, world_size: int = 1) -> dict[CollectiveOp, int]:
    """What does a step of DDP, or of a group of ranks that shard, give to each collective, of size
    S, padding left out?

    DDP reduces every gradient once; so does FSDP, or with `reduce_each_micro_batch` in each of
    them. FSDP gathers a block for its forward pass and, where it was freed, for its backward pass,
    in each micro-batch; what is in no block is gathered once. Of LoRA's weights the frozen ones are
    gathered too, and the adapters alone are reduced. Source:
    torch 2.11 fully_shard; tests/probes/test_training_strategies.py holds what real ranks sent.
    """
    trained = trained_elements(train.model, train.lora)
    micro_batches = most_micro_batches(train, world_size)
    reductions = micro_batches if train.reduce_each_micro_batch else 1
    gradients = reductions * trained * DATA_TYPE_BYTES[train.gradient_dtype]
    if train.strategy == "ddp":
        return {"all_reduce": gradients}
    *blocks, rest = fsdp_units(train.model, train.lora)
    passes = micro_batches if train.reshard_after_forward or train.reduce_each_micro_batch else 1
    gathers = 2 * passes if train.reshard_after_forward else 1
    gathered = gathers * sum(blocks) + passes * rest
    gathered_bytes = gathered * DATA_TYPE_BYTES[train.dtype]
    return {"all_gather": gathered_bytes, "reduce_scatter": gradients}
