"""What are the ranks told to measure on a storage?"""

from broadgauge.messages.storage import (
    BatchPlan,
    CheckpointPlan,
    ModelPlan,
    RawPlan,
    StoragePlace,
    StorageTask,
)
from broadgauge.specs.storage_workload import StorageWorkload


def storage_task(workload: StorageWorkload, place: StoragePlace) -> StorageTask:
    """A phase that the workload leaves out is None."""
    raw, batches = workload.raw, workload.batch_loading
    model, saves = workload.model_loading, workload.checkpoint_saving
    return StorageTask(
        place=place,
        caches=workload.caches,
        most_bytes=workload.most_bytes,
        raw=None
        if raw is None
        else RawPlan(
            file_bytes=raw.file_bytes,
            block_bytes=raw.block_bytes,
            small_files=raw.small_files,
            random_reads=raw.random_reads,
            accesses=raw.accesses,
        ),
        batch_loading=None
        if batches is None
        else BatchPlan(
            layouts=batches.layouts,
            samples=batches.samples,
            sample_bytes=batches.sample_bytes,
            batch=batches.batch,
            workers=batches.workers,
            prefetch=batches.prefetch,
            step_s=batches.step_s,
        ),
        model_loading=None
        if model is None
        else ModelPlan(model_bytes=model.model_bytes, formats=model.formats, load_by=model.load_by),
        checkpoint_saving=None
        if saves is None
        else CheckpointPlan(
            checkpoint_bytes=saves.checkpoint_bytes,
            formats=saves.formats,
            is_sharded=saves.is_sharded,
            saves=saves.saves,
        ),
    )
