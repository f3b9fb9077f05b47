"""Proves the tables of docs/architecture.md and CONTRIBUTING.md: they name what is there."""

import re
from pathlib import Path


def test_every_room_has_its_row(repository: Path) -> None:
    text = (repository / "docs/architecture.md").read_text()
    rooms = text.split("| room | what it is |")[1].split("\n\n")[0]
    named = re.findall(r"^\| `(\w+)/` \|", rooms, re.MULTILINE)
    package = repository / "src/broadgauge"
    there = {path.parent.name for path in package.glob("*/__init__.py")}
    assert sorted(named) == sorted(there)


def test_every_place_to_go_to_is_there(repository: Path) -> None:
    text = (repository / "CONTRIBUTING.md").read_text()
    rows = text.split("| to change … | go to |")[1].split("\n\n")[0]
    places = [place for place in re.findall(r"`([\w/.]+)`", rows) if "/" in place]
    assert len(places) > 40
    roots = (repository / "src/broadgauge", repository)
    assert [p for p in places if not any((root / p).exists() for root in roots)] == []


def test_every_path_that_contributors_are_told_is_there(repository: Path) -> None:
    """Outside of backticks, too; of a decision its number will do."""
    text = (repository / "CONTRIBUTING.md").read_text()
    folders = "docs|examples|scripts|src|tests"
    paths = re.findall(rf"(?<![\w/])((?:{folders})/[\w./-]*[\w/])", text)
    assert len(paths) > 20
    assert [path for path in paths if not [*repository.glob(f"{path}*")]] == []


def test_what_contributors_look_for_has_a_row(repository: Path) -> None:
    """Places where newcomers looked in vain."""
    text = (repository / "CONTRIBUTING.md").read_text()
    table = text.split("| to change … | go to |\n| --- | --- |\n")[1].split("\n\n")[0]
    rows = [row.removeprefix("| ") for row in table.splitlines()]
    wanted = {
        "exit code": "specs/errors.py",
        "found by its name": "results/run_path.py",
        "column of an export": "report/export/column_meanings.py",
        "price": "catalog/prices.yaml",
        "Python sees": "api/",
        "streams": "agent/found_link.py",
        "hangs": "platforms/hang.py",
        "how long a launch": "specs/time_limits.py",
        "busbw": "catalog/busbw.py",
    }
    for words, place in wanted.items():
        (row,) = [row for row in rows if words in row[: row.index(" | ")]] or [""]
        assert f"`{place}`" in row, words


def test_every_folder_of_specs_and_report_has_its_row(repository: Path) -> None:
    text = (repository / "docs/architecture.md").read_text()
    for room in ("specs", "report"):
        rows = text.split(f"| in `{room}/` | what is asked there |")[1].split("\n\n")[0]
        first = [row.split(" | ")[0] for row in rows.splitlines() if row.startswith("| `")]
        named = {name for cell in first for name in re.findall(r"`(\w+)/`", cell)}
        package = repository / "src/broadgauge" / room
        assert named == {path.parent.name for path in package.glob("*/__init__.py")}
