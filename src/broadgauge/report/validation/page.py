"""What does docs/validation.md say? All of it follows from the tables and the predictor.

`broadgauge validate FILE.csv --markdown` prints it; a test holds the file current.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from broadgauge.predict.articles.scores import ArticleScores
from broadgauge.predict.scoring.peers import PeerSheet, against_rule, against_times
from broadgauge.predict.scoring.scoring import Scores
from broadgauge.predict.scoring.validation import ScoreSheet, Validation, score_sheet, validate
from broadgauge.predict.tables.table import MeasuredTable, columns_in_words
from broadgauge.report.validation.articles import article_sections
from broadgauge.report.validation.goals import CalibratedSheets, goal_rows
from broadgauge.report.validation.terminal import score_cells
from broadgauge.report.validation.words import (
    DEFINITIONS,
    HARD_ROWS,
    INTRODUCTION,
    MOVED,
    PEERS,
)

SCORE_HEAD = ("", "n", "MAPE", "median", "P90", "worst", "bias", "in 80 %", "order", "scaling")
VTRAIN_POINTS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Sections by title; a section doesn't depend on another."""

    sections: Mapping[str, str]

    @property
    def markdown(self) -> str:
        """The whole file."""
        parts = [
            f"## {title}\n\n{text}" if title != TITLE else f"# {title}\n\n{text}"
            for title, text in self.sections.items()
        ]
        return "\n".join(parts)


TITLE = "How good are the predictions?"


def uncalibrated_sections(
    plain: Validation, times: Mapping[str, Mapping[str, float]], found: ArticleScores
) -> dict[str, str]:
    """What needs no calibration of table rows: the quick part."""
    return {
        "Nothing calibrated": _table_section(plain),
        "Against others on the same rows": _peer_section(plain, times),
        **article_sections(found),
        "The table's format": _format_section(),
    }


def calibrated_sheets(table: MeasuredTable, plain: Validation) -> CalibratedSheets:
    """The table in all ways of the page. `plain`: nothing calibrated."""
    return CalibratedSheets(
        plain=plain,
        few=validate(table, calibrate="system-network"),
        six=validate(table, calibrate="system", num_points=VTRAIN_POINTS),
    )


def validation_page(
    table: MeasuredTable,
    sheets: CalibratedSheets,
    times: Mapping[str, Mapping[str, float]],
    found: ArticleScores,
) -> Page:
    """Everything, for one table. `times` are peers' step times by row id."""
    quick = uncalibrated_sections(sheets.plain, times, found)
    sections = {
        TITLE: INTRODUCTION.format(rows=len(table.rows), name=table.name),
        "Goals": markdown_table(("", "goal", "here", ""), goal_rows(sheets)),
        "Where it is hard": HARD_ROWS,
        "What changed these figures": MOVED,
        "How rows are scored": DEFINITIONS,
        "Nothing calibrated": quick.pop("Nothing calibrated"),
        "At most three rows per system and network calibrate it": _table_section(sheets.few),
        "At most six rows per system calibrate it": _table_section(sheets.six),
        **quick,
    }
    return Page(sections=sections)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def score_row(name: str, scores: Scores) -> tuple[str, ...]:
    """One line of scores, in percent but for the last, an efficiency."""
    scaling = scores.scaling_efficiency_error
    return (*score_cells(name, scores), "–" if scaling is None else f"{scaling:.3f}")


def _table_section(found: Validation) -> str:
    sheet, unflagged = score_sheet(found.scored), score_sheet(found.unflagged)
    rows = [
        score_row("**all rows**", sheet.overall),
        score_row("**mean over sources**", sheet.mean_over_sources),
        score_row("without flagged rows", unflagged.overall),
        score_row("their mean over sources", unflagged.mean_over_sources),
        *(score_row(name, each) for name, each in sheet.by_source.items()),
    ]
    return markdown_table(SCORE_HEAD, rows) + "".join(_unread_lines(found))


def _unread_lines(found: Validation) -> Iterator[str]:
    if found.calibration:
        yield f"\n{len(found.calibration)} rows calibrated and are not scored.\n"
    if found.unread:
        yield f"\n{len(found.unread)} rows are not scored:\n\n"
        for each in found.unread:
            yield f"- line {each.line} ({each.id}): {each.reason}\n"
    else:
        rows = "Every other row" if found.calibration else "Every row"
        yield f"\n{rows} of the table is scored.\n"


def _peer_section(plain: Validation, times: Mapping[str, Mapping[str, float]]) -> str:
    peers = [against_rule(plain.scored)]
    peers += [against_times(name, plain.scored, each) for name, each in times.items()]
    rows = [row for peer in peers for row in _peer_rows(peer)]
    return f"{PEERS}\n{markdown_table(SCORE_HEAD, rows)}"


def _peer_rows(peer: PeerSheet) -> Iterator[tuple[str, ...]]:
    def pair(name: str, sheet: ScoreSheet) -> Iterator[tuple[str, ...]]:
        yield score_row(name, sheet.overall)
        yield score_row(f"{name}, mean over sources", sheet.mean_over_sources)

    yield from pair(peer.name, peer.peer)
    yield from pair("Broadgauge on these rows", peer.ours)


def _format_section() -> str:
    rows = [(f"`{name}`", words) for name, words in columns_in_words().items()]
    return (
        "One row is one published step time. Columns may come in any order, others may stand "
        "beside them, and optional ones may be missing.\n\n"
        + markdown_table(("column", "what it holds"), rows)
    )
