"""Plain data read from texts, and where each part of it was written."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

KeyPath = tuple[str | int, ...]
"""`("networks", 1, "rate_gbps")`."""

GROUNDS = {"rate_inferred_from": "rate_gbps"}
"""Of a network: keys that say what another one's value rests on, and so not of one in its place."""


def outlived(entry: Collection[str], path: KeyPath) -> set[str]:
    """Which grounds no longer hold where these keys of the entry at this path are replaced?"""
    if len(path) != 2 or path[0] != "networks":
        return set()
    return {ground for ground, key in GROUNDS.items() if key in entry and ground not in entry}


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Plain data (dict, list, str, int, float, bool, None) and where each part stands."""

    filename: str
    data: Any
    places: dict[KeyPath, str] = field(default_factory=dict)
    """`experiment.yaml:5:5` of each value; of a mapping's entry, of its key."""
    overridden: dict[KeyPath, str] = field(default_factory=dict)
    """Parts that a flag has set, with the flag's text."""

    def where(self, path: KeyPath) -> str:
        """`experiment.yaml:5:5`, or the flag that set it, of the nearest part that has a place."""
        for set_path, flag in self.overridden.items():
            if path and set_path[: len(path)] == path:
                return flag
        for end in range(len(path), -1, -1):
            if path[:end] in self.overridden:
                return self.overridden[path[:end]]
            if path[:end] in self.places:
                return self.places[path[:end]]
        return self.filename

    def file_of(self, path: KeyPath) -> str:
        """In which file does the nearest part that has a place stand? What a flag sets is of the
        file that it changes."""
        is_set = any(path[:end] in self.overridden for end in range(len(path) + 1))
        place = self.filename if is_set else self.where(path)
        return re.sub(r":\d+:\d+$", "", place)


class Assembly:
    """A document put together from parts of others, each of which keeps its place."""

    def __init__(self) -> None:
        self.places: dict[KeyPath, str] = {}
        self.overridden: dict[KeyPath, str] = {}

    def take(self, source: Document, value: Any, *, at: KeyPath, to: KeyPath) -> Any:
        """A copy of the value that stands `at` in the source, placed as it was there."""
        self.place(source, at=at, to=to)
        if isinstance(value, dict):
            return {
                key: self.take(source, item, at=(*at, key), to=(*to, key))
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [
                self.take(source, item, at=(*at, i), to=(*to, i)) for i, item in enumerate(value)
            ]
        return value

    def place(self, source: Document, *, at: KeyPath, to: KeyPath) -> None:
        """What stands here was written there; nothing changes where there is no place."""
        if at in source.overridden:
            self.overridden[to] = source.overridden[at]
        elif at in source.places:
            self.places[to] = source.places[at]

    def document(self, filename: str, data: Any) -> Document:
        return Document(
            filename=filename, data=data, places=self.places, overridden=self.overridden
        )
