"""Is what a training reads on this machine? What can be seen before any rank starts."""

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from broadgauge.manifests.memory_need import MIB, MemoryPart, memory_part
from broadgauge.messages.prepared_set import token_bytes_of
from broadgauge.running.kinds.kind import KindInRunning
from broadgauge.running.kinds.prepared_samples import check_prepared
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.workloads.workload import (
    HubDataset,
    JsonLines,
    PreparedData,
    SyntheticData,
    TrainWorkload,
)
from broadgauge.wording.file_kinds import special_kind

if TYPE_CHECKING:
    from broadgauge.predict.prediction import MemoryUse

TEXT_BYTES = 16 * MIB
"""The most that a rank reads of its text: `probes/training/text.py`, MAX_TEXT_BYTES."""

COPIED_RATIO = 1.5
"""What is copied of a trained parameter over AdamW's two moments, all in float32: its weight, too.
Frozen ones are not copied."""
DRAWN_BYTES = 4
"""Of a made-up token while it is drawn, beside what it is kept in where that is smaller:
probes/training/synthetic.py."""


@dataclass(frozen=True, slots=True)
class TrainingInRunning(KindInRunning):
    """A training as it is started."""

    train: TrainWorkload

    def check_files(self, working_folder: Path, *, is_prepared: bool) -> None:
        """A data set's own name is looked up by the ranks, which read the library's cache:
        importing that library takes seconds."""
        if not is_prepared:
            _check(self.train, working_folder)

    @property
    def named_files(self) -> tuple[str, ...]:
        data, text = self.train.data, self.train.text
        lines = (data.jsonl,) if isinstance(data, JsonLines) else ()
        return lines if text is None else (*lines, text)

    @property
    def needed_files(self) -> tuple[str, ...]:
        return tuple(name for name in self.named_files if not name.startswith("/"))

    def held_on_host(self, case: Case) -> Iterator[MemoryPart]:
        """On CPUs the model itself, of which `cpu_offload` keeps the states there for GPUs, too;
        the copy that `communication_off` needs, which is in the node's memory where a GPU has no
        room for it (probes/training/snapshot.py); the data."""
        ranks, train = case.ranks_per_node, self.train
        use = _memory_use(train.model_copy(update={"cpu_offload": False}), case)
        by_model = "`predict`'s memory model"
        if case.device == "cpu":
            held_bytes = ranks * (use.states_bytes + use.activations_bytes + use.buffers_bytes)
            yield memory_part("model, optimizer and activations", held_bytes, by_model)
        elif train.cpu_offload:
            held_bytes = ranks * use.states_bytes
            yield memory_part("model and optimizer, offloaded", held_bytes, by_model)
        if train.communication_off:
            copy_bytes = ranks * COPIED_RATIO * use.optimizer_bytes
            where = "" if case.device == "cpu" else ", where GPUs have no room for it"
            yield memory_part(f"a copy of weights and optimizer{where}", copy_bytes, by_model)
        if isinstance(train.data, SyntheticData):
            kept_bytes = token_bytes_of(train.model.vocabulary)
            a_token_bytes = DRAWN_BYTES + (kept_bytes if kept_bytes < DRAWN_BYTES else 0)
            drawn_bytes = ranks * a_token_bytes * train.data.num_tokens
            yield memory_part("made-up samples", drawn_bytes, "while they are drawn")
        else:
            yield memory_part("text", ranks * TEXT_BYTES, "the most that a rank reads of it")


def _memory_use(train: TrainWorkload, case: Case) -> "MemoryUse":
    """Of one rank. Which GPU is asked about decides its capacity only, which is not looked at."""
    from broadgauge.catalog.gpus import known_gpus
    from broadgauge.predict.asking.workload_case import training_case
    from broadgauge.predict.case import Fabric
    from broadgauge.predict.memory.fullest_gpu import memory_use

    nodes, ranks_per_node = _replicas_and_shards(train, case)
    asked = training_case(
        train,
        gpu=known_gpus()[0].name,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        fabric=Fabric(),
    )
    return memory_use(asked)


def _replicas_and_shards(train: TrainWorkload, case: Case) -> tuple[int, int]:
    """Nodes and ranks a node on which HSDP, which `predict` shards over a node, holds as much."""
    if train.shard_ranks is None or case.world_size % train.shard_ranks:
        return case.nodes, case.ranks_per_node
    return case.world_size // train.shard_ranks, train.shard_ranks


def _check(train: TrainWorkload, working_folder: Path) -> None:
    match train.data:
        case JsonLines() as lines:
            _check_file(f"`data.jsonl` of {train.name}", lines.jsonl, working_folder)
        case PreparedData(prepared=name):
            check_prepared(
                f"`data.prepared` of {train.name}",
                working_folder / name,
                model=train.model,
                packing=train.packing,
            )
        case HubDataset() as hub if importlib.util.find_spec("datasets") is None:
            raise InputError(
                f"`data` of {train.name}: the data set `{hub.dataset}` needs the package "
                "`datasets`, which is not installed here",
                hint="pip install 'broadgauge[data]'",
            )
    if train.text is not None:
        _check_file(f"`text` of {train.name}", train.text, working_folder)


def _check_file(what: str, name: str, working_folder: Path) -> None:
    path = working_folder / name
    if path.is_file():
        return
    if path.is_dir():
        raise InputError(f"{what}: {path} is a folder, no file")
    if path.exists():
        kind = special_kind(path.stat().st_mode)
        raise InputError(f"{what}: {path} is {kind or 'something else'}, no file")
    around = path.parent.iterdir() if path.parent.is_dir() else ()
    near = did_you_mean(path.name, (file.name for file in around if file.is_file()))
    raise InputError(
        f"{what}: no file `{name}` in {working_folder}",
        hint=near or "a path starts from the experiment file's folder",
    )
