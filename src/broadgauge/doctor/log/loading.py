"""How do rules come out of their YAML, and fast? As the catalog's entries: from a copy in JSON."""

import functools
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from broadgauge.catalog.loading import digest
from broadgauge.doctor.log.rule import Rule
from broadgauge.specs.errors import InputError
from broadgauge.specs.yaml_source import parse_yaml

_COMPILED = "compiled.json"


def rule_files() -> Iterator[tuple[str, str]]:
    """Name and text of each shipped file, in the order of their names."""
    folder = resources.files("broadgauge.doctor.rules")
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if file.name.endswith(".yaml"):
            yield file.name, file.read_text(encoding="utf-8")


def parsed_files() -> dict[str, Any]:
    """What the copy holds: the digest of all files, and their rules."""
    texts = list(rule_files())
    rules = [rule for name, text in texts for rule in parse_yaml(text, name).data["rules"]]
    return {"sha256": digest("\n".join(text for _, text in texts)), "rules": rules}


@functools.cache
def shipped_rules() -> tuple[Rule, ...]:
    """All that are known, from the copy where it is of these files."""
    import json

    compiled = resources.files("broadgauge.doctor.rules").joinpath(_COMPILED)
    data: dict[str, Any] | None = None
    if compiled.is_file():
        copy = json.loads(compiled.read_text(encoding="utf-8"))
        if copy["sha256"] == digest("\n".join(text for _, text in rule_files())):
            data = copy
    entries = (data or parsed_files())["rules"]
    return tuple(Rule.model_validate(entry) for entry in entries)


def read_rules(path: Path) -> tuple[Rule, ...]:
    """A user's own file, of the same form. Raises InputError with place and hint."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} can't be read: {error}", hint="docs/doctor-rules.md") from error
    data = parse_yaml(text, str(path)).data
    entries = data.get("rules") if isinstance(data, dict) else None
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{path} has no list `rules`", hint="docs/doctor-rules.md shows a file")
    return tuple(_rule(entry, f"{path}: rules[{number}]") for number, entry in enumerate(entries))


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


if __name__ == "__main__":
    import json

    target = Path(__file__).parents[1] / "rules" / _COMPILED
    target.write_text(
        json.dumps(parsed_files(), ensure_ascii=False, indent=0) + "\n", encoding="utf-8"
    )
