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
    assert len(places) > 20
    package = repository / "src/broadgauge"
    assert [place for place in places if not (package / place).exists()] == []
