"""Which part of the text does each rank see in each step, where all sequences are as long?"""

from typing import Any

import torch

from broadgauge.messages.model_shape import ModelShape
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.training.batch import Batch
from broadgauge.probes.training.prepared import PreparedTokens, widened
from broadgauge.probes.training.text import Text
from broadgauge.probes.trial import RefusedError

BYTES = 256
MASKED = (
    "the prepared set's loss is of an assistant's tokens alone, and sequences that are cut "
    "anywhere predict as many tokens each: add `packing`, which takes whole samples"
)


def as_characters(content: bytes, vocabulary: int) -> bytes:
    """A text's bytes as ids below the vocabulary. Where it is smaller than 256, the text's distinct
    bytes in their order, as minGPT numbers characters; where they are more than it, the rarest
    share the last id. Source: karpathy/minGPT, projects/chargpt/chargpt.py, CharDataset."""
    if vocabulary >= BYTES:
        return content
    counts = {byte: content.count(byte) for byte in range(BYTES)}
    frequent = sorted((byte for byte in counts if counts[byte]), key=lambda byte: -counts[byte])
    if len(frequent) > vocabulary:
        frequent = frequent[: vocabulary - 1]
    ids = {byte: number for number, byte in enumerate(sorted(frequent))}
    return content.translate(bytes(ids.get(byte, vocabulary - 1) for byte in range(BYTES)))


class Batches:
    """Where does each sequence of a step begin? Drawn for all ranks from the seed and the step.

    A rank takes its own rows of the global batch, so that N ranks of b sequences see in each step
    what one rank of N·b sequences sees. Of a prepared set the samples follow each other without a
    gap.
    """

    def __init__(self, data: Text | PreparedTokens, model: ModelShape, device: Any) -> None:
        self._device = device
        self._ids = _ids(data, model, device)
        self._window = torch.arange(model.seq_len + 1, device=self._ids.device)

    def draw(self, seed: int, step: int, per_rank: int, identity: RankIdentity) -> Any:
        """Tokens and the tokens that follow them: two int64[B, T]."""
        generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
        starts = torch.randint(
            len(self._ids) - len(self._window) + 1,
            (identity.world_size, per_rank),
            generator=generator,
        )[identity.rank]
        rows = starts.to(self._ids.device, non_blocking=True)[:, None] + self._window
        tokens = widened(self._ids[rows]).to(self._device, non_blocking=True)
        return tokens[:, :-1], tokens[:, 1:]

    def micro_batches(
        self, seed: int, step: int, identity: RankIdentity, *, rows: int, count: int
    ) -> tuple[Batch, ...]:
        """What this rank reads in one step: `count` micro-batches of `rows` sequences."""
        drawn = self.draw(seed, step, rows * count, identity)
        return tuple(
            Batch(
                tokens=tokens,
                next_tokens=next_tokens,
                divisor=identity.world_size * count,
                num_samples=rows,
                num_tokens=tokens.numel(),
            )
            for tokens, next_tokens in zip(*(part.split(rows) for part in drawn), strict=True)
        )


def _ids(data: Text | PreparedTokens, model: ModelShape, device: Any) -> Any:
    """Of all of it; a prepared set's stay on disk, since they may be more than memory holds."""
    if isinstance(data, PreparedTokens):
        if data.counted is not None:
            raise RefusedError(MASKED)
        _refuse_too_few(data.ids, f"the prepared set has {len(data.ids)} tokens", data, model)
        return data.ids
    _refuse_too_few(data.content, f"the training text has {len(data.content)} bytes", data, model)
    content = bytearray(as_characters(data.content, model.vocabulary))
    return torch.frombuffer(content, dtype=torch.uint8).to(device)


def _refuse_too_few(ids: Any, words: str, data: Text | PreparedTokens, model: ModelShape) -> None:
    if len(ids) <= model.seq_len:
        raise RefusedError(
            f"{words}, too few for sequences of {model.seq_len} ({data.description})"
        )
