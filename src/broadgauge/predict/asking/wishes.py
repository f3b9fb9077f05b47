"""Which trainings do a command's words mean? Every combination, and what was assumed of the rest.

A wish names some properties, each with one value or several. What it leaves open gets a sensible
value here, and each such value is told.
"""

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from broadgauge.catalog.catalog import Catalog
from broadgauge.catalog.frameworks import UNKNOWN, framework_named, known_frameworks
from broadgauge.catalog.gpus import Gpu
from broadgauge.predict.asking.from_catalog import fabric_named, shape_of, usual_gpus_per_node
from broadgauge.predict.asking.question import fault_of
from broadgauge.predict.case import Fabric, Precision, SplitStrategy, TrainingCase, own_gpu_of
from broadgauge.predict.facts.columns import ELEMENT_BYTES, columns_of
from broadgauge.predict.facts.splits import Fault
from broadgauge.predict.memory.columns import GIB
from broadgauge.predict.memory.fullest_gpu import memory_table
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError

MOST_CASES = 100_000
TOKENS_A_PASS = 8192
"""What a silent micro-batch comes near to: enough for large matrix products on any GPU."""
PASSES_A_STAGE = 4
"""Micro-batches for each pipeline stage where the global batch is silent: bubble 3/16 at most."""
STATE_BYTES = 16
"""Of a parameter, with Adam. Source: Rajbhandari et al. 2020 (ZeRO), section 3.1."""
STATES_RATIO = 0.6
"""Of a GPU's memory that states may take before they are sharded."""

Wish = Mapping[str, Sequence[Any]]
"""Property → values: a field of `TrainingCase`, `accumulation`, or one of the catalog by name:
`model`, `gpu`, `node`, `network`. What is absent is silent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The trainings of one command."""

    cases: tuple[TrainingCase, ...]
    assumed: tuple[str, ...]
    """What was silent, and what was taken."""
    left_out: tuple[tuple[str, int], ...]
    """Combinations that can't be: why, and how many."""


def expand(wish: Wish, catalog: Catalog) -> Asked:
    """Every combination that can be. Raises InputError: an unknown name, too many, or none."""
    _check(wish)
    assumptions, known = _Assumptions(), _Known(catalog)
    faults: dict[Fault, int] = {}
    cases: dict[TrainingCase, None] = {}
    for chosen in itertools.product(*wish.values()):
        case = _case(dict(zip(wish, chosen, strict=True)), assumptions, known)
        fault = fault_of(case)
        if fault is None:
            cases[case] = None
        else:
            faults[fault] = faults.get(fault, 0) + 1
    if not cases:
        (message, hint), *_ = faults
        raise InputError(message, hint=hint)
    found = list(cases)
    if "recompute" not in wish:
        found = _recomputing(found, assumptions)
    return Asked(
        cases=tuple(found),
        assumed=tuple(assumptions.told()),
        left_out=tuple((message, number) for (message, _), number in faults.items()),
    )


def _check(wish: Wish) -> None:
    """Raises InputError."""
    count = math.prod(len(values) for values in wish.values())
    if count > MOST_CASES:
        raise InputError(
            f"{count:,} combinations are more than the {MOST_CASES:,} that are predicted at once",
            hint="shorter lists",
        )
    if "accumulation" in wish and "global_batch" in wish:
        raise InputError("accumulation and global batch say the same thing: one of them")
    if "node" in wish and "gpu" in wish:
        raise InputError("a node says which GPU it has: one of the two")


class _Known:
    """What the catalog says, each name looked up once."""

    def __init__(self, catalog: Catalog) -> None:
        self.model = functools.cache(catalog.model)
        self.gpu = functools.cache(catalog.gpu)
        self.node = functools.cache(catalog.node)
        self.shape = functools.cache(lambda name: shape_of(self.model(name)))
        self.params = functools.cache(lambda name: self.model(name).params)
        self.fabric = functools.cache(lambda name: fabric_named(name, catalog))
        self.gpus_per_node = functools.cache(lambda gpu: usual_gpus_per_node(gpu, catalog))


class _Assumptions:
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


def _case(given: Mapping[str, Any], assumptions: _Assumptions, known: _Known) -> TrainingCase:
    """One combination, the silent rest filled in."""
    given = _with_node(given, assumptions, known)
    entry, gpu = known.model(given["model"]), known.gpu(given["gpu"])
    nodes = int(given.get("nodes", 1))
    gpus_per_node = given.get("gpus_per_node")
    if gpus_per_node is None:
        gpus_per_node, why = known.gpus_per_node(gpu)
        assumptions.tell("GPUs a node:", gpus_per_node, why)
    inner = 1
    for name in ("tensor_parallel", "pipeline_parallel", "context_parallel"):
        inner *= max(1, given.get(name, 1))
    data = max(1, nodes * gpus_per_node // inner)
    strategy = given.get("strategy") or _strategy(given, known, gpu, data, assumptions)
    precision = given.get("precision") or _precision(gpu, assumptions)
    seq_len = given.get("seq_len")
    if seq_len is None:
        seq_len = entry.seq_len
        assumptions.tell("sequences of", f"{seq_len:,} tokens", "usual for the model")
    micro = given.get("micro_batch")
    if micro is None:
        micro = _micro_batch(seq_len, assumptions)
    batch = given.get("global_batch")
    if batch is None:
        batch = _global_batch(given, data, micro, assumptions)
    same = {name: given[name] for name in _AS_THEY_ARE if name in given}
    if strategy == "megatron":
        same.setdefault("framework", "megatron")
        if given.get("tensor_parallel", 1) > 1:
            same.setdefault("sequence_parallel", True)
        if data > 1 and "zero_stage" not in same:
            same["zero_stage"] = 1
            assumptions.tell("ZeRO stage", 1, "Megatron's distributed optimizer")
    _tell_unknown_framework(same, assumptions)
    if data > 1:
        _tell_gradients(same, strategy, precision, assumptions, has_passes=batch > micro * data)
    return TrainingCase(
        name=given.get("node", ""),
        model=known.shape(given["model"]),
        gpu=gpu.name,
        own_gpu=own_gpu_of(gpu),
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        fabric=_fabric(given, nodes, known),
        strategy=strategy,
        data_parallel=data,
        seq_len=seq_len,
        global_batch=float(batch),
        micro_batch=float(micro),
        precision=precision,
        **same,
    )


def _tell_unknown_framework(same: Mapping[str, Any], assumptions: _Assumptions) -> None:
    """A framework of the user's own is no mistake; a mistyped one is."""
    name = same.get("framework")
    if name is not None and framework_named(name) is UNKNOWN:
        names = [each for entry in known_frameworks() for each in entry.names()]
        near = did_you_mean(name, names) or "`broadgauge catalog list frameworks` has those known"
        why = f"not in the catalog, so PyTorch's own kernels and a wide interval; {near}"
        assumptions.tell("framework", name, why)


def _tell_gradients(
    same: Mapping[str, Any],
    strategy: SplitStrategy,
    precision: Precision,
    assumptions: _Assumptions,
    *,
    has_passes: bool,
) -> None:
    """How wide gradients travel, and how often: each is worth a factor of two on a slow network."""
    framework = same.get("framework", "torch")
    if "gradient_bytes" not in same:
        habit, usual = framework_named(framework).gradient_bytes, ELEMENT_BYTES[precision]
        width = usual if habit is None or usual > 2 else habit
        assumptions.tell("gradients reduced in", f"{width:g} bytes", f"{framework}'s habit")
    is_split = strategy in ("fsdp", "hsdp") or same.get("zero_stage", 0) >= 2
    if is_split and has_passes and "sync_every_micro_batch" not in same:
        assumptions.tell("gradients reduced in", "each micro-batch", "no rank holds them whole")


_AS_THEY_ARE = (
    *("tensor_parallel", "pipeline_parallel", "virtual_stages", "context_parallel"),
    *("expert_parallel", "sequence_parallel", "zero_stage", "gradient_bytes", "recompute"),
    *("flash_attention", "compiled", "lora", "quantized_base", "cpu_offload", "framework"),
    *("reshard_after_forward", "sync_every_micro_batch", "bucket_bytes"),
    *("data_s", "checkpoint_s"),
)
"""Fields that have a default of their own in `TrainingCase`."""


def _with_node(
    given: Mapping[str, Any], assumptions: _Assumptions, known: _Known
) -> Mapping[str, Any]:
    """What a known node says: its GPUs, and its fastest network."""
    if "node" not in given:
        return given
    node = known.node(given["node"])
    told: dict[str, Any] = {"gpu": node.gpu, "gpus_per_node": node.gpus_per_node}
    if node.networks and "network" not in given:
        told["network"] = node.networks[0]
        assumptions.tell("network", node.networks[0], f"the fastest of {node.name}")
    return {**told, **given, "node": node.name}


def _fabric(given: Mapping[str, Any], nodes: int, known: _Known) -> Fabric:
    """One node has none, whatever was named."""
    if nodes == 1 or "network" not in given:
        return Fabric()
    return known.fabric(given["network"])


def _strategy(
    given: Mapping[str, Any], known: _Known, gpu: Gpu, data: int, assumptions: _Assumptions
) -> SplitStrategy:
    """Megatron where the model is split, else DDP where its states fit, else FSDP."""
    if given.get("tensor_parallel", 1) * given.get("pipeline_parallel", 1) > 1:
        assumptions.tell("strategy", "megatron", "tensor or pipeline parallel")
        return "megatron"
    states_bytes = STATE_BYTES * known.params(given["model"])
    if given.get("lora") or data == 1 or states_bytes < STATES_RATIO * gpu.memory_gib * GIB:
        assumptions.tell("strategy", "ddp", "the model's states fit in one GPU")
        return "ddp"
    why = f"{STATE_BYTES} bytes a parameter don't fit in one GPU"
    assumptions.tell("strategy", "fsdp", why)
    return "fsdp"


def _precision(gpu: Gpu, assumptions: _Assumptions) -> Precision:
    halves: tuple[Precision, ...] = ("bf16", "fp16")
    for precision in halves:
        if gpu.peak_flops(precision) is not None:
            assumptions.tell("precision", precision, "mixed, Adam's states in fp32")
            return precision
    assumptions.tell("precision", "fp32", "the GPU has no other")
    return "fp32"


def _micro_batch(seq_len: int, assumptions: _Assumptions) -> int:
    micro = 1
    while 2 * micro * max(1, seq_len) <= TOKENS_A_PASS:
        micro *= 2
    assumptions.tell("micro-batch", micro, f"about {TOKENS_A_PASS:,} tokens a GPU and pass")
    return micro


def _global_batch(
    given: Mapping[str, Any], data: int, micro: float, assumptions: _Assumptions
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


def _recomputing(cases: Sequence[TrainingCase], assumptions: _Assumptions) -> list[TrainingCase]:
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
