"""What do cases share, and what tells each from the others? In words."""

from collections.abc import Mapping, Sequence
from dataclasses import fields

from broadgauge.predict.answering.settings import Key, key_without
from broadgauge.predict.case import Fabric, ModelShape, TrainingCase
from broadgauge.specs.units import show_time


def tell_apart(
    cases: Sequence[TrainingCase], chosen: Sequence[int]
) -> tuple[Mapping[str, str], list[Mapping[str, str]]]:
    """What all cases share, and what tells each of the chosen: property → printed value."""
    seen = {name: list(dict.fromkeys(getattr(case, name) for case in cases)) for name in _TITLES}
    varying = [name for name, values in seen.items() if len(values) > 1]
    if "name" in varying:  # a node of the catalog, or a workload: what follows from it is known
        varying = [name for name in varying if not _is_of_name(name, cases)]
    common = {
        _TITLES[name]: _printed(name, values[0])
        for name, values in seen.items()
        if len(values) == 1
        and name not in _IF_VARYING
        and (name in _ALWAYS or values[0] != _DEFAULTS.get(name))
    }
    shown = [name for name in varying if name not in _FOLLOWING or not _follows(name, cases)]
    shown = shown or ["nodes"]
    return common, [
        {_TITLES[name]: _printed(name, getattr(cases[index], name)) for name in shown}
        for index in chosen
    ]


_TITLES = {
    "name": "name",
    "model": "model",
    "gpu": "GPU",
    "gpus_per_node": "GPUs a node",
    "strategy": "strategy",
    "tensor_parallel": "tp",
    "pipeline_parallel": "pp",
    "virtual_stages": "virtual stages",
    "context_parallel": "cp",
    "expert_parallel": "ep",
    "sequence_parallel": "sequence parallel",
    "zero_stage": "ZeRO",
    "seq_len": "sequence",
    "micro_batch": "micro-batch",
    "global_batch": "global batch",
    "precision": "precision",
    "gradient_bytes": "bytes of a gradient",
    "recompute": "recomputation",
    "flash_attention": "flash attention",
    "compiled": "compiled",
    "lora": "LoRA",
    "quantized_base": "quantised base",
    "cpu_offload": "CPU offload",
    "framework": "framework",
    "reshard_after_forward": "reshard after forward",
    "sync_every_micro_batch": "every micro-batch synchronised",
    "data_s": "data stall of",
    "checkpoint_s": "checkpoint stall of",
    "fabric": "network",
    "nodes": "nodes",
}
_ALWAYS = frozenset({"model", "gpu", "gpus_per_node", "strategy", "seq_len", "precision"})
_IF_VARYING = frozenset({"sync_every_micro_batch", "name"})
_FOLLOWING = ("global_batch", "recompute", "framework", "sequence_parallel", "zero_stage")
"""Hidden where the rest of a case decides them; what was assumed is told elsewhere."""
_DEFAULTS = {field.name: field.default for field in fields(TrainingCase)}


def worded(title: str, value: str) -> str:
    """A property in words: `8 nodes`, `tp 4`, `roce-400g`."""
    if title == "nodes":
        if "x" in value:
            return value
        return "1 node" if value == "1" else f"{value} nodes"
    if title == "GPUs a node":
        return f"{value} GPU{'' if value == '1' else 's'} a node"
    return value if title in _SPEAKING else f"{title} {value}"


_SPEAKING = frozenset(
    {"name", "network", "model", "GPU", "strategy", "precision", "sequence", "framework"}
)
"""Properties whose values need no title."""
_OF_PLACE = frozenset({"network", "nodes", "GPUs a node", "GPU", "model", "strategy", "name"})
"""What of a label a sentence about a cluster says anyway."""


def told_beside_place(
    cases: Sequence[TrainingCase], labels: Sequence[Mapping[str, str]]
) -> list[tuple[str, ...]]:
    """What tells each case from the others in a sentence that says its model, strategy and cluster.
    Its name, too, where all that is another one's as well: workloads may differ in much."""
    told = [
        tuple(worded(title, value) for title, value in label.items() if title not in _OF_PLACE)
        for label in labels
    ]
    names: dict[object, set[str]] = {}
    keys = [
        (
            case.model.name,
            case.strategy,
            case.gpu,
            case.gpus_per_node,
            case.nodes,
            case.fabric,
            words,
        )
        for case, words in zip(cases, told, strict=True)
    ]
    for case, key in zip(cases, keys, strict=True):
        names.setdefault(key, set()).add(case.name)
    return [
        (case.name, *words) if len(names[key]) > 1 else words
        for case, key, words in zip(cases, keys, told, strict=True)
    ]


def _is_of_name(name: str, cases: Sequence[TrainingCase]) -> bool:
    """Does each name, with a number of nodes, always have the same value of it?"""
    if name in ("name", "nodes"):
        return False
    values = {(case.name, case.nodes): getattr(case, name) for case in cases}
    return all(values[case.name, case.nodes] == getattr(case, name) for case in cases)


def _follows(name: str, cases: Sequence[TrainingCase]) -> bool:
    """Is there at most one value of it for each of the rest?"""
    key = key_without({name})
    rest: dict[Key, object] = {}
    return all(
        rest.setdefault(key(case), getattr(case, name)) == getattr(case, name) for case in cases
    )


def _printed(name: str, value: object) -> str:
    """As people write it."""
    if isinstance(value, Fabric):
        words = value.name or ("one node" if value.transport == "none" else value.transport)
    elif isinstance(value, ModelShape):
        words = value.name
    elif value is None:
        words = "0" if name == "zero_stage" else "as usual"
    elif isinstance(value, bool):
        words = "yes" if value else "no"
    elif isinstance(value, float):
        is_time = name.endswith("_s")
        words = (show_time(value) if value else "none") if is_time else f"{value:g}"
    else:
        words = f"{value:,} tokens" if name == "seq_len" else str(value)
    return words
