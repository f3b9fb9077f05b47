"""Where is a secret's true value looked up, and how is it kept out of what we write?

Experiments, cases and requests for launches have names only. The value is looked up at the last
moment, where a rank's environment is made: in what the experiment's file said (for the life of the
process that read it), else in the user's environment.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn, final
from urllib.parse import unquote

from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.secrets.names import MASK, credentials_in, is_secret, without_credentials
from broadgauge.specs.secrets.variables import FromEnvironment

SHORTEST_LOOKED_FOR = 6
"""Characters. A shorter value stands in texts by chance: `dev`, `1234`."""
_LONGEST_BEGINNING = 500
"""A line is cut at 500 characters: platforms/log_tail.py."""
_SHORTEST_LINE = 16
"""Of a value with several lines, such as a private key: a log shows them one by one."""


@final
class SecretText:
    """A value that nobody prints, dumps or pickles by accident."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The value, for the environment of a process and for nothing else."""
        return self._text

    def __repr__(self) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretText) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")


SecretTexts = Mapping[str, SecretText]
"""By the variable's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """The true values, by name."""

    literals: SecretTexts = field(default_factory=dict)
    """What experiment files said that this process read."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The user's."""

    def find(self, name: str) -> SecretText | None:
        """None where the file says nothing, and the environment nothing or an empty text."""
        if name in self.literals:
            return self.literals[name]
        value = self.environment.get(name)
        return SecretText(value) if value else None

    def value(self, name: str, variable: FromEnvironment) -> SecretText:
        """What the ranks get. Raises InputError."""
        found = self.find(name)
        if found is None:
            raise InputError(
                f"`{name}` is not set in your environment, and its value is stored nowhere",
                hint=f"export {name}=…, then the same command again",
            )
        here = without_credentials(found.reveal())
        if variable.shown is not None and here != variable.shown:
            seen = here if here != found.reveal() else "a text without a password"
            raise InputError(
                f"`{name}` in your environment is not the one that was planned: "
                f"{seen}, not {variable.shown}",
                hint="all but the password must be the same; a new run plans again",
            )
        return found

    def unset(self, cases: Iterable[Case]) -> tuple[str, ...]:
        """The names of those that these cases need and that have no value here."""
        return tuple(name for name in declared(cases) if self.find(name) is None)

    def values_of(self, cases: Iterable[Case]) -> SecretTexts:
        """Of those that these cases need, each that has a value here."""
        found = ((name, self.find(name)) for name in declared(cases))
        return {name: value for name, value in found if value is not None}

    def check(self, cases: Iterable[Case]) -> None:
        """Has each of these cases all its secrets? Raises InputError for the first that lacks."""
        for case in cases:
            for name, variable in case.environment.items():
                if isinstance(variable, FromEnvironment):
                    self.value(name, variable)

    def masker(self, cases: Iterable[Case]) -> "Masker":
        """What takes the values of all secrets out of texts: declared ones and those of known
        names, which the ranks inherit whether or not the experiment names them."""
        inherited = {
            name
            for name, value in self.environment.items()
            if is_secret(name) or without_credentials(value) != value
        }
        names = sorted({*declared(cases), *inherited, *self.literals})
        return Masker(found for name in names if (found := self.find(name)) is not None)


def declared(cases: Iterable[Case]) -> list[str]:
    """Names of the variables that these cases take from the user's environment, sorted."""
    return sorted(
        {
            name
            for case in cases
            for name, variable in case.environment.items()
            if isinstance(variable, FromEnvironment)
        }
    )


class Masker:
    """Replaces known values in texts."""

    def __init__(self, values: Iterable[SecretText]) -> None:
        parts = {part for value in values for part in _parts(value.reveal())}
        self._longest_first = sorted(parts, key=lambda part: (-len(part), part))
        self._known = re.compile("|".join(map(re.escape, self._longest_first)))

    def __call__(self, text: str) -> str:
        """The text with `***` for each known value, and for the beginning of one in a cut line."""
        if not self._longest_first:
            return text
        lines = self._known.sub(MASK, text).split("\n")
        return "\n".join(self._without_beginning(line) for line in lines)

    def _without_beginning(self, line: str) -> str:
        """Lines of logs are cut before they get here, perhaps in the middle of a value."""
        for part in self._longest_first:
            for length in range(min(len(part), _LONGEST_BEGINNING), SHORTEST_LOOKED_FOR - 1, -1):
                if line.endswith(part[:length]):
                    return line[:-length] + MASK
        return line


def _parts(value: str) -> Iterable[str]:
    """The value, its lines, and the credentials of its URLs, as far as they are long enough."""
    for part in (value, *credentials_in(value), *map(unquote, credentials_in(value))):
        if len(part.strip()) >= SHORTEST_LOOKED_FOR:
            yield part.strip()
    lines = value.splitlines()
    if len(lines) > 1:
        yield from (line.strip() for line in lines if len(line.strip()) >= _SHORTEST_LINE)
