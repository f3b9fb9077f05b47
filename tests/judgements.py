"""What did the judgements of a session find? A table at its end: figure, bound, spread, spans.

A test that judges asks the fixture `judgement` to note each of its figures, right or not; the other
`measured` tests are listed with their outcome. `--judgements-to FILE` writes the same as Markdown,
for docs/measurements.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

HEADER = ("test", "figure", "bound", "spread", "valid spans", "verdict")


class WrongVerdict(Exception):  # noqa: N818  says what is so
    """Judged in spans in which the machine was ours: nothing excuses it, so it is no assertion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One figure, or the outcome of a test that has none."""

    test: str
    verdict: str
    figure: str = "-"
    bound: str = "-"
    spread: str = "-"
    num_spans: int | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        spans = "-" if self.num_spans is None else str(self.num_spans)
        return (self.test, self.figure, self.bound, self.spread, spans, self.verdict)


Note = Callable[..., None]


class Judgements:
    """The plugin."""

    def __init__(self, markdown: Path | None = None) -> None:
        self._markdown = markdown
        self._judged: dict[str, dict[str, Judged]] = {}
        self._outcomes: dict[str, str] = {}

    @pytest.fixture
    def judgement(self, request: pytest.FixtureRequest) -> Note:
        """Note a figure of this test: `judgement("0.1 Gbit/s", verdict="right", figure=…)`. Noted
        again under the same name, as where a test is repeated, the last one counts."""
        return partial(self.note, request.node.nodeid)

    def note(self, test: str, what: str = "", **figures: Any) -> None:
        """As the fixture does."""
        name = f"{test}: {what}" if what else test
        self._judged.setdefault(test, {})[what] = Judged(test=name, **figures)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if "measured" not in report.keywords:
            return
        if report.when == "call" or report.outcome != "passed":
            self._outcomes[report.nodeid] = outcome_of(report)

    def lines(self) -> list[Judged]:
        """In the order in which they were judged."""
        found = []
        for name, outcome in self._outcomes.items():
            noted = self._judged.get(name)
            found += noted.values() if noted else [Judged(test=name, verdict=outcome)]
        return found

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        lines = self.lines()
        if not lines:
            return
        terminalreporter.section("judgements")
        for line in aligned([HEADER, *(each.cells for each in lines)]):
            terminalreporter.write_line(line)
        if self._markdown is not None:
            self._markdown.write_text("\n".join(markdown(lines)) + "\n")


def outcome_of(report: pytest.TestReport) -> str:
    """In a word; where it was skipped, the reason."""
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return report.outcome


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def markdown(judged: Sequence[Judged]) -> list[str]:
    """The same as a table of a page."""
    rows = [HEADER, ("---",) * len(HEADER), *(each.cells for each in judged)]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
