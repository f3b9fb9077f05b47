"""Holds docs/articles.md: it names what is there, and says of each row where it ran."""

import re
import shlex
from pathlib import Path

import pytest

from broadgauge.catalog.catalog import shipped_catalog
from broadgauge.cli.main import make_parser
from broadgauge.running.experiments import example_names, load

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/articles.md").read_text(encoding="utf-8")
ARTICLES = (
    "Network performance in distributed training",
    "Accelerate model training on OpenShift AI",
    "The Impact of GPU Networking (Part 1)",
    "Network and Storage Benchmarks for LLM Training",
)
"""The fifth is a translation of the first."""
FOLDERS = ("docs", "examples", "references", "scripts", "src", "tests")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def rows() -> list[list[str]]:
    """Of the articles' tables, without their headings."""
    lines = PAGE.partition("## ")[2].splitlines()
    found = [cells(line) for line in lines if line.startswith("| ") and "| --- |" not in line]
    return [row for row in found if row[0] != "in the article"]


def legend() -> dict[str, str]:
    """The states, and what each means."""
    lines = PAGE.partition("| where it ran | means |")[2].partition("\n\n")[0].splitlines()
    pairs = [cells(line) for line in lines if line.startswith("| ") and "---" not in line]
    return {pair[0]: pair[1] for pair in pairs}


def issues() -> set[str]:
    """Short names of what later work brings; the legend has their whole titles."""
    return set(re.findall(r"\*(\w+)\*: \"", legend()["later"]))


def quoted() -> list[str]:
    return re.findall(r"`([^`]+)`", PAGE)


def commands() -> list[list[str]]:
    return [shlex.split(text) for text in quoted() if text.startswith("broadgauge ")]


def states(cell: str) -> list[str]:
    """What each part of the last column begins with: a state, or a piece of later work."""
    known = sorted(legend(), key=len, reverse=True)
    parts = cell.split("; ")
    found = [next((state for state in known if part.startswith(state)), part) for part in parts]
    return [part if state == "later" else state for state, part in zip(found, parts, strict=True)]


def test_every_row_has_three_cells_and_a_known_state() -> None:
    assert len(rows()) > 200
    allowed = {*legend()} - {"later"} | {f"later: {issue}" for issue in issues()}
    for row in rows():
        assert len(row) == 3, row
        assert row[0], row
        assert set(states(row[2])) <= allowed, row


def test_a_row_that_names_nothing_of_ours_is_theirs_or_later() -> None:
    for what, ours, where in rows():
        if ours == "–":
            assert set(states(where)) <= {"theirs", *(f"later: {each}" for each in issues())}, what


def test_all_articles_and_all_later_work_have_rows() -> None:
    heads = [line[3:] for line in PAGE.splitlines() if line.startswith("## ")]
    assert [head.startswith(title) for head, title in zip(heads, ARTICLES, strict=True)]
    text = " ".join(row[2] for row in rows())
    assert len(issues()) == 4
    assert {issue for issue in issues() if f"later: {issue}" in text} == issues()


def test_files_are_there() -> None:
    paths = [text for text in quoted() if text.split("/")[0] in FOLDERS and "/" in text]
    assert len(set(paths)) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []
    links = [link for link in re.findall(r"\]\(([^)#]+)", PAGE) if ":" not in link]
    assert [link for link in links if not (ROOT / "docs" / link).is_file()] == []


def test_commands_can_be_typed() -> None:
    assert len(commands()) > 30
    parser = make_parser()
    for words in commands():
        parser.parse_args(words[1:])  # exits where it can't be


def test_commands_name_examples_and_entries_that_are_there() -> None:
    catalog = shipped_catalog()
    for words in commands():
        if words[1] in ("run", "render", "sensitivity"):
            assert words[2] in example_names(), words
        if words[1:3] == ["catalog", "show"]:
            assert catalog.named(words[3]), words


@pytest.mark.parametrize("name", sorted(set(re.findall(r"ypothesis `([\w-]+)`", PAGE))))
def test_a_hypothesis_that_is_named_is_an_examples(name: str) -> None:
    examples = [load(each, []).experiment for each in example_names()]
    assert name in {each.name for example in examples for each in example.hypotheses}


def test_readme_leads_here() -> None:
    assert "(docs/articles.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
