"""What is asked of variables, and how is one shown?"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from broadgauge.catalog.nccl_variables import Version, version_of
from broadgauge.messages.hardware import HardwareFacts
from broadgauge.specs.secrets.names import MASK, is_secret, without_credentials

_SHOWN_CHARACTERS = 120


@dataclass(frozen=True)
class Variables:
    """Those of one job, and where it runs."""

    values: Mapping[str, str]
    version: str | None
    """Of NCCL; None: unknown."""
    facts: HardwareFacts | None

    @functools.cached_property
    def release(self) -> Version:
        """Empty: unknown."""
        return version_of(self.version or "")

    def evidence(self, *names: str) -> str:
        """`NCCL_DEBUG=inof (environment)`."""
        return ", ".join(self._shown(name) for name in names if name in self.values)

    def _shown(self, name: str) -> str:
        value = without_credentials(self.values[name])
        if len(value) > _SHOWN_CHARACTERS:
            value = value[:_SHOWN_CHARACTERS] + "…"
        place = self._place(name)
        return f"{name}={MASK if is_secret(name) else value}{f' ({place})' if place else ''}"

    def _place(self, name: str) -> str | None:
        of_facts = self.facts.variables if self.facts is not None else ()
        return next((each.place for each in of_facts if each.name == name), None)

    def number(self, name: str) -> int | None:
        """As NCCL takes it; None: not set, or no whole number."""
        return whole_number(self.values.get(name, ""))


def whole_number(text: str) -> int | None:
    """As strtoll(3) with base 0 takes all of it: `16`, `0x10`, `020`; None: it does not."""
    digits = text.strip().lower()
    sign = -1 if digits.startswith("-") else 1
    digits = digits.removeprefix("-").removeprefix("+")
    base = 16 if digits.startswith("0x") else 8 if digits.startswith("0") else 10
    try:
        return sign * int(digits.removeprefix("0x"), base) if digits.isalnum() else None
    except ValueError:
        return None
