"""Writes the tables of docs/doctor-rules.md from the rules: `python scripts/doctor_rules.py`."""

import re
from collections.abc import Iterator
from pathlib import Path

from broadgauge.doctor.log.loading import parsed, rule_files
from broadgauge.doctor.log.rule import Rule

PAGE = Path(__file__).parents[1] / "docs" / "doctor-rules.md"
MARK = "<!-- From here on by `python scripts/doctor_rules.py`. -->\n"
_OF_NCCL = re.compile(r"(?=[\d-])")


def page() -> str:
    """What is written by hand, then all shipped rules."""
    written = PAGE.read_text(encoding="utf-8").split(MARK)[0]
    return written + MARK + "\n" + "\n".join(_tables())


def _tables() -> Iterator[str]:
    files = {
        name: (text, [Rule.model_validate(entry) for entry in parsed(name, text)])
        for name, text in rule_files()
    }
    num_rules = sum(len(rules) for _, rules in files.values())
    num_wordings = sum(len(rule.lines) for _, rules in files.values() for rule in rules)
    yield f"## All {num_rules} shipped rules, {num_wordings} wordings\n"
    for name, (text, rules) in files.items():
        yield f"### {name}.yaml\n"
        yield f"{_comment(text)}\n"
        yield "| rule | severity | means | versions | source |"
        yield "| --- | --- | --- | --- | --- |"
        yield from map(_row, rules)
        yield ""


def _comment(text: str) -> str:
    """What the file's first lines say of it."""
    lines = text.splitlines()
    end = next(i for i, line in enumerate(lines) if not line.startswith("#"))
    return " ".join(line.lstrip("# ") for line in lines[:end])


def _row(rule: Rule) -> str:
    severities = dict.fromkeys(finding.severity.value for finding in rule.findings)
    cells = (f"`{rule.id}`", ", ".join(severities) or "fact", rule.means, _versions(rule))
    return "| " + " | ".join(map(_cell, (*cells, rule.source))) + " |"


def _versions(rule: Rule) -> str:
    """Each once; of NCCL where nobody else is named."""
    texts = (
        f"NCCL {wording.versions}" if _OF_NCCL.match(wording.versions) else wording.versions
        for wording in rule.lines
        if wording.versions and not _is_text_of_anyone(wording.level, wording.versions)
    )
    return ", ".join(dict.fromkeys(texts)) or "any"


def _is_text_of_anyone(level: str, versions: str) -> bool:
    """A text rule that names no versions has the default, which is NCCL's."""
    return level == "text" and bool(_OF_NCCL.match(versions))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
