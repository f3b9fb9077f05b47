"""How many bytes does a training load and save, and what does it wait for one storage?"""

from dataclasses import dataclass

from broadgauge.predict.case import StorageWaits, TrainingCase, Wait
from broadgauge.predict.prediction import Interval
from broadgauge.predict.storage.description import StorageModel, sum_of
from broadgauge.predict.storage.phases import (
    BatchOrder,
    LoadOrder,
    SaveOrder,
    batch_time,
    load_time,
    save_time,
)

WEIGHT_BYTES = 2
"""A parameter of a model that is loaded: in 16 bits, as models are published."""
SAVED_BYTES = 12
"""A trained parameter of a checkpoint: fp32 weights and Adam's two moments. Source: Rajbhandari et
al. 2020 (ZeRO), section 3.1: the 12 of 16 bytes that are not working copies or gradients."""
ADAPTER_RATIO = 0.02
"""Parameters that LoRA trains, of all, at most. Source: Hu et al. 2022, rank 64 on every linear
layer of an 8B model (predict/memory/fullest_gpu.py)."""
TOKEN_BYTES = 4
"""Of a sample of text: token numbers of 32 bits."""
DEFAULT_WORKERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageUse:
    """How a training uses its storage."""

    steps_between_saves: int | None = None
    """None: it saves nothing."""
    is_async: bool = False
    sample_bytes: float | None = None
    """None: its tokens, TOKEN_BYTES each."""
    workers: int = DEFAULT_WORKERS
    """Loaders of each rank; 0: the rank itself loads."""
    mean_time_between_failures_s: float | None = None
    """Of the whole cluster; None: not told."""

    def words(self) -> str:
        """`saves every 100 steps in the background`; empty: it saves nothing."""
        if self.steps_between_saves is None:
            return ""
        kind = " in the background" if self.is_async else ""
        return f"saves every {self.steps_between_saves:,} steps{kind}"


def on_storage(
    case: TrainingCase, storage: StorageModel, use: StorageUse, step_s: float
) -> StorageWaits:
    """`step_s`: of the case without any storage."""
    batch = batch_time(storage, batch_order(case, use, step_s))
    load = load_time(storage, LoadOrder(num_bytes=model_bytes(case)))
    start = sum_of(load.terms + batch.loading.terms)
    save = None
    if use.steps_between_saves is not None:
        save = save_time(storage, save_order(case, use, step_s))
    every = batch.every_s
    return StorageWaits(
        start=_wait(start),
        batch=Wait() if use.workers == 0 else _wait(every),
        unhidden=_wait(every) if use.workers == 0 else Wait(),
        save=Wait() if save is None else _wait(save.stall_s),
        durable_s=None if save is None or save.durable_s is None else save.durable_s.value,
        durable_words="" if save is None else save.durable_words,
        least_stall_s=0.0 if save is None else save.least_stall_s,
        written_s=0.0 if save is None else save.whole.time_s.value,
        is_waiting=save is not None and save.is_waiting,
        steps_between_saves=use.steps_between_saves,
        mean_time_between_failures_s=use.mean_time_between_failures_s,
    )


def model_bytes(case: TrainingCase) -> float:
    """That each node reads once; one of its ranks sends them on."""
    return WEIGHT_BYTES * case.model.params


def checkpoint_bytes(case: TrainingCase) -> float:
    """Of all ranks together; of frozen weights nothing is saved."""
    trained = ADAPTER_RATIO if case.lora else 1.0
    return SAVED_BYTES * trained * case.model.params


def save_order(case: TrainingCase, use: StorageUse, step_s: float) -> SaveOrder:
    """Each rank saves its part, or with DDP one of them all."""
    return SaveOrder(
        num_bytes=checkpoint_bytes(case),
        nodes=case.nodes,
        ranks_per_node=case.gpus_per_node,
        is_sharded=case.strategy != "ddp",
        is_async=use.is_async,
        work_between_s=step_s * (use.steps_between_saves or 1),
    )


def batch_order(case: TrainingCase, use: StorageUse, step_s: float) -> BatchOrder:
    """A rank's samples of a step, its accumulation included; every data-parallel rank loads."""
    samples = case.global_batch / case.data_parallel
    sample_bytes = use.sample_bytes or TOKEN_BYTES * case.seq_len
    return BatchOrder(
        batch_bytes=samples * sample_bytes,
        requests=samples,
        readers=max(1, case.data_parallel // case.nodes),
        workers=use.workers,
        step_s=step_s,
    )


def _wait(interval: Interval) -> Wait:
    return Wait(value_s=interval.value, low_s=interval.low, high_s=interval.high)
