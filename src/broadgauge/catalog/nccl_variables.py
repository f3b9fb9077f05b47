"""Which environment variables does which version of NCCL read, and who reads the others?"""

import functools
from typing import Literal

from pydantic import Field

from broadgauge.catalog.entries import Part
from broadgauge.catalog.loading import shipped_data

OF_NCCL = "nccl"
Version = tuple[int, ...]


class NcclVariable(Part):
    """One entry of nccl_variables.yaml."""

    name: str = Field(pattern=r"^[A-Z][A-Z0-9_]*\*?$")
    """With `*` at the end: all that begin so."""
    reader: str
    """`nccl`, `torch`, or a plugin or program."""
    first: str | None = None
    """The oldest release known to read it; None: not of NCCL."""
    last: str | None = None
    """The newest one; releases up to 2.30.7 were read."""
    kind: Literal["integer", "text", "word", "level"]
    """`word`: one of `values`, in any case; `level`: one of them, or a number of the old scale."""
    values: tuple[str, ...] = ()
    meaning: str = ""

    def stands_for(self, name: str) -> bool:
        """Is it this variable?"""
        if self.name.endswith("*"):
            return name.startswith(self.name[:-1])
        return name == self.name


@functools.cache
def known_nccl_variables() -> tuple[NcclVariable, ...]:
    """Every entry that is shipped."""
    return tuple(NcclVariable.model_validate(data) for data in shipped_data("nccl_variables"))


@functools.cache
def find_nccl_variable(name: str) -> NcclVariable | None:
    """The entry of this very name, else one that stands for it; None: nobody known reads it."""
    meant = [entry for entry in known_nccl_variables() if entry.stands_for(name)]
    return next((entry for entry in meant if entry.name == name), meant[0] if meant else None)


def newest_known_release() -> Version:
    """Of NCCL: what a newer one reads is not known."""
    return max(version_of(entry.last) for entry in known_nccl_variables() if entry.last)


def version_of(text: str) -> Version:
    """`2.28.9` → (2, 28, 9), `2.27.3+cuda12` too; what is no version is ()."""
    numbers: list[int] = []
    for part in text.split("+", maxsplit=1)[0].split("."):
        if not part.isascii() or not part.isdecimal() or len(part) > 4:
            break
        numbers.append(int(part))
    return tuple(numbers)
