"""What does a question get where it says nothing? A sensible value, and each one is told."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from broadgauge.catalog.gpus import Gpu
from broadgauge.predict.case import Precision, SplitStrategy, TrainingCase
from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.memory.columns import GIB
from broadgauge.predict.memory.fullest_gpu import memory_table, memory_use

TOKENS_A_PASS = 8192
"""What a silent micro-batch comes near to: enough for large matrix products on any GPU."""
PASSES_A_STAGE = 4
"""Micro-batches for each pipeline stage where the global batch is silent: bubble 3/16 at most."""
STATES_RATIO = 0.6
"""Of a GPU's memory that weights, gradients and Adam's states may take before they are sharded."""


class Assumptions:
    """What was taken for granted, by property; several values of one are told together."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], dict[str, None]] = {}

    def tell(self, what: str, value: object, why: str) -> None:
        self._values.setdefault((what, why), {})[str(value)] = None

    def told(self) -> Iterator[str]:
        for (what, why), values in self._values.items():
            names = list(values)
            shown = names if len(names) <= 4 else [*names[:2], "…", names[-1]]
            yield f"{what} {', '.join(shown)} ({why})"


def strategy(
    given: Mapping[str, Any], on_one_gpu: TrainingCase, data: int, assumptions: Assumptions
) -> SplitStrategy:
    """Megatron where the model is split, else DDP where its states fit, else FSDP.

    `on_one_gpu` is the training whose states one GPU holds, be they of all parameters or of
    adapters.
    """
    if given.get("tensor_parallel", 1) * given.get("pipeline_parallel", 1) > 1:
        assumptions.tell("strategy", "megatron", "tensor or pipeline parallel")
        return "megatron"
    if data == 1:
        assumptions.tell("strategy", "ddp", "one data-parallel rank: nobody to share states with")
        return "ddp"
    if _states_bytes(on_one_gpu) < STATES_RATIO * on_one_gpu.gpu_entry.memory_gib * GIB:
        assumptions.tell("strategy", "ddp", "the model's states fit in one GPU")
        return "ddp"
    assumptions.tell("strategy", "fsdp", "the model's states don't fit in one GPU")
    return "fsdp"


@functools.lru_cache(maxsize=4096)
def _states_bytes(case: TrainingCase) -> float:
    return memory_use(case).states_bytes


def precision(gpu: Gpu, assumptions: Assumptions) -> Precision:
    halves: tuple[Precision, ...] = ("bf16", "fp16")
    for half in halves:
        if gpu.peak_flops(half) is not None:
            assumptions.tell("precision", half, "mixed, Adam's states in fp32")
            return half
    assumptions.tell("precision", "fp32", "the GPU has no other")
    return "fp32"


def micro_batch(seq_len: int, assumptions: Assumptions) -> int:
    micro = 1
    while 2 * micro * max(1, seq_len) <= TOKENS_A_PASS:
        micro *= 2
    why = f"about {TOKENS_A_PASS:,} tokens a GPU and pass"
    if seq_len >= 2 * TOKENS_A_PASS:
        why = "one sequence a GPU and pass, as long as they are"
    assumptions.tell("micro-batch", micro, why)
    return micro


def global_batch(
    given: Mapping[str, Any], data: int, micro: float, assumptions: Assumptions
) -> float:
    """One micro-batch a data-parallel rank, so it grows with the cluster; several in a pipeline."""
    if "accumulation" in given:
        return float(given["accumulation"] * data * micro)
    stages = given.get("pipeline_parallel", 1)
    passes = 1 if stages == 1 else PASSES_A_STAGE * stages
    batch = float(passes * data * micro)
    why = "one micro-batch a rank: it grows with the cluster"
    if passes > 1:
        why = f"{PASSES_A_STAGE} micro-batches a stage: it grows with the cluster"
    assumptions.tell("global batch", f"{batch:g}", why)
    return batch


def recomputing(cases: Sequence[TrainingCase], assumptions: Assumptions) -> list[TrainingCase]:
    """With full recomputation where only that fits."""
    plain = memory_table(columns_of(cases))
    is_over = (plain.total_bytes > plain.capacity_bytes).tolist()
    full = [
        replace(case, recompute="full") for case, over in zip(cases, is_over, strict=True) if over
    ]
    if not full:
        return list(cases)
    less = memory_table(columns_of(full))
    is_helped = less.total_bytes <= less.capacity_bytes
    if is_helped.any():
        is_always = is_helped.all() and all(is_over)
        why = "it does not fit otherwise" if is_always else "where it does not fit otherwise"
        assumptions.tell("recomputation", "full", why)
    again = iter(zip(full, is_helped.tolist(), strict=True))
    found: list[TrainingCase] = []
    for case, over in zip(cases, is_over, strict=True):
        with_full, helps = next(again) if over else (case, False)
        found.append(with_full if helps else case)
    return found
