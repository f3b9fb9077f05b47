"""Links between our own pages lead to files and headings that are there."""

import re
from collections.abc import Iterator
from pathlib import Path

LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)")
"""In Markdown, without a scheme: a file, a heading, or both."""


def pages(repository: Path) -> list[Path]:
    return [*repository.glob("*.md"), *(repository / "docs").rglob("*.md")]


def headings(page: Path) -> set[str]:
    """What `page.md#…` may name, as GitHub makes it of headings."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken_links(page: Path) -> Iterator[str]:
    for name, heading in LINK.findall(page.read_text()):
        target = page.parent / name if name else page
        if not target.exists() or (heading and heading not in headings(target)):
            yield f"{page.name}: {name}#{heading}"


def test_links_lead_somewhere(repository: Path) -> None:
    assert sum(len(LINK.findall(page.read_text())) for page in pages(repository)) > 50
    assert [broken for page in pages(repository) for broken in broken_links(page)] == []
