"""Which text is in the user's records: lines of JSON, or a data set of Hugging Face's library?

The texts of all records follow each other, a line feed after each, until MAX_TEXT_BYTES.
"""

import importlib.util
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from broadgauge.messages.tasks import DatasetText, JsonLinesText
from broadgauge.probes.training.text import MAX_TEXT_BYTES, Text, refuse_special
from broadgauge.probes.trial import RefusedError
from broadgauge.wording.near_words import did_you_mean

Records = Iterator[tuple[str, Any]]
"""Each with the place that a message names: `data.jsonl:3`."""
INSTALL = "pip install 'broadgauge[data]'"


def read_json_lines(source: JsonLinesText) -> Text:
    """Raises RefusedError with file and line."""
    path = Path(source.path)
    try:
        refuse_special(path)
        return _join(json_lines(path), source.field, str(path))
    except OSError as error:
        raise RefusedError(f"the training data `{path}` can't be read: {error.strerror}") from error


def read_dataset(source: DatasetText) -> Text:
    """A folder of `save_to_disk`, or a data set that is in the library's cache already.

    Nothing is fetched: emulated nodes have no way out, and a download is no part of a trial.
    Raises RefusedError.
    """
    parts = [part for part in (source.dataset, source.subset, source.split) if part]
    return _join(dataset_rows(source), source.field, " ".join(parts))


def dataset_rows(source: DatasetText) -> Records:
    """Its rows, each with its place. Raises RefusedError where it can't be opened."""
    name = source.dataset
    if importlib.util.find_spec("datasets") is None:
        raise RefusedError(
            f"the data set `{name}` needs the package `datasets`, not installed here: {INSTALL}"
        )
    # Read by the library when it is imported.
    os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"
    rows = _open_dataset(source)
    return ((f"{name}, row {number}", row) for number, row in enumerate(rows))


def _join(records: Records, field: str, source: str) -> Text:
    parts: list[bytes] = []
    size_bytes = 0
    for place, record in records:
        parts.append(utf8(text_in(record, field, place), field, place) + b"\n")
        size_bytes += len(parts[-1])
        if size_bytes >= MAX_TEXT_BYTES:
            break
    content = b"".join(parts)[:MAX_TEXT_BYTES]
    return Text(content=content, source=f"{source}, `{field}` of {len(parts)} records")


def utf8(text: str, field: str, place: str) -> bytes:
    """JSON can write half of a surrogate pair, which is no character."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        reason = f"`{field}` can't be UTF-8: {half} at character {error.start + 1} is half a pair"
        raise RefusedError(f"{place}: {reason}") from error


def json_lines(path: Path) -> Records:
    """Empty lines are left out. Raises RefusedError with file and line."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield f"{path}:{number}", _json(line, f"{path}:{number}")


def _json(line: bytes, place: str) -> Any:
    try:
        return json.loads(line.strip())
    except json.JSONDecodeError as error:
        reason = f"not a line of JSON: {error.msg}, column {error.colno}"
        raise RefusedError(f"{place}: {reason}") from error
    except UnicodeDecodeError as error:
        reason = f"not UTF-8: {error.reason}, byte {error.start + 1}"
        raise RefusedError(f"{place}: {reason}") from error
    except RecursionError as error:
        raise RefusedError(f"{place}: nested too deep to be read") from error
    except ValueError as error:  # an integer of more digits than Python converts
        raise RefusedError(f"{place}: not a line of JSON: {error}") from error


def text_in(record: Any, field: str, place: str) -> str:
    """The text under the key; dots step into objects."""
    value = value_in(record, field, place)
    if not isinstance(value, str):
        raise RefusedError(f"{place}: `{field}` is no text, but {kind_of(value)}")
    return value


def value_in(record: Any, field: str, place: str) -> Any:
    """What is under the key; dots step into objects."""
    value = record
    for key in field.split("."):
        if not isinstance(value, dict):
            raise RefusedError(f"{place}: no object to find `{field}` in, but {kind_of(value)}")
        if key not in value:
            known = (str(name).encode(errors="backslashreplace").decode() for name in value)
            hint = did_you_mean(key, known)
            raise RefusedError(f"{place}: no key `{field}`" + (f"; {hint}" if hint else ""))
        value = value[key]
    return value


def kind_of(value: Any) -> str:
    """A value that is not what was asked for, in words."""
    return "null" if value is None else f"{type(value).__name__} {str(value)[:40]!r}"


def _open_dataset(source: DatasetText) -> Any:
    from datasets import DatasetDict, load_dataset, load_from_disk  # only once offline is set
    from datasets.exceptions import DatasetsError

    try:
        if _is_saved(Path(source.dataset)):
            saved = load_from_disk(source.dataset)
            return saved[source.split] if isinstance(saved, DatasetDict) else saved
        return load_dataset(source.dataset, source.subset, split=source.split)
    except (OSError, ValueError, LookupError, DatasetsError) as error:
        if Path(source.dataset).is_dir():
            raise RefusedError(
                f"the folder `{source.dataset}` can't be opened as a data set: "
                f"{type(error).__name__}: {error}; `save_to_disk` makes one"
            ) from error
        arguments = ", ".join(repr(part) for part in (source.dataset, source.subset) if part)
        raise RefusedError(
            f"the data set `{source.dataset}` can't be opened without the internet: "
            f"{type(error).__name__}: {error}; fetch it first: python -c "
            f'"from datasets import load_dataset; load_dataset({arguments})"'
        ) from error


def _is_saved(folder: Path) -> bool:
    """Did `save_to_disk` make it? A data set with splits has a dictionary of them."""
    return any((folder / name).is_file() for name in ("dataset_info.json", "dataset_dict.json"))
