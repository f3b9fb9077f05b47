"""Which text does the training read?

Without data of the user's: the sources of Python's standard library, which are on every machine
that has Python. Bytes are the tokens.
"""

import os
import platform
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from broadgauge.messages.tasks import (
    DatasetText,
    DataSource,
    FileText,
    JsonLinesText,
    StandardLibraryText,
    TextSource,
)
from broadgauge.messages.training_data import PreparedSamples, SyntheticSamples
from broadgauge.messages.vocabulary import assert_never
from broadgauge.probes.training.records import read_dataset, read_json_lines
from broadgauge.probes.training.text import MAX_TEXT_BYTES, Text, refuse_special
from broadgauge.probes.trial import RefusedError

if TYPE_CHECKING:
    from broadgauge.probes.training.prepared import PreparedTokens

NOT_LIBRARY = {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idlelib"}


def read_data(source: DataSource, vocabulary: int) -> "Text | PreparedTokens":
    """What a training reads: text, or tokens of the model's vocabulary. Raises RefusedError."""
    if not isinstance(source, PreparedSamples | SyntheticSamples):
        return read_text(source)
    # torch, which a text does without.
    from broadgauge.probes.training.prepared import open_prepared
    from broadgauge.probes.training.synthetic import synthetic_tokens

    if isinstance(source, SyntheticSamples):
        return synthetic_tokens(source, vocabulary)
    return open_prepared(source.path, vocabulary)


def read_text(source: TextSource) -> Text:
    """The user's data or file, or the standard library's sources. Raises RefusedError."""
    match source:
        case JsonLinesText():
            return read_json_lines(source)
        case DatasetText():
            return read_dataset(source)
        case FileText(path=path):
            return _user_file(Path(path))
        case StandardLibraryText():
            return _standard_library()
        case unknown:
            assert_never(unknown)


def _user_file(path: Path) -> Text:
    try:
        refuse_special(path)
        with path.open("rb") as source:
            content = source.read(MAX_TEXT_BYTES)
    except OSError as error:
        raise RefusedError(f"the training text `{path}` can't be read: {error.strerror}") from error
    return Text(content=content, source=str(path))


def _standard_library() -> Text:
    """All .py files in the order of their paths, without tests, until MAX_TEXT_BYTES."""
    root = Path(sysconfig.get_path("stdlib"))
    parts: list[bytes] = []
    size = 0
    for path in sorted(_library_files(root)):
        parts.append(path.read_bytes())
        size += len(parts[-1])
        if size >= MAX_TEXT_BYTES:
            break
    content = b"".join(parts)[:MAX_TEXT_BYTES]
    version = platform.python_version()
    return Text(content=content, source=f"standard library of Python {version}: {len(parts)} files")


def _library_files(root: Path) -> Iterator[Path]:
    """Folders that are left out are not entered: site-packages has ten times the files."""
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if name not in NOT_LIBRARY]
        yield from (Path(folder, name) for name in names if name.endswith(".py"))
