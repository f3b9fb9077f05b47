"""What would make a training fit? The nearest settings that do, from what changes least.

Three ways are looked at: the same training on the same GPUs, the same on more nodes, and another
training (shorter sequences, adapters). Each is one change that is enough, else the fewest that are.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from broadgauge.predict.asking.question import fault_of
from broadgauge.predict.case import Fabric, TrainingCase
from broadgauge.predict.memory.fullest_gpu import memory_use

MOST_DOUBLINGS = 6
"""Of nodes."""
MOST_STEPS = 16
"""Of one kind: halvings and doublings."""
SHORTEST_SEQUENCE = 512
"""Tokens: what is shorter trains little that is asked for here."""
Change = tuple[str, TrainingCase]
"""In words, and the case with it."""
Kind = Callable[[TrainingCase], Iterator[Change]]
"""Changes of one kind, the smallest first."""
What = Literal["same GPUs", "more nodes", "other training"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One that fits, near one that does not."""

    words: str
    """What was changed: `full recomputation and micro-batch 1`."""
    case: TrainingCase
    what: What


def nearest_fits(case: TrainingCase, network: Fabric | None = None) -> tuple[Setting, ...]:
    """The nearest setting on the same GPUs; where there is none, or only with states in the host's
    memory, also those on more nodes and of another training.

    `network` joins nodes where the case has one alone; None: nobody named any.
    """
    here = _nearest(case, _HERE, "same GPUs")
    if here is not None:
        return (here,)
    offloaded = _nearest(case, (*_HERE, _offload), "same GPUs")
    more = _nearest(case, (*_HERE, lambda each: _nodes(each, network)), "more nodes")
    other = _nearest(case, (*_HERE, _sequences, _adapters), "other training")
    return tuple(each for each in (offloaded, more, other) if each is not None)


def what_fits(case: TrainingCase, network: Fabric | None = None) -> str | None:
    """The nearest in words; None: nothing that was tried is enough."""
    return next((each.words for each in nearest_fits(case, network)), None)


def _nearest(case: TrainingCase, kinds: Sequence[Kind], what: What) -> Setting | None:
    """One change that is enough, else several of which none is needless."""
    for kind in kinds:
        for words, changed in kind(case):
            if _fits(changed):
                return Setting(words=words, case=changed, what=what)
    found, needed = _added_up(case, kinds), list(kinds)
    if found is None:
        return None
    for kind in reversed(kinds):  # what changes most first
        fewer = [each for each in needed if each is not kind]
        without = _added_up(case, fewer)
        if without is not None:
            found, needed = without, fewer
    told, changed = _mildest(case, needed) or found
    return Setting(words=_listed(told), case=changed, what=what)


Several = tuple[tuple[str, ...], TrainingCase]
"""Changes in words, and the case with all of them."""


def _mildest(case: TrainingCase, kinds: Sequence[Kind]) -> Several | None:
    """Each of them as little as the others allow, what changes most first. None: not all apply."""
    steps = [MOST_STEPS] * len(kinds)
    for index in reversed(range(len(kinds))):
        for steps[index] in range(1, MOST_STEPS + 1):
            applied = _applied(case, kinds, steps)
            if applied is not None and _fits(applied[1]):
                break
    applied = _applied(case, kinds, steps)
    return applied if applied is not None and _fits(applied[1]) else None


def _applied(case: TrainingCase, kinds: Sequence[Kind], steps: Sequence[int]) -> Several | None:
    told: list[str] = []
    for kind, step in zip(kinds, steps, strict=True):
        changes = list(kind(case))
        if not changes:
            return None
        words, case = changes[min(step, len(changes)) - 1]
        told.append(words)
    return tuple(told), case


def _added_up(case: TrainingCase, kinds: Sequence[Kind]) -> Several | None:
    """The strongest of each kind, one after the other, until it fits."""
    told: list[str] = []
    for kind in kinds:
        strongest = None
        for words, changed in kind(case):
            strongest = words, changed
            if _fits(changed):
                return (*told, words), changed
        if strongest is not None:
            told.append(strongest[0])
            case = strongest[1]
    return None


def _listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


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
    if case.strategy in ("ddp", "hsdp"):
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


def _offload(case: TrainingCase) -> Iterator[Change]:
    if not case.cpu_offload:
        yield "CPU offload", replace(case, cpu_offload=True)


def _nodes(case: TrainingCase, network: Fabric | None) -> Iterator[Change]:
    """Where states are sharded over all ranks; the batch grows with the cluster."""
    is_alone = case.gpus == 1
    if case.strategy != "fsdp" and not is_alone:
        return
    fabric = network if case.nodes == 1 else case.fabric
    if fabric is None or fabric.transport == "none":
        return
    for doubling in range(1, MOST_DOUBLINGS + 1):
        times = 2**doubling
        yield (
            f"{case.nodes * times} nodes{' with fsdp' if is_alone else ''}",
            replace(
                case,
                strategy="fsdp",
                fabric=fabric,
                nodes=case.nodes * times,
                data_parallel=case.data_parallel * times,
                global_batch=case.global_batch * times,
            ),
        )


def _sequences(case: TrainingCase) -> Iterator[Change]:
    """Shorter ones, as many a step."""
    length = case.seq_len // 2
    while length >= SHORTEST_SEQUENCE:
        yield f"sequences of {length:,} tokens", replace(case, seq_len=length)
        length //= 2


def _adapters(case: TrainingCase) -> Iterator[Change]:
    if not case.lora:
        yield "LoRA", replace(case, lora=True)
    if not case.quantized_base:
        yield "QLoRA", replace(case, lora=True, quantized_base=True)


_HERE: tuple[Kind, ...] = (_flash, _recompute, _micro_batch, _shard, _tensor, _stages)
"""From what costs least; none changes what is learned."""
