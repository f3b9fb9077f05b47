"""Holds docs/troubleshooting.md: what it quotes is what the tool says, and its keys are there."""

import re
from pathlib import Path

from broadgauge.specs.kubernetes.settings import Kubernetes

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/troubleshooting.md").read_text()
_, _, _REST = PAGE.partition("## A run on Kubernetes")
SECTION = _REST.partition("\n## ")[0]
SPECIAL = re.compile(r'"\s*\n\s*f?"')
"""Between the parts of a text that is longer than a line."""
FILLED_IN = re.compile(r"\{[^{}]*\}")


def said_by_the_tool() -> str:
    """Every line of the source, long texts in one piece, what is filled in as `…`."""
    files = sorted((ROOT / "src/broadgauge").rglob("*.py"))
    return "\n".join(
        FILLED_IN.sub("…", SPECIAL.sub("", path.read_text(encoding="utf-8"))) for path in files
    )


def quotes() -> list[str]:
    """Those of the first column."""
    rows = [line for line in SECTION.splitlines() if line.startswith('| "')]
    return [quote for row in rows for quote in re.findall(r'"([^"]+)"', row.split(" | ")[0])]


def test_what_is_quoted_of_kubernetes_is_said() -> None:
    said = said_by_the_tool()
    assert len(quotes()) > 12
    wrong = {
        quote: missing
        for quote in quotes()
        if (missing := [part for part in pieces_of(quote) if part not in said])
    }
    assert wrong == {}


def pieces_of(quote: str) -> list[str]:
    """Between what is filled in: names, numbers, and the transport of the example."""
    return [part for part in re.split("…|RoCE", quote) if len(part.strip(" ()")) > 3]


def test_its_keys_are_those_of_an_experiment() -> None:
    named = set(re.findall(r"`kubernetes\.([a-z_]+)", SECTION))
    assert len(named) > 5
    assert named <= set(Kubernetes.model_fields)
