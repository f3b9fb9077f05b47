"""Holds docs/articles.md: it is what its data say, names what is there, and says where it ran."""

import re
import shlex
from pathlib import Path

import pytest

from broadgauge.catalog.article_claims import article_claims
from broadgauge.catalog.article_rows import (
    ARTICLES,
    NOTHING,
    PageRow,
    rows_of,
    shared_parts,
)
from broadgauge.catalog.catalog import shipped_catalog
from broadgauge.cli.main import make_parser
from broadgauge.report.articles.page import NOT_YET, STATES, SUBJECTS, article_page
from broadgauge.running.experiments import example_names, load

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "examples", "references", "scripts", "src", "tests")
KINDS = {"rule", "fact", "claim", "table", "figure", "script", "manifest", "recommendation"}
LEAST_ROWS = {"000": 110, "001": 65, "003": 35, "004": 40}
"""So that no section is lost when the data are edited."""


@pytest.fixture(scope="module")
def page() -> str:
    return (ROOT / "docs/articles.md").read_text(encoding="utf-8")


def rows() -> list[PageRow]:
    return [row for each in ARTICLES for section in rows_of(each.id) for row in section.rows]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def commands(text: str) -> list[list[str]]:
    return [shlex.split(each) for each in quoted(text) if each.startswith("broadgauge ")]


def test_the_page_is_current(page: str) -> None:
    assert page == article_page(), "python scripts/article_page.py"


def test_every_article_has_its_rows() -> None:
    counts = {each.id: sum(len(s.rows) for s in rows_of(each.id)) for each in ARTICLES}
    assert {name: count for name, count in counts.items() if count < LEAST_ROWS[name]} == {}
    assert {row.kind for row in rows()} >= KINDS


def places() -> list[str]:
    """All parts of the last column."""
    return [place for row in rows() for place in row.ours.ran.split("; ")]


@pytest.mark.parametrize("place", sorted(set(places())))
def test_every_row_says_where_it_ran(place: str) -> None:
    state, _, subject = place.partition(": ")
    if state == NOT_YET:
        assert subject in SUBJECTS
    else:
        assert [each for each in STATES if re.match(rf"{each}($|[ ,:])", place)]


def test_a_row_that_names_nothing_of_ours_is_theirs_or_not_yet_there() -> None:
    for row in rows():
        if row.ours.here == NOTHING:
            assert row.ours.ran.startswith(("theirs", "not yet: ")), row.what


def test_the_legend_has_what_is_not_there_yet_and_nothing_else(page: str) -> None:
    told = {place.partition(": ")[2] for row in rows() for place in row.ours.ran.split("; ")
            if place.startswith(NOT_YET)}  # fmt: skip
    (line,) = [line for line in page.splitlines() if line.startswith(f"| {NOT_YET} |")]
    assert {subject for subject in SUBJECTS if f"*{subject}*: " in line} == told


def test_shared_parts_are_those_that_rows_name() -> None:
    assert {row.part for row in rows()} - {None} == shared_parts().keys()


def test_claims_of_rows_are_known() -> None:
    known = {claim.id for claim in article_claims()}
    assert len(known) == len(article_claims())
    assert {row.claim for row in rows()} - {None} <= known


def test_files_are_there(page: str) -> None:
    paths = [text for text in quoted(page) if text.split("/")[0] in FOLDERS and "/" in text]
    assert len(set(paths)) > 30
    assert [path for path in paths if not [*ROOT.glob(path)]] == []


def test_commands_can_be_typed(page: str) -> None:
    assert len(commands(page)) > 30
    parser = make_parser()
    for words in commands(page):
        parser.parse_args(words[1:])  # exits where it can't be


def test_commands_name_examples_and_entries_that_are_there(page: str) -> None:
    catalog = shipped_catalog()
    for words in commands(page):
        if words[1] in ("run", "render", "sensitivity"):
            assert words[2] in example_names(), words
        if words[1:3] == ["catalog", "show"]:
            assert catalog.named(words[3]), words


def test_a_hypothesis_that_is_named_is_an_examples(page: str) -> None:
    named = {
        name
        for words in re.findall(r"ypothes[ie]s (`[\w-]+`(?: and `[\w-]+`)?)", page)
        for name in quoted(words)
    }
    examples = [load(each, []).experiment for each in example_names()]
    assert len(named) > 10
    assert named <= {each.name for example in examples for each in example.hypotheses}


def test_readme_leads_here() -> None:
    assert "(docs/articles.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
