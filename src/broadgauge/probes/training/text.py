"""What is a text to train on: its bytes, and what the record says of it."""

from dataclasses import dataclass

MAX_TEXT_BYTES = 16 * 2**20
"""Of any text only so much is read, to keep the memory of many ranks on one machine small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    content: bytes
    description: str
    """What was read, and how many bytes of it."""
