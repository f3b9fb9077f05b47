"""Which part of the text does each rank see in each step?"""

from typing import Any

import torch

from broadgauge.messages.model_shape import ModelShape
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.training.text import Text
from broadgauge.probes.trial import RefusedError

BYTES = 256


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
    what one rank of N·b sequences sees.
    """

    def __init__(self, text: Text, model: ModelShape, device: Any) -> None:
        seq_len = model.seq_len
        if len(text.content) <= seq_len:
            raise RefusedError(
                f"the training text has {len(text.content)} bytes, too few for sequences of "
                f"{seq_len} ({text.description})"
            )
        content = bytearray(as_characters(text.content, model.vocabulary))
        self._bytes = torch.frombuffer(content, dtype=torch.uint8).to(device)
        self._window = torch.arange(seq_len + 1, device=device)

    def draw(self, seed: int, step: int, per_rank: int, identity: RankIdentity) -> Any:
        """Tokens and the tokens that follow them: two int64[B, T]."""
        generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
        starts = torch.randint(
            len(self._bytes) - len(self._window) + 1,
            (identity.world_size, per_rank),
            generator=generator,
        )[identity.rank]
        rows = starts.to(self._bytes.device, non_blocking=True)[:, None] + self._window
        tokens = self._bytes[rows].long()
        return tokens[:, :-1], tokens[:, 1:]
