"""Which cases are the same training on another cluster, and how well does it scale?"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from broadgauge.predict.case import Fabric, TrainingCase
from broadgauge.predict.facts.arrays import Times

Key = tuple[Any, ...]
"""What must be equal."""
OF_SIZE = frozenset({"nodes", "data_parallel", "global_batch", "name", "fabric", "storage_waits"})
"""Fields that follow the cluster's size and network."""


def key_without(names: Collection[str]) -> Callable[[TrainingCase], Key]:
    """All of a case but these fields."""
    kept = [field.name for field in fields(TrainingCase) if field.name not in names]
    found: Callable[[TrainingCase], Key] = attrgetter(*kept)
    return found


setting_of = key_without(OF_SIZE | {"recompute"})
"""What is trained and how, on nodes of one kind. Recomputation may follow the size: a small cluster
needs it where a large one does not."""
on_any_node = key_without(OF_SIZE | {"recompute", "gpus_per_node"})
"""The same on nodes of any size."""
on_any_network = key_without({"fabric", "name", "storage_waits"})
"""The same on the same GPUs, whatever joins their nodes."""
_exactly = key_without(OF_SIZE | {"gpus_per_node"})


def batch_of(cases: Sequence[TrainingCase]) -> Callable[[TrainingCase], float]:
    """What of the batch do clusters of all sizes have in common, so which steps may be compared?

    Several batches on one cluster come of a list: of global batches, or of passes a step. What was
    listed has fewer values than what follows from it. Without a list all are the same.
    """
    seen: dict[tuple[Key, Fabric, int], float] = {}
    is_list = any(
        seen.setdefault((setting_of(case), case.fabric, case.nodes), case.global_batch)
        != case.global_batch
        for case in cases
    )
    if not is_list:
        return lambda _case: 0.0
    passes, batches = {c.micro_batches for c in cases}, {c.global_batch for c in cases}
    if len(passes) < len(batches):
        return attrgetter("micro_batches")
    return attrgetter("global_batch")


def scaling_ratios(
    cases: Sequence[TrainingCase], tokens_per_s: Times, wanted: Sequence[int]
) -> list[float | None]:
    """Of the wanted ones: tokens/s a GPU over those of the smallest cluster of the same training.

    One node stands for every network. Where the smallest cluster of the same recomputation is the
    case itself, a smaller one with another recomputation counts. None: it is the smallest.
    """
    batch = batch_of(cases)

    def same(case: TrainingCase) -> Key:
        return (*_exactly(case), batch(case))

    def nearly(case: TrainingCase) -> Key:
        return (*on_any_node(case), batch(case))

    exact, loose = _smallest(cases, same), _smallest(cases, nearly)
    found: list[float | None] = []
    for index in wanted:
        case = cases[index]
        base = exact[same(case), _between(case)]
        if cases[base].gpus >= case.gpus:
            base = loose[nearly(case), _between(case)]
        if cases[base].gpus >= case.gpus:
            found.append(None)
            continue
        a_gpu = float(tokens_per_s[index]) / case.gpus
        found.append(a_gpu / (float(tokens_per_s[base]) / cases[base].gpus))
    return found


def _between(case: TrainingCase) -> Fabric:
    """What joins its nodes; one node's own links are none."""
    return case.fabric if case.nodes > 1 else Fabric()


def _smallest(
    cases: Sequence[TrainingCase], key_of: Callable[[TrainingCase], Key]
) -> dict[tuple[Key, Fabric], int]:
    """The position of the smallest cluster of each key and network."""
    found: dict[tuple[Key, Fabric], int] = {}
    for index, case in enumerate(cases):
        key = (key_of(case), _between(case))
        if key not in found or case.gpus < cases[found[key]].gpus:
            found[key] = index
    for (setting, fabric), index in list(found.items()):
        alone = found.get((setting, Fabric()))
        if alone is not None and cases[alone].gpus < cases[index].gpus:
            found[setting, fabric] = alone
    return found
