"""How does a prepared set get onto the disk, whole or not at all?"""

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from broadgauge.messages.codec import encode
from broadgauge.messages.prepared_set import (
    COUNTED,
    DESCRIPTION,
    OFFSET_BYTES,
    OFFSETS,
    TOKENS,
    PreparedFile,
    PreparedSet,
    TokenLengths,
    token_bytes_of,
)
from broadgauge.messages.synthetic_lengths import SMALLEST_SAMPLE
from broadgauge.results.folder.disk import sync_folder
from broadgauge.specs.errors import InputError
from broadgauge.tokenizing.lengths import token_lengths
from broadgauge.tokenizing.places import set_there

_ABANDONED_AFTER_S = 24 * 3600
"""A folder that a killed preparation left behind is removed by a later one."""


class _Output:
    """One file, and the checksum of what went into it."""

    def __init__(self, path: Path) -> None:
        self._path, self._digest, self._size_bytes = path, hashlib.sha256(), 0
        self._file: IO[bytes] = path.open("wb")

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self._size_bytes += len(data)

    def close(self) -> PreparedFile:
        self._file.flush()
        os.fsync(self._file.fileno())
        return PreparedFile(
            name=self._path.name, size_bytes=self._size_bytes, sha256=self._digest.hexdigest()
        )

    def abandon(self) -> None:
        with suppress(OSError):  # what was not written is not wanted
            self._file.close()


class SetWriter:
    """Takes samples one by one, inside a `with`; memory does not grow with their number, but for
    the count of samples of each length."""

    def __init__(self, folder: Path, vocabulary: int, *, is_masked: bool = False) -> None:
        self.vocabulary, self.token_bytes = vocabulary, token_bytes_of(vocabulary)
        self._type = np.dtype(f"<u{self.token_bytes}")
        self._folder = folder
        self._counts = Counter[int]()
        self.num_tokens = 0
        self.num_counted = 0
        """Of a set with a mask: tokens whose prediction the loss counts."""
        self.files: tuple[PreparedFile, ...] = ()
        """Known once the block has ended."""
        try:
            self._tokens, self._offsets = _Output(folder / TOKENS), _Output(folder / OFFSETS)
            self._counted = _Output(folder / COUNTED) if is_masked else None
        except OSError as error:
            raise _unwritable(folder, error) from error
        self._offsets.write(bytes(OFFSET_BYTES))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.files = tuple(each.close() for each in self._outputs)
        except OSError as error:
            raise _unwritable(self._folder, error) from error
        finally:
            for each in self._outputs:
                each.abandon()

    @property
    def _outputs(self) -> tuple[_Output, ...]:
        counted = () if self._counted is None else (self._counted,)
        return (self._tokens, self._offsets, *counted)

    def add(self, tokens: Any, counted: Any = None) -> None:
        """One sample: integers below the vocabulary, two of them or more; of a set with a mask also
        which of them the loss counts. Raises InputError."""
        assert len(tokens) >= SMALLEST_SAMPLE
        assert (counted is None) is (self._counted is None)
        self.num_tokens += len(tokens)
        self._counts[len(tokens)] += 1
        try:
            self._tokens.write(np.asarray(tokens).astype(self._type).tobytes())
            self._offsets.write(self.num_tokens.to_bytes(OFFSET_BYTES, "little"))
            if self._counted is not None:
                self.num_counted += int(counted[1:].sum())
                self._counted.write(np.asarray(counted).astype(np.uint8).tobytes())
        except OSError as error:
            raise _unwritable(self._folder, error) from error

    @property
    def num_samples(self) -> int:
        return self._counts.total()

    @property
    def lengths(self) -> TokenLengths:
        return token_lengths(self._counts)


class Draft:
    """A set that is being written beside the folder that it will be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key: str | None = None
        """Known once it is described."""

    def describe(self, described: PreparedSet) -> None:
        """The last file. Without it the folder is no set."""
        text = json.dumps(encode(described), indent=2, ensure_ascii=False) + "\n"
        try:
            with (self.folder / DESCRIPTION).open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise _unwritable(self.folder, error) from error
        self.key = described.key


@contextmanager
def drafting(final: Path) -> Iterator[Draft]:
    """A draft that becomes `final` where the block ends, and is removed where it raises.

    Where another process was faster, its set stays. Raises InputError where that is another set, as
    a folder that `--out` names may be asked for twice, and where nothing can be written.
    """
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(final)
        made = Path(tempfile.mkdtemp(prefix=_prefix(final), dir=final.parent))
    except OSError as error:
        raise _unwritable(final, error) from error
    try:
        draft = Draft(made)
        yield draft
        assert draft.key is not None
        try:
            made.chmod(0o755)
            _become(made, final, draft.key)
        except OSError as error:
            raise _unwritable(final, error) from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _become(made: Path, final: Path, key: str) -> None:
    try:
        made.rename(final)
    except OSError:
        if set_there(final, key) is None:
            raise
    sync_folder(final.parent)


def _prefix(final: Path) -> str:
    return f".{final.name}.part-"


def _remove_abandoned(final: Path) -> None:
    for left in final.parent.iterdir():
        if left.name.startswith(_prefix(final)):
            with suppress(OSError):  # its writer has just finished, or it is someone else's
                newest_s = max(each.stat().st_mtime for each in (left, *left.iterdir()))
                if newest_s < time.time() - _ABANDONED_AFTER_S:
                    shutil.rmtree(left, ignore_errors=True)


def _unwritable(final: Path, error: OSError) -> InputError:
    return InputError(
        f"the prepared set `{final}` can't be written: {error.strerror or error}",
        hint="--out FOLDER writes it elsewhere",
    )
