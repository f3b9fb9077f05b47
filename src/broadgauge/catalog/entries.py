"""What do all entries of the catalog have in common?"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from broadgauge.specs.base import NAME_PATTERN, check_no_boolean_number, did_you_mean
from broadgauge.specs.errors import InputError

_OF_MAKERS = ("nvidia", "tesla", "geforce", "amd", "instinct", "meta", "google")
_OF_TUNING = ("base", "chat", "hf", "instruct", "it", "v0.1", "v0.3")
_TELL_NOTHING = frozenset((*_OF_MAKERS, *_OF_TUNING))
"""Words that say whose product it is, or how a model was tuned: never which GPU or shape."""
_LIKE = "; one of yours is `like` a known one (docs/catalog.md)"
_OWN = {
    "gpu": _LIKE,
    "node": _LIKE,
    "model": f", and the path of a model's config.json is read{_LIKE}",
}
_OWN_MODEL = (
    "Of your own: the path of its config.json, or an entry `like` a known one (docs/catalog.md)"
)
_CONFIG_OF_OWN = ", and the path of a model's config.json is read"
MOST_MEANT = 8
"""Names with the word that was written, which a hint lists."""
DATE_PATTERN = r"^(19|20)\d\d(-\d\d){0,2}$"


class Part(BaseModel):
    """Frozen, strict about keys, and hashable: entries are keys of caches."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_booleans_as_numbers(cls, data: Any) -> Any:
        check_no_boolean_number(cls, data)
        return data


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


def find_entry(
    name: str, entries: Sequence[EntryType], what: str, *, takes_own: bool = True
) -> EntryType:
    """The entry of this name, else of this alias, else of one that only differs in how its words
    are joined or ordered (`a100-80gb-sxm`, `rtx3090`).

    Raises InputError with what was meant; `takes_own`: who asks also takes catalog files.
    """
    wanted = plain(name)
    named = ((plain(entry.name), entry) for entry in entries)
    found = next((entry for known, entry in named if known == wanted), None)
    if found is None:
        found = next((entry for entry in entries if wanted in map(plain, entry.aliases)), None)
    if found is None:
        alike = [each for each in entries if is_alike(name, each)]
        found = alike[0] if len(alike) == 1 else None
    if found is not None:
        return found
    known_names = [plain(each) for entry in entries for each in entry.names()]
    having = [each.name for each in entries if wanted in plain(each.name).split("-")]
    if 1 < len(having) <= MOST_MEANT:
        hint: str | None = f"did you mean {', '.join(f'`{each}`' for each in having)}?"
    else:
        hint = did_you_mean(wanted, known_names)
    listed = what if what == "storage" else f"{what}s"
    own = _OWN.get(what, "") if takes_own else _CONFIG_OF_OWN
    if hint is None:
        hint = f"`broadgauge catalog list {listed}` prints those known{own}"
    elif what == "model" and takes_own:
        hint = f"{hint} {_OWN_MODEL}"
    raise InputError(f"the catalog has no {what} `{name}`", hint=hint)


def is_alike(name: str, entry: Entry) -> bool:
    """Does one of its names only differ in how the words are joined or ordered?"""
    wanted = plain(name)
    return any(
        _joined(known) == _joined(wanted) or _words(known) == _words(wanted)
        for known in map(plain, entry.names())
    )


def _joined(name: str) -> str:
    """Without hyphens: `rtx3090`, `gpt3175b`."""
    return name.replace("-", "")


def _words(name: str) -> frozenset[str]:
    """In any order, without those that tell nothing."""
    return frozenset(name.split("-")) - _TELL_NOTHING
