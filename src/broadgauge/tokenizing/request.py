"""What is asked of `broadgauge data prepare`?"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

SourceKind = Literal["text", "jsonl", "dataset"]
OverLength = Literal["drop", "cut", "refuse"]
LossOn = Literal["all", "assistant"]
"""Whose tokens does a training learn to predict?"""
TemplateChoice = Literal["chatml", "tokenizer"]
BYTES = "bytes"
DEFAULT_BLOCK = 1024
"""Tokens of a sample that a text file is cut into. Source: GPT-2's context length (Radford et al.
2019), which minGPT and lightning-GPT take, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareRequest:
    """A source of records, how each becomes a sample, and where to."""

    source: str
    """A text file, a file of JSON lines, a folder of `save_to_disk`, or a data set's name."""
    kind: SourceKind | None = None
    """None: told by what is there and by its name."""
    field: str = "text"
    """The key of the text, or of the conversation; dots step into objects."""
    is_conversation: bool = False
    """The field holds messages of `role` and `content`."""
    subset: str | None = None
    split: str = "train"
    tokenizer: str = BYTES
    """`bytes`, a tokenizer.json, or a folder that has one."""
    template: TemplateChoice | None = None
    """Of conversations. None: the tokenizer's own where it has one, else our ChatML."""
    loss_on: LossOn = "all"
    """Of conversations; `assistant`: what the user and the system say is read and not predicted."""
    max_length: int | None = None
    """In tokens. Of a text file None is DEFAULT_BLOCK, of records no limit."""
    over_length: OverLength = "drop"
    """What becomes of a record that is longer."""
    out: Path | None = None
    """The folder to write; None: one of the cache."""
