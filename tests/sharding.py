"""Which thorough tests does this commit run? `--shard 3/8` runs the fourth of eight parts of them.

A test's part is the CRC of its name: it stays where it is when others come and go, and the cases
of a parametrised test are spread evenly.
"""

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

import pytest
from _pytest.mark import ParameterSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Part `index` of `count`, counted from 0."""

    index: int
    count: int

    def has(self, node_id: str) -> bool:
        return zlib.crc32(node_id.encode()) % self.count == self.index


def one_of(values: Iterable[object], kept: object) -> list[ParameterSet]:
    """For parametrize: one value as it is, the others marked `thorough`."""
    some = list(values)
    assert some.count(kept) == 1, f"{kept} is not among {some}"
    return [
        pytest.param(value, marks=() if value == kept else pytest.mark.thorough) for value in some
    ]


def parse_shard(text: str) -> Shard:
    """Of `3/8`. Raises pytest.UsageError."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if found is None or not int(found[1]) < int(found[2]):
        raise pytest.UsageError(f"--shard {text}: a part and how many, like 0/8 … 7/8")
    return Shard(index=int(found[1]), count=int(found[2]))


def keep_shard(config: pytest.Config, items: list[pytest.Item], shard: Shard) -> None:
    """Deselects the thorough tests of other parts."""
    kept, left_out = _split(items, shard)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def _split(items: Iterable[pytest.Item], shard: Shard) -> tuple[list[pytest.Item], ...]:
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        is_everywhere = not any(map(item.get_closest_marker, ("thorough", "costly")))
        (kept if is_everywhere or shard.has(item.nodeid) else left_out).append(item)
    return kept, left_out
