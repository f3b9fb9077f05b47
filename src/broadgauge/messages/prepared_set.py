"""What is a prepared set of samples on disk? What `broadgauge data prepare` writes and ranks read.

A folder of these files:

    tokens.bin    the token ids of all samples, one after the other: little-endian, `token_bytes`
                  bytes each (2, or 4 where the vocabulary has more than 65,536 tokens)
    offsets.bin   little-endian int64, one more than samples: sample i has the ids from offsets[i]
                  to offsets[i + 1], and no sample is empty
    counted.bin   only where the loss is of an assistant's tokens alone: a byte a token, 1 where
                  its prediction counts and else 0
    set.json      what they are: this module's PreparedSet

The .bin files can be memory-mapped as they are. set.json is written last, and the folder gets its
name when all are on disk, so a folder with that name is whole.
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from broadgauge.messages.codec import DecodeError, decode

FORMAT = 1
TOKENS, OFFSETS, DESCRIPTION = "tokens.bin", "offsets.bin", "set.json"
COUNTED = "counted.bin"
OFFSET_BYTES = 8
MOST_TWO_BYTE_TOKENS = 65_536
PREPARE = "`broadgauge data prepare` makes one"
_PIECE_BYTES = 1 << 20


class PreparedSetError(ValueError):
    """The folder holds no prepared set that can be read, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedFile:
    name: str
    size_bytes: int
    sha256: str
    """Of its content, as hexadecimal digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLengths:
    """How long are the samples, in tokens? Percentiles are lengths that occur: the smallest that
    is not exceeded by so many of the samples."""

    shortest: int
    p25: int
    median: int
    p75: int
    p95: int
    p99: int
    longest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSet:
    """One set, as set.json says it."""

    kind: Literal["prepared_set"] = "prepared_set"
    format: int = FORMAT
    key: str
    """A hash of the source's content, the tokenizer and the settings: the same, the same set."""
    source: str
    """What was read, in words: `train.jsonl, text of 120 records`."""
    source_sha256: str | None
    """Of the content; None: nothing was read, the samples are synthetic."""
    tokenizer: str
    """In words: `bytes`, `tokenizer.json (32,000 tokens)`."""
    tokenizer_sha256: str | None = None
    """None: bytes are the tokens, or nothing was tokenised."""
    template: str | None = None
    """Of conversations, in words; None: the records are no conversations."""
    vocabulary: int
    """Ids are below it."""
    token_bytes: Literal[2, 4]
    num_samples: int
    num_tokens: int
    lengths: TokenLengths
    num_records: int
    """Read from the source."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Records that became no sample, by reason."""
    num_cut: int = 0
    """Samples that lost their end to the longest length allowed."""
    num_counted: int | None = None
    """Tokens whose prediction the loss counts; None: of all but each sample's first."""
    notes: tuple[str, ...] = ()
    files: tuple[PreparedFile, ...]

    @property
    def mean_length(self) -> float:
        """Tokens of a sample."""
        return self.num_tokens / self.num_samples

    @property
    def description(self) -> str:
        """What a record of a training says that it read."""
        counted = "" if self.num_counted is None else f"loss on {self.num_counted:,} of them, "
        return (
            f"prepared set {self.key}: {self.num_samples:,} samples, {self.num_tokens:,} tokens, "
            f"{counted}tokenizer {self.tokenizer}; {self.source}"
        )


def token_bytes_of(vocabulary: int) -> Literal[2, 4]:
    """How many bytes does an id need on disk?"""
    return 2 if vocabulary <= MOST_TWO_BYTE_TOKENS else 4


def read_prepared_set(folder: Path) -> PreparedSet:
    """What the folder holds, its files being as large as it says. Raises PreparedSetError."""
    try:
        if (folder / DESCRIPTION).exists() and not (folder / DESCRIPTION).is_file():
            raise PreparedSetError(f"`{folder / DESCRIPTION}` is no file: {PREPARE}")
        text = (folder / DESCRIPTION).read_bytes()
    except FileNotFoundError:
        problem = f"has no {DESCRIPTION}" if folder.is_dir() else "is no folder"
        raise PreparedSetError(f"`{folder}` {problem}: {PREPARE}") from None
    except OSError as error:
        raise PreparedSetError(f"`{folder}` can't be read: {error.strerror}") from error
    described = _described(folder, text)
    for each in described.files:
        size_bytes = _size_bytes(folder / each.name)
        if size_bytes != each.size_bytes:
            raise PreparedSetError(
                f"`{folder / each.name}` has {size_bytes} bytes, and {DESCRIPTION} says "
                f"{each.size_bytes}: the set is damaged, remove the folder and prepare it again"
            )
    return described


def check_content(folder: Path, described: PreparedSet) -> None:
    """Are the files, to the byte, what was written? Raises PreparedSetError."""
    for each in described.files:
        try:
            found = file_sha256(folder / each.name)
        except OSError as error:
            raise PreparedSetError(
                f"`{folder / each.name}` can't be read: {error.strerror}"
            ) from error
        if found != each.sha256:
            raise PreparedSetError(
                f"`{folder / each.name}` was changed: its checksum is not the one in {DESCRIPTION}"
            )


def file_sha256(path: Path) -> str:
    """Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as content:
        while piece := content.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def _described(folder: Path, text: bytes) -> PreparedSet:
    try:
        told = json.loads(text)
        if isinstance(told, dict) and told.get("format") != FORMAT:
            raise PreparedSetError(
                f"`{folder}` has format {told.get('format')!r}, and this version reads {FORMAT}"
            )
        described = decode(PreparedSet, told)
    except (DecodeError, ValueError, RecursionError) as error:
        if isinstance(error, PreparedSetError):
            raise
        raise PreparedSetError(f"`{folder / DESCRIPTION}` is no prepared set: {error}") from error
    if described.num_samples < 1:
        raise PreparedSetError(f"`{folder / DESCRIPTION}` has no sample: {PREPARE}")
    _check_sizes(folder, described)
    return described


def _check_sizes(folder: Path, described: PreparedSet) -> None:
    """Are the files as large as so many samples and tokens are?"""
    sizes = {each.name: each.size_bytes for each in described.files}
    wanted = {
        TOKENS: described.num_tokens * described.token_bytes,
        OFFSETS: (described.num_samples + 1) * OFFSET_BYTES,
    }
    if described.num_counted is not None:
        wanted[COUNTED] = described.num_tokens
    if sizes != wanted:
        raise PreparedSetError(
            f"`{folder / DESCRIPTION}` contradicts itself: {described.num_samples} samples and "
            f"{described.num_tokens} tokens are files of {wanted}, and it names {sizes}"
        )


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise PreparedSetError(f"`{path}` can't be read: {error.strerror}") from error
