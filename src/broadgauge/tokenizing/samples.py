"""Which samples do the texts of a source become?"""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from broadgauge.messages.synthetic_lengths import SMALLEST_SAMPLE
from broadgauge.specs.errors import InputError
from broadgauge.tokenizing.chat import ChatTemplate
from broadgauge.tokenizing.documents import (
    PIECE_BYTES,
    RecordText,
    documents_of,
    pieces_of,
    rows_of,
)
from broadgauge.tokenizing.request import DEFAULT_BLOCK, PrepareRequest, SourceKind
from broadgauge.tokenizing.tokenizer import ByteTokenizer, Ids, Tokenizer
from broadgauge.tokenizing.turns import counted_tokens

EMPTY, ONE_TOKEN, TOO_LONG = "empty", "one token", "too long"
NOTHING_SAID = "no token of an assistant"
"""Reasons for which a record becomes no sample."""
BATCH_RECORDS = 512
"""Tokenised at once, on all cores where the tokenizer does so."""


@dataclass(slots=True)
class Tally:
    """What became of the records so far?"""

    num_records: int = 0
    num_cut: int = 0
    left_out: dict[str, int] = field(default_factory=dict)

    def leave_out(self, reason: str) -> None:
        self.left_out[reason] = self.left_out.get(reason, 0) + 1

    @property
    def words(self) -> str:
        return ", ".join(f"{count} {reason}" for reason, count in sorted(self.left_out.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenisedSample:
    ids: Ids
    counted: Ids | None = None
    """bool[tokens]: does the loss count its prediction? None: of all."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def predicts(self) -> bool:
        """Is there a token to learn from? The first follows nothing."""
        return self.counted is None or bool(self.counted[1:].any())

    def begin(self, length: int) -> "TokenisedSample":
        """Its first tokens."""
        counted = None if self.counted is None else self.counted[:length]
        return TokenisedSample(ids=self.ids[:length], counted=counted)


def samples_of(
    request: PrepareRequest,
    kind: SourceKind,
    tokenizer: Tokenizer,
    template: ChatTemplate | None,
    tally: Tally,
) -> Iterator[TokenisedSample]:
    """Each of two tokens or more, in the source's order. Raises InputError and RefusedError."""
    if kind == "text":
        return (TokenisedSample(ids=ids) for ids in _blocks(request, tokenizer, tally))
    documents = documents_of(rows_of(request, kind), request, template)
    encode = functools.partial(_encoded, tokenizer, is_written=template is not None)
    return _records(documents, request, encode, tally)


def _records(
    documents: Iterable[RecordText],
    request: PrepareRequest,
    encode: Callable[[Sequence[RecordText]], Sequence[TokenisedSample]],
    tally: Tally,
) -> Iterator[TokenisedSample]:
    """One sample a record."""
    for batch in _batches(documents):
        tally.num_records += len(batch)
        full = [document for document in batch if document.text]
        for _ in range(len(batch) - len(full)):
            tally.leave_out(EMPTY)
        for document, whole in zip(full, encode(full) if full else (), strict=True):
            sample = _fitted(whole, document.place, request, tally)
            if sample is not None and not sample.predicts:
                tally.leave_out(NOTHING_SAID)
            elif sample is not None:
                yield sample


def _encoded(
    tokenizer: Tokenizer, documents: Sequence[RecordText], *, is_written: bool
) -> Sequence[TokenisedSample]:
    """`is_written`: a template has put all special tokens in already."""
    texts = [document.text for document in documents]
    if not is_written:
        return [TokenisedSample(ids=ids) for ids in tokenizer.encode_records(texts)]
    if documents[0].turns is None:
        return [TokenisedSample(ids=ids) for ids in tokenizer.encode_as_they_are(texts)]
    return [
        TokenisedSample(
            ids=ids, counted=counted_tokens(ids, begins, document.turns or (), tokenizer.end_id)
        )
        for document, (ids, begins) in zip(
            documents, tokenizer.encode_with_places(texts), strict=True
        )
    ]


def _fitted(
    tokens: TokenisedSample, place: str, request: PrepareRequest, tally: Tally
) -> TokenisedSample | None:
    """The record's tokens as the request wants them; None: left out, and counted."""
    if len(tokens) < SMALLEST_SAMPLE:
        tally.leave_out(ONE_TOKEN if len(tokens) else EMPTY)
        return None
    limit = request.max_length
    if limit is None or len(tokens) <= limit:
        return tokens
    if request.over_length == "refuse":
        raise InputError(
            f"{place}: {len(tokens)} tokens, and --max-length is {limit}",
            hint="--over-length drop leaves such records out, cut takes their beginning",
        )
    if request.over_length == "drop":
        tally.leave_out(TOO_LONG)
        return None
    tally.num_cut += 1
    return tokens.begin(limit)


def _batches(documents: Iterable[RecordText]) -> Iterator[Sequence[RecordText]]:
    whole = iter(documents)
    while batch := list(itertools.islice(whole, BATCH_RECORDS)):
        yield batch


def _blocks(request: PrepareRequest, tokenizer: Tokenizer, tally: Tally) -> Iterator[Ids]:
    """A text file's tokens one after the other, cut into samples of equal length; the last one is
    shorter. Each is a record."""
    size = DEFAULT_BLOCK if request.max_length is None else request.max_length
    held: list[Ids] = []  # joined once a sample is there: joining each piece would be quadratic
    num_held = 0
    for tokens in _token_stream(Path(request.source), tokenizer):
        held.append(tokens)
        num_held += len(tokens)
        if num_held < size:
            continue
        joined = np.concatenate(held)
        whole = num_held // size * size
        tally.num_records += whole // size
        yield from joined[:whole].reshape(-1, size)
        held, num_held = [joined[whole:]], num_held - whole
    if num_held:
        tally.num_records += 1
    if num_held >= SMALLEST_SAMPLE:
        yield np.concatenate(held)
    elif num_held:
        tally.leave_out(ONE_TOKEN)


def _token_stream(path: Path, tokenizer: Tokenizer) -> Iterator[Ids]:
    """Bytes are read as they are; text is tokenised in pieces that end with lines, so that a token
    across a line's end may be two where a piece ends."""
    if not isinstance(tokenizer, ByteTokenizer):
        yield from (tokenizer.encode_as_they_are([piece])[0] for piece in pieces_of(path))
        return
    with path.open("rb") as file:
        while data := file.read(PIECE_BYTES):
            yield np.frombuffer(data, dtype=np.uint8)
