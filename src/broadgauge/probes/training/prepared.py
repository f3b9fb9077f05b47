"""How does a rank read a prepared set? It maps the files, and copies the samples that it takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from broadgauge.messages.prepared_set import (
    COUNTED,
    OFFSETS,
    TOKENS,
    PreparedSetError,
    read_prepared_set,
)
from broadgauge.messages.synthetic_lengths import SMALLEST_SAMPLE
from broadgauge.probes.trial import RefusedError

PIECE_TOKENS = 1 << 20


@dataclass(frozen=True, kw_only=True)
class PreparedTokens:
    description: str
    """What a record says that was read."""
    key: str | None = None
    """The set's: ranks with the same have read the same samples; None: made up here."""
    ids: Any
    """Of all samples, as they are on disk: int16 or int32[num_tokens], mapped. Ids of two bytes
    above 32,767 are negative here."""
    offsets: Any
    """int64[num_samples + 1], mapped."""
    counted: Any = None
    """uint8[num_tokens], mapped: 1 where the loss counts the token's prediction; None: it counts
    all."""

    @cached_property
    def lengths(self) -> Any:
        """int64[num_samples]."""
        return self.offsets.diff()

    @cached_property
    def num_predicted(self) -> Any:
        """int64[num_samples]: tokens that each gives to learn from. A sample's first follows
        nothing."""
        if self.counted is None:
            return self.lengths - 1
        ends_of_parts = torch.stack([self.offsets[:-1] + 1, self.offsets[1:]], dim=1)
        return _counted_before(self.counted, ends_of_parts.flatten()).view(-1, 2).diff().flatten()

    def sample(self, number: int) -> Any:
        """int64[its length]."""
        begin, end = self.offsets[number : number + 2].tolist()
        return widened(self.ids[begin:end])

    def following(self, number: int, ignored: int) -> Any:
        """int64[its length]: what is to be predicted behind each token, or `ignored`."""
        begin, end = self.offsets[number : number + 2].tolist()
        tokens = widened(self.ids[begin + 1 : end])
        if self.counted is not None:
            tokens = tokens.masked_fill(self.counted[begin + 1 : end] == 0, ignored)
        return torch.cat([tokens, torch.tensor([ignored])])


def open_prepared(path: str, vocabulary: int) -> PreparedTokens:
    """Raises RefusedError where there is none, it is damaged, or its vocabulary is larger than the
    model's. (A smaller one is not refused: models have more rows than tokens for round sizes.)"""
    folder = Path(path)
    try:
        described = read_prepared_set(folder)
    except PreparedSetError as error:
        raise RefusedError(str(error)) from error
    if described.vocabulary > vocabulary:
        raise RefusedError(
            f"the prepared set `{folder}` has {described.vocabulary:,} tokens, and the model's "
            f"vocabulary is {vocabulary:,}: model: {{vocabulary: {described.vocabulary}}}"
        )
    kind = torch.int16 if described.token_bytes == 2 else torch.int32
    is_masked = described.num_counted is not None
    found = PreparedTokens(
        description=described.description,
        key=described.key,
        ids=_mapped(folder / TOKENS, kind, described.num_tokens),
        offsets=_mapped(folder / OFFSETS, torch.int64, described.num_samples + 1),
        counted=_mapped(folder / COUNTED, torch.uint8, described.num_tokens) if is_masked else None,
    )
    _refuse_unusable(found, folder)
    return found


def _refuse_unusable(found: PreparedTokens, folder: Path) -> None:
    """`broadgauge data prepare` writes no such set."""
    is_whole = int(found.offsets[0]) == 0 and int(found.offsets[-1]) == len(found.ids)
    if not is_whole or int(found.lengths.min()) < SMALLEST_SAMPLE:
        number = int(found.lengths.argmin())
        raise RefusedError(
            f"the prepared set `{folder}` is damaged: its offsets are not of {len(found.ids):,} "
            f"tokens in samples of {SMALLEST_SAMPLE} or more; sample {number}, the shortest, has "
            f"{int(found.lengths[number])}"
        )
    if not bool(found.num_predicted.all()):
        number = int((found.num_predicted == 0).nonzero()[0])
        raise RefusedError(
            f"sample {number} of the prepared set `{folder}` has no token that the loss counts: "
            "`broadgauge data prepare --loss-on assistant` leaves such samples out"
        )


def _counted_before(counted: Any, places: Any) -> Any:
    """int64[num_places]: how many tokens are counted before each of the places, in ascending order.
    Summed in pieces: a sum beside each token would take 8 times the memory of the flags."""
    found = torch.zeros_like(places)
    before = 0
    for begin in range(0, len(counted), PIECE_TOKENS):
        sums = counted[begin : begin + PIECE_TOKENS].cumsum(0)
        ends = torch.tensor([begin, begin + len(sums)])
        first, behind = torch.searchsorted(places, ends, right=True).tolist()
        found[first:behind] = before + sums[places[first:behind] - begin - 1]
        before += int(sums[-1])
    return found


def widened(ids: Any) -> Any:
    """Ids as a model takes them: int64, from 0 on."""
    return ids.long() & 0xFFFF if ids.dtype is torch.int16 else ids.long()


def padded(samples: Sequence[Any], fill: int) -> Any:
    """int64[samples, the longest's length], shorter ones filled up at their end."""
    return torch.nn.utils.rnn.pad_sequence(list(samples), batch_first=True, padding_value=fill)


def _mapped(path: Path, kind: Any, size: int) -> Any:
    """Privately: what torch would write there would stay in memory."""
    return torch.from_file(str(path), shared=False, size=size, dtype=kind)
