"""What do all entries of the catalog have in common?"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from broadgauge.specs.base import NAME_PATTERN, did_you_mean
from broadgauge.specs.errors import InputError

DATE_PATTERN = r"^(19|20)\d\d(-\d\d){0,2}$"


class Part(BaseModel):
    """Frozen, strict about keys, and hashable: entries are keys of caches."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )


class Spread(Part):
    """A typical value, and from where to where it lies in nine cases of ten."""

    value: float = Field(gt=0)
    low: float = Field(gt=0)
    high: float = Field(gt=0)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"low {self.low:g}, value {self.value:g}, high {self.high:g}: order")
        return self


class Entry(Part):
    """One thing with a name. A source is optional here; `broadgauge catalog check` wants it."""

    name: str = Field(pattern=NAME_PATTERN)
    aliases: tuple[str, ...] = ()
    source: str | None = None
    """Of every figure that `sources` does not name."""
    date: str | None = Field(default=None, pattern=DATE_PATTERN)
    """When the source was published, or read where it has no date."""
    sources: Mapping[str, str] = Field(default_factory=dict)
    """Of figures from elsewhere: field → source."""
    fitted_on: tuple[str, ...] = ()
    """Sources whose measurements a constant was fitted on: it may not be scored with them."""
    note: str = ""

    def __hash__(self) -> int:
        return hash((type(self), self.name, self.source))

    def names(self) -> Iterator[str]:
        """What it is found by, the name first."""
        yield self.name
        yield from self.aliases


EntryType = TypeVar("EntryType", bound=Entry)


def plain(name: str) -> str:
    """`NVIDIA_H100 SXM` → `nvidia-h100-sxm`: how names are compared."""
    return re.sub(r"[\s_/]+", "-", name.strip().lower())


def find_entry(name: str, entries: Sequence[EntryType], what: str) -> EntryType:
    """The entry of this name, else of this alias. Raises InputError with what was meant."""
    wanted = plain(name)
    for entry in entries:
        if plain(entry.name) == wanted:
            return entry
    for entry in entries:
        if wanted in (plain(alias) for alias in entry.aliases):
            return entry
    known = [plain(each) for entry in entries for each in entry.names()]
    hint = did_you_mean(wanted, known) or f"`broadgauge catalog list {what}s` prints those known"
    raise InputError(f"the catalog has no {what} `{name}`", hint=hint)
