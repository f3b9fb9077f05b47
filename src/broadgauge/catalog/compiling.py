"""How are the copies in `compiled/` made? `python -m broadgauge.catalog.compiling`."""

import json
from pathlib import Path

from broadgauge.catalog.loading import (
    KINDS,
    OF_KUBERNETES,
    OF_THE_ARTICLES,
    OF_THE_DOCTOR,
    OF_THE_PREDICTOR,
    digest,
    shipped_text,
)
from broadgauge.specs.text.yaml_source import parse_yaml


def compiled_text(kind: str) -> str:
    """The copy of one kind's file, one entry a line."""
    text = shipped_text(kind)
    entries = parse_yaml(text, f"{kind}.yaml").data[kind]
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    return f'{{"sha256": "{digest(text)}", "entries": [\n{lines}\n]}}\n'


def write_copies(folder: Path) -> None:
    """One file for each kind."""
    folder.mkdir(exist_ok=True)
    ours = (*OF_THE_PREDICTOR, *OF_THE_DOCTOR, *OF_KUBERNETES, *OF_THE_ARTICLES)
    for kind in (*KINDS, *ours):
        (folder / f"{kind}.json").write_text(compiled_text(kind), encoding="utf-8")


if __name__ == "__main__":
    write_copies(Path(__file__).parent / "compiled")
