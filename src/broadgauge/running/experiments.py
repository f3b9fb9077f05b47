"""Which experiment does the user mean: a file, or one that comes with Broadgauge?"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.secrets.values import SecretTexts
from broadgauge.specs.text.yaml_source import MAX_TEXT_BYTES
from broadgauge.specs.workloads.training_config import MOST_BYTES as MOST_CONFIG_BYTES
from broadgauge.specs.workloads.workload import Engine
from broadgauge.wording.file_kinds import special_kind

GIVEN_STREAMS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""`run <(make-experiment)` and `run /dev/stdin`: whoever gives one feeds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedExperiment:
    """A read experiment and the folder its relative paths start from."""

    experiment: Experiment
    source: str
    folder: Path
    secrets: SecretTexts = field(default_factory=dict)
    """The values of secrets that stand in the file or in `--set`; the experiment has none."""


def examples_folder() -> Path:
    """In an installed package beside the code, in a checkout at its root."""
    package = Path(__file__).parents[1]
    installed = package / "examples"
    return installed if installed.is_dir() else package.parents[1] / "examples"


def example_names() -> list[str]:
    """What can be run by its name alone."""
    return sorted(path.stem for path in examples_folder().glob("*.yaml"))


def load(
    name_or_path: str, overrides: Sequence[str], engine: Engine | None = None
) -> LoadedExperiment:
    """The experiment, changed by `--set` and by `--engine`.

    Raises InputError (no such file, no text) and ExperimentError (what the text says).
    """
    path = _find(Path(name_or_path), name_or_path)
    return load_text(_read_text(path), path, overrides, engine)


def load_text(
    text: str, path: Path, overrides: Sequence[str] = (), engine: Engine | None = None
) -> LoadedExperiment:
    """The experiment that the text is, as if it stood at this path. Raises ExperimentError."""
    from broadgauge.specs.text.reading import read_with_secrets

    if engine is not None:
        overrides = (*overrides, *_engine_overrides(text, path, overrides, engine))
    experiment, secrets = read_with_secrets(
        text,
        str(path),
        overrides,
        read_base=read_base,
        read_config=read_config,
        find_model=find_model,
        find_storage=find_storage,
    )
    return LoadedExperiment(
        experiment=experiment, source=str(path), folder=path.parent.absolute(), secrets=secrets
    )


def _engine_overrides(
    text: str, path: Path, overrides: Sequence[str], engine: Engine
) -> Iterator[str]:
    """`--set` texts that run all collectives over torch, and over the engine named beside it."""
    from broadgauge.specs.text.extending import with_bases
    from broadgauge.specs.text.overriding import apply_overrides
    from broadgauge.specs.text.yaml_source import parse_yaml

    document = apply_overrides(with_bases(parse_yaml(text, str(path)), read_base), overrides)
    data = document.data if isinstance(document.data, dict) else {}
    workloads = data.get("workloads")
    entries = enumerate(workloads if isinstance(workloads, list) else ())
    places = [i for i, each in entries if isinstance(each, dict) and _has_engine(each)]
    if not places:
        raise InputError(
            f"--engine: {path} has no collectives to run",
            hint="it takes a workload of `kind: collectives`",
        )
    engines = "torch" if engine == "torch" else f"[torch, {engine}]"
    for place in places:
        yield f"workloads.{place}.engine={engines}"


def _has_engine(entry: dict[object, object]) -> bool:
    """Is it of a kind that several programs can measure?"""
    from broadgauge.specs.text.fields import discriminators
    from broadgauge.specs.workloads.workload import MODELS

    return any(
        entry.get("kind") in discriminators(model) and "engine" in model.model_fields
        for model in MODELS
    )


class FileReader:
    """What a file extends: a path from its own folder, or the name of an example."""

    def __call__(self, reference: str, from_file: str) -> tuple[str, str]:
        """The text and the file's name; `..` is left to the kernel, which follows the links before
        it. Raises InputError."""
        path = _find(Path(from_file).parent / reference, reference)
        return _read_text(path), str(path)

    def identity(self, filename: str) -> str:
        """Its path without links."""
        return os.path.realpath(filename)


read_base = FileReader()


def find_model(name: str, folder: str) -> Mapping[str, Any]:
    """What an experiment's model of this name is trained as. Raises InputError."""
    from broadgauge.catalog.trained_models import trained_model  # few experiments name a model

    return trained_model(name, folder)


def find_storage(name: str) -> Mapping[str, Any]:
    """What the catalog says of the storage of this name. Raises InputError."""
    from broadgauge.catalog.references import said_of_storage  # as above

    return said_of_storage(name)


def read_config(path: str) -> str:
    """The text of a command's `config`. Raises InputError."""
    place = Path(path)
    try:
        kind = special_kind(place.stat().st_mode)
        if kind is not None:
            raise InputError(f"{place}: {kind}, no file")
        with place.open("rb") as file:
            data = file.read(MOST_CONFIG_BYTES + 1)
        if len(data) > MOST_CONFIG_BYTES:
            raise InputError(f"{place}: larger than {MOST_CONFIG_BYTES:,} bytes")
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        beside = [each.name for each in place.parent.glob("*.json")]
        hint = did_you_mean(place.name, beside) or "a path from the experiment file's folder"
        raise InputError(f"no file {place}", hint=hint) from None
    except UnicodeDecodeError as error:
        raise InputError(f"{place}: byte {error.start} is no UTF-8") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{place}: {getattr(error, 'strerror', None) or error}") from None


def _find(path: Path, name: str) -> Path:
    """The path, or the example of this name where there is no such file."""
    try:
        is_there = path.exists()
    except OSError:  # a name that no file can have
        is_there = False
    return path if is_there or name not in example_names() else _example(name)


def _example(name: str) -> Path:
    return examples_folder() / f"{name}.yaml"


def _beside(path: Path) -> list[str]:
    """Experiment files of the same folder; none where it can't be listed."""
    try:
        return sorted(str(each) for each in path.parent.glob("*.y*ml"))
    except OSError:
        return []


def _read_text(path: Path) -> str:
    try:
        kind = special_kind(path.stat().st_mode)
        if kind is not None and not str(path).startswith(GIVEN_STREAMS):
            raise InputError(f"{path}: {kind}, not an experiment file")
        with path.open(encoding="utf-8") as file:
            return file.read(MAX_TEXT_BYTES + 1)
    except FileNotFoundError:
        hint = did_you_mean(path.name, example_names()) or did_you_mean(str(path), _beside(path))
        raise InputError(f"{path}: no such file, and no example has this name", hint=hint) from None
    except IsADirectoryError:
        hint = "a run folder is continued by --resume and shown by `broadgauge show`"
        raise InputError(f"{path}: a folder, not an experiment file", hint=hint) from None
    except UnicodeDecodeError as error:
        message = f"{path}: not a text file (byte {error.start} is no UTF-8)"
        raise InputError(message, hint="an experiment is a YAML file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"`{path}`: can't be read: {reason}") from None
