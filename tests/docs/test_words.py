"""Holds the glossary: words that were dropped stand nowhere, and one name is one thing."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

PLACES = ("src", "docs", "examples", "README.md", "CONTRIBUTING.md")
TEXTS = {".py", ".md", ".yaml", ".css", ".c", ".h", ".html"}
SECTION = "## Words we do not use"
ONE_THING = {
    "Case": "of the experiment, and as Python shows it",
    "GpuFacts": "what an agent says, and what is stored of it",
    "LinkFacts": "as GpuFacts",
    "SlowPair": "what the experiment asks for, and what agents are told of it",
} | dict.fromkeys(
    (
        "AttentionTime",
        "Compute",
        "CopyTime",
        "GemmTime",
        "LaunchTime",
        "OptimizerTime",
        "StepTime",
        "Timing",
    ),
    "what the probe of a calibration writes without pydantic, and what reads its file",
)
"""Classes of one name that are one thing, on both sides of a border that dataclasses cross."""


def dropped(repository: Path) -> list[str]:
    section = (repository / "docs/glossary.md").read_text().split(SECTION)[1]
    rows = re.findall(r"^\| (.+?) \| .+ \|$", section, re.MULTILINE)
    return [
        term for row in rows if not row.startswith(("dropped", "---")) for term in row.split(", ")
    ]


def texts(repository: Path) -> Iterator[tuple[str, str]]:
    """Each file's name and text; of the glossary what stands before its list."""
    for place in PLACES:
        path = repository / place
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix in TEXTS and file.is_file():
                yield str(file.relative_to(repository)), file.read_text().split(SECTION)[0]


def found(terms: Iterable[str], text: str) -> list[str]:
    """Those that stand there as words of their own; parts of a name are words, too."""
    any_of = "|".join(r"\s+".join(map(re.escape, term.split())) for term in terms)
    return re.findall(rf"(?<![^\W_])(?:{any_of})(?![^\W_])", text, re.IGNORECASE)


@pytest.mark.parametrize(
    ("term", "text", "is_there"),
    [
        ("wish", "a wish", True),
        ("wish", "read_wish(options)", True),
        ("wish", "wishful", False),
        ("sent again", "was sent\n    Again.", True),
        ("anew", "can an ewe", False),
    ],
)
def test_a_term_is_found_as_a_whole_word(term: str, text: str, is_there: bool) -> None:
    assert bool(found([term], text)) is is_there


def test_dropped_words_stand_nowhere(repository: Path) -> None:
    terms = dropped(repository)
    assert len(terms) > 20
    assert {"foretold", "sent again", "moved a trial"} <= set(terms)
    seen = {name: there for name, text in texts(repository) if (there := found(terms, text))}
    assert seen == {}


def test_one_name_is_one_thing(repository: Path) -> None:
    """A class has a name of its own in all of the package."""
    package = repository / "src/broadgauge"
    places = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(), re.MULTILINE):
            places[name].append(str(path.relative_to(package)))
    shared = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert {name: paths for name, paths in shared.items() if name not in ONE_THING} == {}
    assert ONE_THING.keys() <= shared.keys(), "names that are one thing's no longer"
