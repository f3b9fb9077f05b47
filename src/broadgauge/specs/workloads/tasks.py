"""What are the ranks told of a case? Its task, with nothing left to choose.

One function a kind of workload, found by `task_of`.
"""

from typing import assert_never

from broadgauge.messages.storage import (
    BatchesPhase,
    CheckpointPhase,
    LoadPhase,
    RawPhase,
    StorageTask,
    Throttle,
)
from broadgauge.messages.tasks import (
    CollectivesTask,
    CommandTask,
    DatasetText,
    DataSource,
    FileText,
    JsonLinesText,
    MetricSource,
    RankLayout,
    StandardLibraryText,
    Task,
    TrainTask,
)
from broadgauge.specs.case import Case
from broadgauge.specs.storages.storage import Storage
from broadgauge.specs.workloads.workload import (
    AnyPhase,
    BatchesWorkload,
    CheckpointWorkload,
    CollectivesWorkload,
    CommandWorkload,
    HubDataset,
    JsonLines,
    ModelLoadWorkload,
    PreparedData,
    RawFilesWorkload,
    StorageWorkload,
    SyntheticData,
    TrainWorkload,
)


def layout_of(case: Case) -> RankLayout:
    """Who takes part in this case, and through what?"""
    return RankLayout(
        nodes=case.nodes,
        ranks_per_node=case.ranks_per_node,
        device=case.device,
        backend=case.backend,
    )


def task_of(case: Case) -> Task:
    """The only place in this room that asks which kind it is."""
    match case.workload:
        case CollectivesWorkload() as collectives:
            return collectives_task(collectives)
        case TrainWorkload() as train:
            return train_task(train)
        case StorageWorkload() as storage:
            return storage_task(storage, case)
        case CommandWorkload() as command:
            return command_task(command)
        case _:
            assert_never(case.workload)


def collectives_task(workload: CollectivesWorkload) -> CollectivesTask:
    return CollectivesTask(
        engine=workload.engine,
        ops=workload.ops,
        dtypes=workload.dtypes,
        sizes_bytes=workload.sizes_bytes(),
        warm_up_iterations=workload.warm_up_iterations,
        min_iterations=workload.min_iterations,
        max_iterations=workload.max_iterations,
        budget_s=workload.budget_s,
        check=workload.check,
        cuda_graphs=workload.cuda_graphs,
        pairwise=workload.pairwise,
    )


def train_task(workload: TrainWorkload) -> TrainTask:
    return TrainTask(
        strategy=workload.strategy,
        model=workload.model.shape,
        batch_per_rank=workload.batch_per_rank,
        accumulation=workload.accumulation,
        dtype=workload.dtype,
        gradient_dtype=workload.gradient_dtype,
        reshard_after_forward=workload.reshard_after_forward,
        bucket_cap_bytes=workload.bucket_cap_bytes,
        learning_rate=workload.learning_rate,
        steps=workload.steps,
        warm_up_steps=workload.warm_up_steps,
        block_steps=workload.block_steps,
        communication_off=workload.communication_off,
        text=text_source(workload),
        shard_ranks=workload.shard_ranks,
        compile=workload.compile,
        adapters=workload.adapters,
        attention=workload.attention,
        activation_checkpointing=workload.activation_checkpointing,
        cpu_offload=workload.cpu_offload,
        reduce_each_micro_batch=workload.reduce_each_micro_batch,
        packing=None if workload.packing is None else workload.packing.for_ranks,
    )


def text_source(workload: TrainWorkload) -> DataSource:
    """The user's samples, records or file, else Python's own sources."""
    match workload.data:
        case JsonLines() as lines:
            return JsonLinesText(path=lines.jsonl, field=lines.field)
        case HubDataset() as hub:
            return DatasetText(
                dataset=hub.dataset, subset=hub.subset, split=hub.split, field=hub.field
            )
        case PreparedData() as ready:
            return ready.for_ranks
        case SyntheticData() as asked:
            return asked.for_ranks(workload.model.seq_len)
        case None:
            return StandardLibraryText() if workload.text is None else FileText(path=workload.text)
        case unknown:
            assert_never(unknown)


def storage_task(workload: AnyPhase, case: Case) -> StorageTask:
    assert case.storage is not None, case
    return StorageTask(
        folder=case.storage.path,
        phase=_phase(workload, case),
        repetitions=workload.repetitions,
        throttle=_throttle(case.storage),
        storage=case.storage.name,
    )


def _throttle(storage: Storage) -> Throttle | None:
    if storage.emulated is None:
        return None
    return Throttle(
        storage=storage.name,
        read_byte_per_s=storage.emulated.read,
        write_byte_per_s=storage.emulated.write,
    )


def _phase(workload: AnyPhase, case: Case) -> RawPhase | CheckpointPhase | LoadPhase | BatchesPhase:
    match workload:
        case RawFilesWorkload() as raw:
            return RawPhase(
                size_bytes=raw.size,
                request_bytes=raw.request,
                is_direct=raw.direct,
                cache=raw.cache,
            )
        case CheckpointWorkload() as saved:
            return CheckpointPhase(
                model=saved.model.shape,
                has_optimizer_state=saved.optimizer_state,
                is_sharded=saved.strategy == "fsdp",
                format=saved.format,
                state_dict=saved.resolved_state_dict,
                background=saved.asynchronous,
                files_bytes=saved.state_bytes,
            )
        case ModelLoadWorkload() as loaded:
            return LoadPhase(
                model=loaded.model.shape,
                dtype=loaded.dtype,
                is_sharded=loaded.strategy == "fsdp",
                format=loaded.format,
                is_mapped=loaded.is_mapped,
                is_broadcast=loaded.readers == "rank_0",
                cache=loaded.cache,
                files_bytes=loaded.model_bytes,
            )
        case BatchesWorkload() as batches:
            return BatchesPhase(
                source=batches.source,
                samples=batches.samples,
                sample_bytes=batches.sample_size,
                batch_per_rank=batches.batch_per_rank,
                workers=batches.workers,
                prefetch=batches.prefetch,
                cache=batches.cache,
                step_time_s=batches.step_time_s,
                is_shuffled=batches.shuffle,
                files_bytes=batches.files_bytes(case.world_size),
            )
        case unknown:
            assert_never(unknown)


def command_task(workload: CommandWorkload) -> CommandTask:
    return CommandTask(
        command=workload.words,
        working_directory=workload.working_directory,
        metrics=tuple(
            MetricSource(
                name=metric.name,
                regex=metric.regex,
                comma=metric.comma,
                json_key=metric.json_key,
                skip_first=metric.skip_first,
                scale=metric.scale,
            )
            for metric in workload.metrics
        ),
        python=workload.python,
        stack_hook=workload.stack_hook,
    )
