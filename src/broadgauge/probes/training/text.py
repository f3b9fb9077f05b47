"""What is a text to train on: its bytes, and what the record says of it."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from broadgauge.probes.trial import RefusedError
from broadgauge.wording.file_kinds import special_kind

MAX_TEXT_BYTES = 16 * 2**20
"""Of any text only so much is read, to keep the memory of many ranks on one machine small."""
DIGITS = 12
"""Of the checksum: 48 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    content: bytes
    source: str
    """What was read."""

    @property
    def description(self) -> str:
        """What was read, how many bytes of it, and which: ranks that say the same train on the
        same."""
        digest = hashlib.sha256(self.content).hexdigest()[:DIGITS]
        return f"{self.source}, {len(self.content)} bytes, SHA-256 {digest}…"


def refuse_special(path: Path) -> None:
    """A FIFO would hold the rank for ever. Raises RefusedError, and OSError where nothing is."""
    kind = special_kind(path.stat().st_mode)
    if kind is not None:
        raise RefusedError(f"the training data `{path}` is {kind}, no file")
