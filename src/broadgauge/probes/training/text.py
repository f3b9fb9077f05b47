"""What is a text to train on: its bytes, and what the record says of it."""

from dataclasses import dataclass
from pathlib import Path

from broadgauge.probes.trial import RefusedError
from broadgauge.wording.file_kinds import special_kind

MAX_TEXT_BYTES = 16 * 2**20
"""Of any text only so much is read, to keep the memory of many ranks on one machine small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    content: bytes
    description: str
    """What was read, and how many bytes of it."""


def refuse_special(path: Path) -> None:
    """A FIFO would hold the rank for ever. Raises RefusedError, and OSError where nothing is."""
    kind = special_kind(path.stat().st_mode)
    if kind is not None:
        raise RefusedError(f"the training data `{path}` is {kind}, no file")
