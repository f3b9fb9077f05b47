"""What would make a training fit? One change that is enough, else several added up."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from broadgauge.predict.asking.question import fault_of
from broadgauge.predict.case import TrainingCase
from broadgauge.predict.memory.fullest_gpu import memory_use

MOST_DOUBLINGS = 6
"""Of nodes."""
Change = tuple[str, TrainingCase]
"""In words, and the case with it."""


def what_fits(case: TrainingCase) -> str | None:
    """`full recomputation`, or several joined by `and`; None: all together are not enough."""
    for kind in _KINDS:
        for words, changed in kind(case):
            if _fits(changed):
                return words
    told: list[str] = []
    for kind in _KINDS:
        strongest = None
        for words, changed in kind(case):
            strongest = words, changed
            if _fits(changed):
                return " and ".join([*told, words])
        if strongest is not None:
            told.append(strongest[0])
            case = strongest[1]
    return None


def _fits(case: TrainingCase) -> bool:
    return fault_of(case) is None and memory_use(case).is_fitting


def _flash(case: TrainingCase) -> Iterator[Change]:
    if not case.flash_attention:
        yield "flash attention", replace(case, flash_attention=True)


def _recompute(case: TrainingCase) -> Iterator[Change]:
    if case.recompute != "full":
        yield "full recomputation", replace(case, recompute="full")


def _micro_batch(case: TrainingCase) -> Iterator[Change]:
    """Smaller passes of the same step."""
    size = case.micro_batch
    while size >= 2:
        size = size // 2
        yield f"micro-batch {size:g}", replace(case, micro_batch=float(size))


def _shard(case: TrainingCase) -> Iterator[Change]:
    if case.data_parallel == 1:
        return
    if case.strategy == "ddp":
        yield "fsdp", replace(case, strategy="fsdp")
    elif case.strategy == "megatron" and not case.zero_stage:
        yield "ZeRO stage 1", replace(case, zero_stage=1)


def _tensor(case: TrainingCase) -> Iterator[Change]:
    """Within a node, in the place of data parallel ranks."""
    if case.strategy != "megatron":
        return
    times = 2
    while case.tensor_parallel * times <= case.gpus_per_node and case.data_parallel % times == 0:
        yield (
            f"tp {case.tensor_parallel * times}",
            replace(
                case,
                tensor_parallel=case.tensor_parallel * times,
                data_parallel=case.data_parallel // times,
                sequence_parallel=True,
            ),
        )
        times *= 2


def _stages(case: TrainingCase) -> Iterator[Change]:
    """Over nodes, in the place of data parallel ranks."""
    if case.strategy != "megatron" or case.virtual_stages > 1:
        return
    times = 2
    while case.data_parallel % times == 0 and case.nodes % times == 0:
        stages = case.pipeline_parallel * times
        data = case.data_parallel // times
        yield f"pp {stages}", replace(case, pipeline_parallel=stages, data_parallel=data)
        times *= 2


def _nodes(case: TrainingCase) -> Iterator[Change]:
    """Where states are sharded over all ranks; the batch grows with the cluster."""
    if case.strategy != "fsdp" or case.nodes == 1:
        return
    for doubling in range(1, MOST_DOUBLINGS + 1):
        times = 2**doubling
        yield (
            f"{case.nodes * times} nodes",
            replace(
                case,
                nodes=case.nodes * times,
                data_parallel=case.data_parallel * times,
                global_batch=case.global_batch * times,
            ),
        )


_KINDS: tuple[Callable[[TrainingCase], Iterator[Change]], ...] = (
    _flash,
    _recompute,
    _micro_batch,
    _shard,
    _tensor,
    _stages,
    _nodes,
)
"""From what costs least."""
