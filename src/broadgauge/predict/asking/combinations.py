"""Which trainings do a command's words mean? Every combination, and what was assumed of the rest.

A command names some properties, each with one value or several. What it leaves open gets a sensible
value (defaults.py), and each such value is told.
"""

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from broadgauge.catalog.catalog import Catalog
from broadgauge.catalog.frameworks import UNKNOWN, framework_named, known_frameworks
from broadgauge.catalog.gpus import Gpu
from broadgauge.catalog.models import ModelEntry
from broadgauge.predict.asking import defaults
from broadgauge.predict.asking.defaults import Assumptions
from broadgauge.predict.asking.from_catalog import (
    MANY,
    fabric_named,
    shape_of,
    usual_gpus_per_node,
)
from broadgauge.predict.asking.question import fault_of
from broadgauge.predict.case import Fabric, Precision, SplitStrategy, TrainingCase, own_gpu_of
from broadgauge.predict.facts.columns import ELEMENT_BYTES
from broadgauge.predict.facts.splits import Fault
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError
from broadgauge.specs.units import show_bandwidth, show_ratio

MOST_CASES = 100_000

Properties = Mapping[str, Sequence[Any]]
"""Property → values: a field of `TrainingCase`, `accumulation`, or one of the catalog by name:
`model`, `gpu`, `node`, `network`. What is absent is silent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTrainings:
    """The trainings of one command."""

    cases: tuple[TrainingCase, ...]
    assumed: tuple[str, ...]
    """What was silent, and what was taken."""
    left_out: tuple[tuple[str, int], ...]
    """Combinations that can't be: why, and how many."""
    network: Fabric | None = None
    """The first that was named, or the node's; None: nobody named any."""
    tokens: int | None = None
    """Of a whole training, as an experiment says it; None: nobody did."""


def expand(properties: Properties, catalog: Catalog) -> AskedTrainings:
    """Every combination that can be. Raises InputError: an unknown name, too many, or none."""
    _check(properties)
    assumptions, known = Assumptions(), _Known(catalog)
    faults: dict[Fault, int] = {}
    cases: dict[TrainingCase, None] = {}
    for chosen in itertools.product(*properties.values()):
        case = _case(dict(zip(properties, chosen, strict=True)), assumptions, known)
        fault = fault_of(case)
        if fault is None:
            cases[case] = None
        else:
            faults[fault] = faults.get(fault, 0) + 1
    if not cases:
        (message, hint), *_ = faults
        raise InputError(message, hint=hint)
    found = list(cases)
    if "recompute" not in properties:
        found = defaults.recomputing(found, assumptions)
    return AskedTrainings(
        cases=tuple(found),
        assumed=tuple(assumptions.told()),
        left_out=tuple((message, number) for (message, _), number in faults.items()),
        network=_first_network(properties, known),
    )


def _first_network(properties: Properties, known: "_Known") -> Fabric | None:
    names = [*properties.get("network", ())]
    names += [name for node in properties.get("node", ()) for name in known.node(node).networks]
    return known.fabric(names[0]) if names else None


def _check(properties: Properties) -> None:
    """Raises InputError."""
    count = math.prod(len(values) for values in properties.values())
    if count > MOST_CASES:
        raise InputError(
            f"{count:,} combinations are more than the {MOST_CASES:,} that are predicted at once",
            hint="shorter lists",
        )
    if "accumulation" in properties and "global_batch" in properties:
        raise InputError("accumulation and global batch say the same thing: one of them")
    if "node" in properties and "gpu" in properties:
        raise InputError("a node says which GPU it has: one of the two")


MUCH_RATIO = 0.5
"""Of a network's nominal rate: what carries less is told, since it decides."""


class _Known:
    """What the catalog says, each name looked up once."""

    def __init__(self, catalog: Catalog) -> None:
        self.model = functools.cache(catalog.model)
        self.gpu = functools.cache(catalog.gpu)
        self.node = functools.cache(catalog.node)
        self.shape = functools.cache(lambda name: shape_of(self.model(name)))
        self.fabric = functools.cache(lambda name: fabric_named(name, catalog))
        self.network = functools.cache(lambda name: catalog.network(name.partition("=")[0]))
        self.gpus_per_node = functools.cache(lambda gpu: usual_gpus_per_node(gpu, catalog))


def _case(given: Mapping[str, Any], assumptions: Assumptions, known: _Known) -> TrainingCase:
    """One combination, the silent rest filled in."""
    _tell_nics(given, assumptions, known)
    _tell_carried(given, assumptions, known)
    given = _with_node(given, assumptions, known)
    entry, gpu = known.model(given["model"]), known.gpu(given["gpu"])
    nodes = int(given.get("nodes", 1))
    gpus_per_node = given.get("gpus_per_node")
    if gpus_per_node is None:
        gpus_per_node, why = known.gpus_per_node(gpu)
        assumptions.tell("GPUs a node:", gpus_per_node, why)
    data = max(1, nodes * gpus_per_node // _ranks_in_a_replica(given))
    precision = given.get("precision") or defaults.precision(gpu, assumptions)
    strategy = given.get("strategy")
    if strategy is None:
        on_one_gpu = _on_one_gpu(given, known, gpu, precision)
        strategy = defaults.strategy(given, on_one_gpu, data, assumptions)
    seq_len = given.get("seq_len")
    if seq_len is None:
        seq_len = entry.seq_len
        assumptions.tell("sequences of", f"{seq_len:,} tokens", _why_so_long(entry))
    micro = given.get("micro_batch")
    if micro is None:
        micro = defaults.micro_batch(seq_len, assumptions)
    batch = given.get("global_batch")
    if batch is None:
        batch = defaults.global_batch(given, data, micro, assumptions)
    same = {name: given[name] for name in _AS_THEY_ARE if name in given}
    if strategy == "megatron":
        same = _as_megatron_does(same, given, data, assumptions)
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


def _why_so_long(entry: ModelEntry) -> str:
    longest = entry.longest_seq_len
    if longest is None:
        return "usual for the model"
    return "the model's longest" if longest == entry.seq_len else f"the model allows {longest:,}"


def _ranks_in_a_replica(given: Mapping[str, Any]) -> int:
    """How many ranks share one copy of the model?"""
    ways = ("tensor_parallel", "pipeline_parallel", "context_parallel")
    return math.prod(max(1, given.get(way, 1)) for way in ways)


def _as_megatron_does(
    same: dict[str, Any], given: Mapping[str, Any], data: int, assumptions: Assumptions
) -> dict[str, Any]:
    """Megatron's own defaults, where nothing else was asked for."""
    same = {"framework": "megatron", **same}
    if given.get("tensor_parallel", 1) > 1:
        same.setdefault("sequence_parallel", True)
    if data > 1 and "zero_stage" not in same:
        same["zero_stage"] = 1
        assumptions.tell("ZeRO stage", 1, "Megatron's distributed optimizer")
    return same


def _tell_nics(given: Mapping[str, Any], assumptions: Assumptions, known: _Known) -> None:
    """How many NICs of a named network has a node? Each is worth its rate."""
    name = given.get("network", "").partition("=")[0]
    if not name or given.get("nodes", 1) == 1:
        return
    nics = known.network(name).nics
    if not name.endswith(f"*{nics}"):
        assumptions.tell("NICs a node:", nics, f"{name}; with eight {name}*8")


def _tell_carried(given: Mapping[str, Any], assumptions: Assumptions, known: _Known) -> None:
    """What a network without RDMA carries, where that is far from its nominal rate: it decides."""
    name = given.get("network", "")
    if not name or "=" in name or given.get("nodes", 1) == 1:
        return
    network = known.network(name)
    nominal = network.node_nominal_gbps
    carried = network.carried(communicators=MANY).gbyte_per_s
    if network.is_rdma or (nominal is not None and carried > MUCH_RATIO * nominal / 8):
        return
    share = ""
    if nominal is not None:
        share = f"{show_ratio(carried / (nominal / 8), 2)} of its nominal rate; "
    assumptions.tell(
        f"{name} carries",
        f"{show_bandwidth(carried)} a node",
        f"{share}`broadgauge catalog show {name}` names the source",
    )


def _tell_unknown_framework(same: Mapping[str, Any], assumptions: Assumptions) -> None:
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
    assumptions: Assumptions,
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
    given: Mapping[str, Any], assumptions: Assumptions, known: _Known
) -> Mapping[str, Any]:
    """What a known node says: its GPUs, and its fastest network."""
    if "node" not in given:
        return given
    node = known.node(given["node"])
    if node.board_gpus > node.gpus_per_node and "gpus_per_node" not in given:
        assumptions.tell(
            "NVLink beyond a node:",
            "not counted",
            f"it joins {node.board_gpus} GPUs of {node.name}; with --gpus-per-node "
            f"{node.board_gpus} they count as one node",
        )
    told: dict[str, Any] = {"gpu": node.gpu, "gpus_per_node": node.gpus_per_node}
    if node.networks and "network" not in given:
        told["network"] = node.networks[0]
        assumptions.tell("network", node.networks[0], f"the fastest of {node.name}")
        assumptions.tell(
            "NICs a node:", known.network(node.networks[0]).nics, f"as {node.name} has"
        )
    return {**told, **given, "node": node.name}


def _fabric(given: Mapping[str, Any], nodes: int, known: _Known) -> Fabric:
    """One node has none, whatever was named."""
    if nodes == 1 or "network" not in given:
        return Fabric()
    return known.fabric(given["network"])


def _on_one_gpu(
    given: Mapping[str, Any], known: _Known, gpu: Gpu, precision: Precision
) -> TrainingCase:
    """The same training, for what one GPU would hold of it."""
    kept = ("lora", "quantized_base", "cpu_offload", "framework")
    return TrainingCase(
        model=known.shape(given["model"]),
        gpu=gpu.name,
        own_gpu=own_gpu_of(gpu),
        seq_len=1,
        global_batch=1.0,
        micro_batch=1.0,
        precision=precision,
        **{name: given[name] for name in kept if name in given},
    )
