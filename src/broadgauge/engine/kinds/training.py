"""What does the engine know of a training? The arithmetic and the bytes of its step."""

from dataclasses import dataclass

from broadgauge.engine.kinds.kind import KindInEngine
from broadgauge.engine.transfers import PROCESS_GROUP_S, transfer_s
from broadgauge.specs.case import Case
from broadgauge.specs.workloads.model_messages import fsdp_units
from broadgauge.specs.workloads.workload import DATA_TYPE_BYTES, CollectiveOp, TrainWorkload

_FLOPS = {"cpu": 20e9, "cuda": 150e12}
"""FLOP/s of one rank in a small GPT's step. A guess."""
_LATENCY_PER_STEP_S = 0.02
_READ_DATA_S = 1.0


@dataclass(frozen=True, slots=True)
class TrainingInEngine(KindInEngine):
    """A training as it is planned."""

    train: TrainWorkload

    def trial_s(self, case: Case) -> float:
        """Steps with communication on and off; what computing hides of it is not taken off."""
        train = self.train
        tokens = train.batch_per_rank * train.accumulation * train.model.seq_len
        compute_s = tokens * train.model.flops_per_token / _FLOPS[case.device]
        compute_s += _LATENCY_PER_STEP_S * train.accumulation
        sent = step_bytes(train).items()
        communicating_s = compute_s + sum(
            transfer_s(case, op, size_bytes) for op, size_bytes in sent
        )
        total_s = PROCESS_GROUP_S[case.backend] + _READ_DATA_S
        total_s += (train.warm_up_steps + train.steps) * communicating_s
        if train.communication_off:
            total_s += (train.steps + 1) * compute_s
        return total_s

    @property
    def uses_folder(self) -> bool:
        return self.train.text is not None or self.train.data is not None


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
