"""What are the ranks told of a case? Its task, with nothing left to choose.

One function a kind of workload, found by `task_of`.
"""

from typing import assert_never

from broadgauge.messages.checkpoints import TrainCheckpoints
from broadgauge.messages.storage import StoragePlace
from broadgauge.messages.tasks import (
    CollectivesTask,
    CommandTask,
    DatasetText,
    FileText,
    JsonLinesText,
    MetricSource,
    PreparedText,
    RankLayout,
    StandardLibraryText,
    SynthesizedText,
    Task,
    TextSource,
    TokenBudget,
    TracedLaunch,
    TrainTask,
)
from broadgauge.specs.case import Case
from broadgauge.specs.storage import Storage
from broadgauge.specs.storage_places import place_of
from broadgauge.specs.storage_tasks import storage_task
from broadgauge.specs.workload import (
    CollectivesWorkload,
    CommandWorkload,
    HubDataset,
    JsonLines,
    PreparedData,
    StorageWorkload,
    SynthesizedData,
    TrainWorkload,
    Workload,
)


def layout_of(case: Case) -> RankLayout:
    """Who takes part in this case, and through what?"""
    return RankLayout(
        nodes=case.nodes,
        ranks_per_node=case.ranks_per_node,
        device=case.device,
        backend=case.backend,
    )


def task_of(workload: Workload, storage: Storage | None = None) -> Task:
    """The only place in this room that asks which kind it is. `storage`: that of its case."""
    place = None if storage is None else place_of(storage)
    match workload:
        case CollectivesWorkload():
            return collectives_task(workload)
        case TrainWorkload():
            return train_task(workload, place)
        case CommandWorkload():
            return command_task(workload, place)
        case StorageWorkload():
            assert place is not None, "an experiment without storages has no such case"
            return storage_task(workload, place)
        case _:
            assert_never(workload)


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


def train_task(workload: TrainWorkload, storage: StoragePlace | None = None) -> TrainTask:
    shape = workload.model.shape
    return TrainTask(
        strategy=workload.strategy,
        model=shape,
        adapters=None if workload.lora is None else workload.lora.adapters(shape),
        shard_ranks=workload.shard_ranks,
        compile=workload.compile,
        activation_checkpointing=workload.activation_checkpointing,
        cpu_offload=workload.cpu_offload,
        learning_rate_warm_up_steps=workload.learning_rate_warm_up_steps,
        reduce_each_micro_batch=workload.reduce_each_micro_batch,
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
        packing=None
        if workload.packing is None
        else TokenBudget(
            max_batch_len=workload.packing.max_batch_len,
            effective_batch_size=workload.packing.effective_batch_size,
        ),
        traced_steps=0 if workload.trace is None else workload.trace.steps,
        storage=storage,
        checkpoints=train_checkpoints(workload),
    )


def train_checkpoints(workload: TrainWorkload) -> TrainCheckpoints | None:
    asked = workload.checkpoints
    if asked is None:
        return None
    return TrainCheckpoints(
        every_steps=asked.every_steps,
        format=asked.format,
        is_sharded=asked.is_sharded,
        keep=asked.keep,
    )


def text_source(workload: TrainWorkload) -> TextSource:
    """The user's records or file, else Python's own sources."""
    match workload.data:
        case JsonLines() as lines:
            return JsonLinesText(path=lines.jsonl, field=lines.field)
        case HubDataset() as hub:
            return DatasetText(
                dataset=hub.dataset, subset=hub.subset, split=hub.split, field=hub.field
            )
        case PreparedData() as ready:
            return PreparedText(path=ready.prepared)
        case SynthesizedData(synthesized=asked):
            return SynthesizedText(
                samples=asked.samples,
                total_tokens=asked.total_tokens,
                longest=asked.longest(workload.model.seq_len),
            )
        case None:
            return StandardLibraryText() if workload.text is None else FileText(path=workload.text)
        case unknown:
            assert_never(unknown)


def command_task(workload: CommandWorkload, storage: StoragePlace | None = None) -> CommandTask:
    return CommandTask(
        command=workload.command,
        working_directory=workload.working_directory,
        metrics=tuple(
            MetricSource(
                name=metric.name,
                regex=metric.regex,
                comma=metric.comma,
                json_key=metric.json_key,
                skip_first=metric.skip_first,
                scale=metric.scale,
                trainer_state=metric.trainer_state,
                key=metric.key,
                tensorboard=metric.tensorboard,
                tag=metric.tag,
            )
            for metric in workload.metrics
        ),
        python=workload.python,
        config=workload.config,
        stack_hook=workload.stack_hook,
        traced_launch=None
        if workload.trace is None
        else TracedLaunch(steps=workload.trace.steps, after_steps=workload.trace.after_steps),
        storage=storage,
    )
