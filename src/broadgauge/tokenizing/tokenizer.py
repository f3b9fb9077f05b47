"""How does text become token ids? Bytes as they are, or a tokenizer of Hugging Face's library.

A tokenizer is read from files and never downloaded. Its own truncation and padding are switched
off: how long samples are is said by the request, and batches are padded by the trainer, whose
padding needs no token of its own. So a tokenizer without a pad token is as good as any.
"""

import hashlib
import importlib.util
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from broadgauge.messages.prepared_set import file_sha256
from broadgauge.specs.errors import InputError
from broadgauge.tokenizing.request import BYTES

FILE, SETTINGS = "tokenizer.json", "tokenizer_config.json"
INSTALL = "pip install 'broadgauge[data]'"
Ids = Any
"""A one-dimensional numpy array of integers."""


class Tokenizer(Protocol):
    @property
    def words(self) -> str:
        """For people: `bytes`, `tokenizer.json (32,000 tokens)`."""
        ...

    @property
    def sha256(self) -> str | None: ...

    @property
    def vocabulary(self) -> int:
        """Ids are below it."""
        ...

    @property
    def ends_samples(self) -> bool:
        """Is there a token that says that a sample has ended?"""
        ...

    def encode_records(self, texts: Sequence[str]) -> list[Ids]:
        """Each a whole text: with the special tokens that the tokenizer adds, and the end."""
        ...

    @property
    def end_id(self) -> int | None:
        """That token; None: there is none."""
        ...

    def encode_as_they_are(self, texts: Sequence[str]) -> list[Ids]:
        """Nothing is added: of pieces of a text, and of what a template has written."""
        ...

    def encode_with_places(self, texts: Sequence[str]) -> list[tuple[Ids, Ids]]:
        """The same, and of each token the place of its first character."""
        ...


class ByteTokenizer:
    """The bytes of UTF-8 are the tokens."""

    words = BYTES
    sha256: str | None = None
    vocabulary = 256
    ends_samples = False
    end_id: int | None = None

    def encode_records(self, texts: Sequence[str]) -> list[Ids]:
        return self.encode_as_they_are(texts)

    def encode_as_they_are(self, texts: Sequence[str]) -> list[Ids]:
        return [np.frombuffer(text.encode(), dtype=np.uint8) for text in texts]

    def encode_with_places(self, texts: Sequence[str]) -> list[tuple[Ids, Ids]]:
        """A character of several bytes is the place of each of them."""
        sizes = ([len(character.encode()) for character in text] for text in texts)
        places = [np.repeat(np.arange(len(each)), each) for each in sizes]
        return list(zip(self.encode_as_they_are(texts), places, strict=True))


class FileTokenizer:
    """A tokenizer.json, and what the tokenizer_config.json beside it says of its end token."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer as FastTokenizer

        self.folder, self._path = path.parent, path
        try:
            self._tokenizer = FastTokenizer.from_file(str(path))
        except Exception as error:
            raise InputError(f"`{path}` is no tokenizer: {error}") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
        if not vocabulary:
            raise InputError(f"`{path}` has no tokens")
        self.vocabulary = max(vocabulary.values()) + 1
        self.settings = _settings(self.folder)
        self.end_token = token_text(self.settings, "eos_token")
        end_id = None if self.end_token is None else vocabulary.get(self.end_token)
        if self.end_token is not None and end_id is None:
            raise InputError(
                f"`{self.folder / SETTINGS}` names the end token {self.end_token!r}, and "
                f"`{path.name}` has none of that name"
            )
        self.end_id = end_id
        name = path.name.encode(errors="backslashreplace").decode()  # set.json is UTF-8
        self.words = f"{name} ({self.vocabulary:,} tokens)"
        parts = f"{file_sha256(path)} {self.end_token!r}"
        self.sha256 = hashlib.sha256(parts.encode()).hexdigest()

    @property
    def ends_samples(self) -> bool:
        return self.end_id is not None

    def encode_records(self, texts: Sequence[str]) -> list[Ids]:
        found = self._encode(texts, adds=True)
        if self.end_id is None:
            return found
        return [
            ids if len(ids) and ids[-1] == self.end_id else np.append(ids, self.end_id)
            for ids in found
        ]

    def encode_as_they_are(self, texts: Sequence[str]) -> list[Ids]:
        return self._encode(texts, adds=False)

    def encode_with_places(self, texts: Sequence[str]) -> list[tuple[Ids, Ids]]:
        with self._in_words():
            encoded = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        begins = ([begin for begin, _ in each.offsets] for each in encoded)
        places = [np.array(each, dtype=np.int64) for each in begins]
        return list(zip(self._checked_ids(encoded), places, strict=True))

    def _encode(self, texts: Sequence[str], *, adds: bool) -> list[Ids]:
        with self._in_words():
            encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=adds)
        return self._checked_ids(encoded)

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # the library has no type of its own
            raise InputError(
                f"the tokenizer `{self._path}` can't read a text: {error}",
                hint="its unknown token must be in its vocabulary",
            ) from error

    def _checked_ids(self, encoded: Any) -> list[Ids]:
        """Raises InputError for an id that two bytes might make another token's."""
        found = [np.array(each.ids, dtype=np.int64) for each in encoded]
        largest = max((int(ids.max()) for ids in found if len(ids)), default=0)
        if largest >= self.vocabulary:  # of a special token that its vocabulary lacks
            raise InputError(
                f"the tokenizer `{self._path}` gives the id {largest}, and its vocabulary ends "
                f"with {self.vocabulary - 1}",
                hint="its post_processor's special tokens must be in its vocabulary",
            )
        return found


def open_tokenizer(name: str) -> ByteTokenizer | FileTokenizer:
    """`bytes`, a tokenizer.json, or a folder with one. Raises InputError."""
    if name == BYTES:
        return ByteTokenizer()
    path = Path(name)
    if path.is_dir():
        path = path / FILE
    if not path.is_file():
        raise _no_tokenizer(name, path)
    if importlib.util.find_spec("tokenizers") is None:
        raise InputError(
            f"the tokenizer `{path}` needs the package `tokenizers`, not installed here",
            hint=INSTALL,
        )
    return FileTokenizer(path)


def _no_tokenizer(name: str, path: Path) -> InputError:
    save = "AutoTokenizer.from_pretrained(NAME).save_pretrained(FOLDER) of transformers writes one"
    if path.parent.is_dir() and path.name == FILE and Path(name).is_dir():
        return InputError(f"the folder `{name}` has no {FILE}", hint=save)
    return InputError(
        f"no tokenizer `{name}`: it is `bytes`, a {FILE}, or a folder with one",
        hint=f"nothing is downloaded; {save}",
    )


def _settings(folder: Path) -> dict[str, Any]:
    """tokenizer_config.json; empty where there is none."""
    path = folder / SETTINGS
    try:
        told = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"`{path}` can't be read: {error}") from error
    if not isinstance(told, dict):
        raise InputError(f"`{path}` holds no object")
    return told


def token_text(settings: dict[str, Any], name: str) -> str | None:
    """`eos_token` is a text, or an object whose `content` is it; None: not named."""
    told = settings.get(name)
    text = told.get("content") if isinstance(told, dict) else told
    return text if isinstance(text, str) else None
