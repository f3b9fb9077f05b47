"""Is what a training reads on this machine? What can be seen before any rank starts."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from broadgauge.running.kinds.kind import KindInRunning
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError
from broadgauge.specs.workload import HubDataset, JsonLines, TrainWorkload
from broadgauge.wording.file_kinds import special_kind


@dataclass(frozen=True, slots=True)
class TrainingInRunning(KindInRunning):
    """A training as it is started."""

    train: TrainWorkload

    def check_files(self, working_folder: Path, *, is_prepared: bool) -> None:
        """A data set's own name is looked up by the ranks, which read the library's cache:
        importing that library takes seconds."""
        if not is_prepared:
            _check(self.train, working_folder)


def _check(train: TrainWorkload, working_folder: Path) -> None:
    match train.data:
        case JsonLines() as lines:
            _check_file(f"`data.jsonl` of {train.name}", lines.jsonl, working_folder)
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
