"""What does a cell of a table say? Empty cells, capitals, spaces and `1e3` included."""

import math
from collections.abc import Mapping
from typing import Any

from broadgauge.catalog.entries import plain
from broadgauge.specs.base import did_you_mean

_YES = {"yes", "true", "1", "y", "on"}
_NO = {"", "no", "false", "0", "n", "off", "none"}


class BadCellError(ValueError):
    """A row can't be read: the message is the reason."""


class Cells:
    """The cells of one row by column; a column that the table lacks is empty."""

    def __init__(self, cells: Mapping[str, str]) -> None:
        self._cells = cells

    def text(self, column: str) -> str:
        """As it stands, without blanks around it."""
        return self._cells.get(column, "").strip()

    def word(self, column: str) -> str:
        """In small letters, blanks and underscores as hyphens."""
        return plain(self.text(column))

    def number(self, column: str) -> float:
        """A positive number. Raises BadCellError."""
        value = self.optional_number(column)
        if value is None:
            raise BadCellError(f"`{column}` is empty")
        return value

    def optional_number(self, column: str) -> float | None:
        """A positive number; None: empty. Raises BadCellError."""
        text = self.text(column)
        if not text:
            return None
        value = _parsed(column, text)
        if value <= 0:
            raise BadCellError(f"`{column}` must be more than zero, not `{text}`")
        return value

    def count(self, column: str, default: int | None = None) -> int:
        """A whole number of at least 1; empty: the default. Raises BadCellError."""
        value = self.optional_count(column, at_least=1)
        if value is not None:
            return value
        if default is None:
            raise BadCellError(f"`{column}` is empty")
        return default

    def optional_count(
        self, column: str, *, at_least: int, at_most: int | None = None
    ) -> int | None:
        """A whole number; None: empty. Raises BadCellError."""
        text = self.text(column)
        if not text:
            return None
        value = _parsed(column, text)
        if not value.is_integer():
            raise BadCellError(f"`{column}` must be a whole number, not `{text}`")
        if value < at_least:
            raise BadCellError(f"`{column}` must be at least {at_least}, not `{text}`")
        if at_most is not None and value > at_most:
            raise BadCellError(f"`{column}` must be at most {at_most}, not `{text}`")
        return int(value)

    def choice(self, column: str, values: Mapping[str, Any]) -> Any:
        """One of the known words. Raises BadCellError with what was meant."""
        word = self.word(column)
        if word in values:
            return values[word]
        if not word:
            raise BadCellError(f"`{column}` is empty")
        hint = did_you_mean(word, [known for known in values if known])
        shown = f" ({hint})" if hint else ""
        raise BadCellError(f"`{column}` can't be `{self.text(column)}`{shown}")

    def yes_or_no(self, column: str) -> bool:
        """Empty is no. Raises BadCellError."""
        word = self.word(column)
        if word in _YES:
            return True
        if word in _NO:
            return False
        raise BadCellError(f"`{column}` is yes or no, not `{self.text(column)}`")


def _parsed(column: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise BadCellError(f"`{column}` must be a number, not `{text[:40]}`") from None
    if not math.isfinite(value):
        raise BadCellError(f"`{column}` must be a finite number, not `{text}`")
    return value
