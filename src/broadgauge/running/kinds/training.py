"""Is what a training reads on this machine? What can be seen before any rank starts."""

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from broadgauge.manifests.memory_need import MIB, MemoryPart, memory_part
from broadgauge.messages.prepared_set import PreparedSet, PreparedSetError, read_prepared_set
from broadgauge.running.kinds.kind import KindInRunning
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.workload import (
    HubDataset,
    JsonLines,
    PreparedData,
    SynthesizedData,
    TrainWorkload,
)
from broadgauge.wording.file_kinds import special_kind

if TYPE_CHECKING:
    from broadgauge.predict.prediction import MemoryUse

TEXT_BYTES = 16 * MIB
"""The most that a rank reads of its text: `probes/training/text.py`, MAX_TEXT_BYTES."""
TOKEN_BYTES = 4
"""While they are drawn: `probes/training/synthesized.py`."""


@dataclass(frozen=True, slots=True)
class TrainingInRunning(KindInRunning):
    """A training as it is started."""

    train: TrainWorkload

    def check_files(self, working_folder: Path, *, is_prepared: bool) -> None:
        """A data set's own name is looked up by the ranks, which read the library's cache:
        importing that library takes seconds."""
        if not is_prepared:
            _check(self.train, working_folder)

    def held_on_host(self, case: Case) -> Iterator[MemoryPart]:
        """On CPUs the model itself; the copy that `communication_off` needs, which is in the node's
        memory where a GPU has no room for it (probes/training/snapshot.py); the text."""
        ranks, use = case.ranks_per_node, _memory_use(self.train, case)
        by_model = "`predict`'s memory model"
        if case.device == "cpu":
            held_bytes = ranks * _held_bytes(use)
            yield memory_part("model, optimizer and activations", held_bytes, by_model)
        if self.train.communication_off:
            copy_bytes = ranks * (use.parameters_bytes + use.optimizer_bytes)
            where = "" if case.device == "cpu" else ", where GPUs have no room for it"
            yield memory_part(f"a copy of weights and optimizer{where}", copy_bytes, by_model)
        if isinstance(self.train.data, SynthesizedData):
            made_bytes = ranks * TOKEN_BYTES * self.train.data.synthesized.total_tokens
            yield memory_part("samples that ranks make up", made_bytes, "4 bytes a token")
        else:
            yield memory_part("text", ranks * TEXT_BYTES, "the most that a rank reads of it")


def _memory_use(train: TrainWorkload, case: Case) -> "MemoryUse":
    """Of one rank. Which GPU is asked about decides its capacity only, which is not looked at."""
    from broadgauge.catalog.gpus import known_gpus
    from broadgauge.predict.asking.workload_case import training_case
    from broadgauge.predict.case import Fabric
    from broadgauge.predict.memory.fullest_gpu import memory_use

    asked = training_case(
        train,
        gpu=known_gpus()[0].name,
        nodes=case.nodes,
        ranks_per_node=case.ranks_per_node,
        fabric=Fabric(),
    )
    return memory_use(asked)


def _held_bytes(use: "MemoryUse") -> float:
    """Without the margin, which is the CUDA context's and its allocator's."""
    states = use.parameters_bytes + use.gradients_bytes + use.optimizer_bytes
    return states + use.activations_bytes + use.buffers_bytes


def _check(train: TrainWorkload, working_folder: Path) -> None:
    match train.data:
        case JsonLines() as lines:
            _check_file(f"`data.jsonl` of {train.name}", lines.jsonl, working_folder)
        case PreparedData(prepared=name):
            _check_prepared(train, working_folder / name)
        case HubDataset() as hub if importlib.util.find_spec("datasets") is None:
            raise InputError(
                f"`data` of {train.name}: the data set `{hub.dataset}` needs the package "
                "`datasets`, which is not installed here",
                hint="pip install 'broadgauge[data]'",
            )
    if train.text is not None:
        _check_file(f"`text` of {train.name}", train.text, working_folder)


def _check_prepared(train: TrainWorkload, folder: Path) -> None:
    what = f"`data.prepared` of {train.name}"
    try:
        described = read_prepared_set(folder)
    except PreparedSetError as error:
        raise InputError(f"{what}: {error}") from error
    if described.vocabulary > train.model.vocabulary:
        raise InputError(
            f"{what} has {described.vocabulary:,} tokens, and the model's vocabulary is "
            f"{train.model.vocabulary:,}",
            hint=f"model: {{vocabulary: {described.vocabulary}}}",
        )
    if described.num_counted is not None and train.packing is None:
        raise InputError(
            f"{what} has a loss of an assistant's tokens alone, which sequences that are cut "
            "anywhere can't have",
            hint="packing: {max_batch_len: …, effective_batch_size: …} takes whole samples",
        )
    _check_lengths(train, described)


def _check_lengths(train: TrainWorkload, described: PreparedSet) -> None:
    """By those lengths that the set's description names; the ranks look at all of them."""
    if train.packing is None:
        return
    seq_len, lengths = train.model.seq_len, described.lengths
    known = (lengths.longest, lengths.p95, lengths.median, lengths.shortest)
    taken = max((each for each in known if each <= train.packing.max_batch_len), default=0)
    if taken > seq_len:
        raise InputError(
            f"`data.prepared` of {train.name} has samples of {taken:,} tokens that fit "
            f"`max_batch_len`, and the model takes {seq_len:,} (`seq_len`)",
            hint=f"model: {{seq_len: {taken}}} or more, or prepare it with --max-length {seq_len}",
        )


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
