"""What does the engine know of a training? The arithmetic and the bytes of its step."""

from dataclasses import dataclass

from broadgauge.engine.kinds.kind import KindInEngine
from broadgauge.engine.transfers import PROCESS_GROUP_S, transfer_s
from broadgauge.messages.adapters import sent_adapter_parameters
from broadgauge.messages.rank import RankGroup, StepCollective
from broadgauge.messages.strategies import Split, split_of
from broadgauge.specs.case import Case
from broadgauge.specs.workloads.model_messages import fsdp_units
from broadgauge.specs.workloads.workload import (
    DATA_TYPE_BYTES,
    CollectiveOp,
    Packing,
    SyntheticData,
    TrainWorkload,
)

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
        compute_s = tokens * train.flops_per_token / _FLOPS[case.device]
        compute_s += _LATENCY_PER_STEP_S * most_micro_batches(train, case.world_size)
        communicating_s = compute_s
        if self.why_not_run(case) is None:
            sent = step_collectives(train, case.nodes, case.ranks_per_node)
            communicating_s += sum(
                transfer_s(case, each.op, each.size_bytes, each.group) for each in sent
            )
        total_s = PROCESS_GROUP_S[case.backend] + _READ_DATA_S
        total_s += _compile_s(train)
        total_s += (train.warm_up_steps + train.steps) * communicating_s
        if train.communication_off:
            total_s += (train.steps + 1) * compute_s
        return total_s

    def why_not_run(self, case: Case) -> str | None:
        try:
            split(self.train, case.nodes, case.ranks_per_node)
        except ValueError as error:
            return str(error)
        return None

    @property
    def uses_folder(self) -> bool:
        is_read = not isinstance(self.train.data, SyntheticData | None)
        return self.train.text is not None or is_read


def split(train: TrainWorkload, nodes: int, ranks_per_node: int) -> Split:
    """Raises ValueError where the ranks can't be split as it says."""
    return split_of(
        train.strategy,
        world_size=nodes * ranks_per_node,
        ranks_per_node=ranks_per_node,
        shard_ranks=train.shard_ranks,
    )


def _compile_s(train: TrainWorkload) -> float:
    """Packed micro-batches differ: the trainer compiles for three shapes of them."""
    if not train.compile:
        return 0.0
    return _COMPILE_S * (1 if train.packing is None else 3)


def tokens_per_rank(train: TrainWorkload, world_size: int) -> int:
    """Of a step; of packed samples as many as made-up ones have on average, else at most: every
    sample being as long as is taken."""
    if train.packing is None:
        return train.batch_per_rank * train.accumulation * train.model.seq_len
    sample_tokens = longest_sample(train.model.seq_len, train.packing)
    if isinstance(train.data, SyntheticData):
        sample_tokens = train.data.mean_length
    return -(-train.packing.effective_batch_size * sample_tokens // world_size)


def longest_sample(seq_len: int, packing: Packing) -> int:
    """What the model takes and the budget does not leave out."""
    return min(seq_len, packing.max_batch_len)


def most_micro_batches(train: TrainWorkload, world_size: int) -> int:
    """Of a step. Of packed samples: a micro-batch that is full leaves less than a sample's length
    empty on each rank, and less than half, since the longest come first; and none has fewer than
    one sample of the step's. Of made-up ones about, since steps differ from their mean length."""
    if train.packing is None:
        return train.accumulation
    budget = train.packing.max_batch_len
    used = max(budget - longest_sample(train.model.seq_len, train.packing), budget // 2)
    full = -(-tokens_per_rank(train, world_size) // used)
    return min(full, train.packing.effective_batch_size)


def step_collectives(
    train: TrainWorkload, nodes: int, ranks_per_node: int
) -> tuple[StepCollective, ...]:
    """What does a step give to each collective of each group of ranks, all of a kind as one?

    Sizes are S of nccl-tests, padding left out but for adapters'. The gradient of what is trained
    is reduced once a step, or with each micro-batch. Sharded blocks, frozen or not, are gathered
    for their forward pass and, where they were freed, for their backward pass, in each micro-batch;
    what is in no block is gathered once. Each replica's gradients are scattered first, and then a
    rank's share is summed over the replicas. Source: torch 2.11 fully_shard, and what real ranks
    sent in tests/probes/test_training_strategies.py.
    """
    ranks = split(train, nodes, ranks_per_node)
    micro_batches = most_micro_batches(train, ranks.world_size)
    reductions = micro_batches if train.reduce_each_micro_batch else 1
    reduced = _reduced_parameters(train, ranks.shards)
    gradients = reductions * reduced * DATA_TYPE_BYTES[train.gradient_dtype]
    found = []
    if ranks.shards > 1:
        inside = ranks.shard_group
        gathered = _gathered_bytes(train, micro_batches, ranks.shards)
        found.append(_collective("all_gather", gathered, inside))
        found.append(_collective("reduce_scatter", gradients, inside))
    if ranks.replicas > 1:
        share = gradients // ranks.shards
        found.append(_collective("all_reduce", share, ranks.replica_group))
    return tuple(found)


def _reduced_parameters(train: TrainWorkload, shards: int) -> int:
    """How many elements have the gradients that are sent, with what FSDP adds to adapters?"""
    if train.adapters is None:
        return train.trained_parameters
    shape = train.model.shape
    return shape.layers * sent_adapter_parameters(shape, train.adapters, shards)


def _gathered_bytes(train: TrainWorkload, micro_batches: int, shards: int) -> int:
    *blocks, rest = fsdp_units(train.model, train.adapters, shards=shards)
    is_freed = train.reshard_after_forward or train.reduce_each_micro_batch
    passes = micro_batches if is_freed else 1
    gathers = (2 if train.reshard_after_forward else 1) * passes
    return (gathers * sum(blocks) + passes * rest) * DATA_TYPE_BYTES[train.dtype]


def _collective(op: CollectiveOp, size_bytes: int, group: RankGroup | None) -> StepCollective:
    return StepCollective(op=op, size_bytes=size_bytes, group=group)
