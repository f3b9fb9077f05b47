"""How are the copies in `doctor/rules/compiled/` made? `python -m broadgauge.doctor.log.compiling`.

One for each file, one rule a line: who edits one file changes one copy.
"""

import json
from pathlib import Path

from broadgauge.catalog.loading import digest
from broadgauge.doctor.log.loading import COMPILED, parsed, rule_files, rules_folder


def compiled_text(name: str, text: str) -> str:
    """The copy of one file, with the digest of the text that it was made of."""
    lines = ",\n".join(json.dumps(rule, ensure_ascii=False) for rule in parsed(name, text))
    return f'{{"sha256": "{digest(text)}", "rules": [\n{lines}\n]}}\n'


def write_copies(folder: Path) -> None:
    """Of all files; copies of files that are gone go, too."""
    folder.mkdir(exist_ok=True)
    texts = {f"{name}.json": compiled_text(name, text) for name, text in rule_files()}
    for path in folder.glob("*.json"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_copies(Path(str(rules_folder().joinpath(COMPILED))))
