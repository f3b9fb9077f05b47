"""How do rules come out of their YAML, and fast? As the catalog's entries: from copies in JSON.

Each shipped file has a copy in `doctor/rules/compiled/` with the digest of the text that it was
made of; where it is missing or of another text, the YAML itself is parsed. `make compiled` makes
them.
"""

import functools
import json
import stat
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from broadgauge.catalog.loading import digest
from broadgauge.doctor.log.circumstances import CIRCUMSTANCES
from broadgauge.doctor.log.rule import Rule
from broadgauge.specs.errors import InputError

COMPILED = "compiled"

_MOST_BYTES = 4 * 2**20
"""Of a user's file of rules."""


def rules_folder() -> Traversable:
    """Where the shipped files are."""
    return resources.files("broadgauge.doctor.rules")


def rule_files() -> Iterator[tuple[str, str]]:
    """Name without ending and text of each shipped file, in the order of their names."""
    for file in sorted(rules_folder().iterdir(), key=lambda each: each.name):
        if file.name.endswith(".yaml"):
            yield file.name.removesuffix(".yaml"), file.read_text(encoding="utf-8")


def parsed(name: str, text: str) -> list[dict[str, Any]]:
    """The plain rules of one file."""
    from broadgauge.specs.text.yaml_source import parse_yaml  # a fifth of a second, rarely needed

    return list(parse_yaml(text, f"{name}.yaml").data["rules"])


@functools.cache
def shipped_rules() -> tuple[Rule, ...]:
    """All that are known, from the copies where they are of these files."""
    entries = [entry for name, text in rule_files() for entry in _plain(name, text)]
    return tuple(Rule.model_validate(entry) for entry in entries)


def _plain(name: str, text: str) -> list[dict[str, Any]]:
    copy = rules_folder().joinpath(COMPILED, f"{name}.json")
    if copy.is_file():
        data = json.loads(copy.read_text(encoding="utf-8"))
        if data["sha256"] == digest(text):
            return list(data["rules"])
    return parsed(name, text)


def read_rules(path: Path) -> tuple[Rule, ...]:
    """A user's own file, of the same form. Raises InputError with place and hint."""
    try:
        if not stat.S_ISREG(path.stat().st_mode) or path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path} is no file of rules", hint="a YAML file of at most 4 MiB")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} can't be read: {error}", hint="docs/doctor-rules.md") from error
    from broadgauge.specs.text.yaml_source import parse_yaml

    data = parse_yaml(text, str(path)).data
    entries = data.get("rules") if isinstance(data, dict) else None
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{path} has no list `rules`", hint="docs/doctor-rules.md shows a file")
    rules = [_rule(entry, f"{path}: rules[{number}]") for number, entry in enumerate(entries)]
    asked = {name for rule in rules for text in rule.findings for name in text.asks}
    unknown = next(iter(sorted(asked - set(CIRCUMSTANCES))), None)
    if unknown is not None:
        raise InputError(
            f"{path}: nobody can be asked `{unknown}`", hint=f"one of {', '.join(CIRCUMSTANCES)}"
        )
    ids = [rule.id for rule in rules]
    doubled = next((name for name in ids if ids.count(name) > 1), None)
    if doubled is not None:
        raise InputError(f"{path}: two rules are named `{doubled}`", hint="an id is of one rule")
    return tuple(rules)


def _rule(entry: Any, where: str) -> Rule:
    try:
        return Rule.model_validate(entry)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise InputError(
            f"{where}{'.' if place else ''}{place}: {problem['msg']}",
            hint="docs/doctor-rules.md shows a file",
        ) from error
