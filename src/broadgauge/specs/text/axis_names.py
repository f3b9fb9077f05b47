"""How is an entry named that came out of an axis? `<entry>-<key>-<value>` for each axis.

`eth` with `rate_gbps: [1 Gbit/s, 10 Gbit/s]` gives `eth-rate-1gbit` and `eth-rate-10gbit`. The key
is without its unit, `NCCL_` and `_per_…`; the value in lower case without spaces. Values that are
no single word, or that would read the same, are numbered from 1; so are entries whose names would
be longer than a name may be.
"""

import itertools
import re
from collections.abc import Sequence
from typing import Any

from broadgauge.specs.workloads.metrics import UNIT_SUFFIXES

MAX_NAME_CHARACTERS = 63
_ENDINGS = (*UNIT_SUFFIXES, "_per_node", "_per_rank")


def expanded_names(base: str, axes: Sequence[tuple[Sequence[str], Sequence[Any]]]) -> list[str]:
    """A name for each point of the product, the last axis fastest; each axis: path and values."""
    keys = _key_words([path for path, _ in axes])
    parts = [
        [f"{key}-{word}" for word in _value_words(values)]
        for key, (_, values) in zip(keys, axes, strict=True)
    ]
    names = ["-".join((base, *point)) for point in itertools.product(*parts)]
    if max(map(len, names)) <= MAX_NAME_CHARACTERS:
        return names
    longest_base = MAX_NAME_CHARACTERS - len(str(len(names))) - 1
    return [f"{base[:longest_base]}-{number}" for number in range(1, len(names) + 1)]


def _key_words(paths: Sequence[Sequence[str]]) -> list[str]:
    """The last key of each path, or all of its keys where that is not enough to tell them."""
    short = [_key_word(path[-1]) for path in paths]
    if len(set(short)) == len(short):
        return short
    return ["-".join(_slug(key) for key in path) for path in paths]


def _key_word(key: str) -> str:
    """`rate_gbps` → `rate`, `NCCL_ALGO` → `algo`, `nics_per_node` → `nics`."""
    ending = next((ending for ending in _ENDINGS if key.endswith(ending)), "")
    return _slug(key.removesuffix(ending).removeprefix("NCCL_"))


def _value_words(values: Sequence[Any]) -> list[str]:
    words = [_value_word(value) for value in values]
    if "" in words or len(set(words)) < len(words):
        return [str(number) for number in range(1, len(values) + 1)]
    return words


def _value_word(value: Any) -> str:
    """`10 Gbit/s` → `10gbit`; empty where a value has no word of its own."""
    if value is None:
        return "none"
    if isinstance(value, (dict, list)):
        return ""
    text = str(value).removesuffix("/s")
    return _slug(re.sub(r"(?<=\d) +(?=[A-Za-zµ])", "", text))


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")
