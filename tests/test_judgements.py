"""Proves tests/judgements.py: each figure stands in the table, and each measured test at least by
its outcome."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.judgements import Judgements

TABLE = """\
| test | figure | bound | spread | valid spans | verdict |
| --- | --- | --- | --- | --- | --- |
| test_right: one | 99.8 % | 98 to 101 % | 99.7 to 99.8 % | 3 | right |
| test_right: other | - | - | - | - | right |
| test_wrong | 95.0 % | - | - | - | too slow |
| test_without_a_figure | - | - | - | - | passed |
| test_that_is_not_reached | - | - | - | - | failed |
| test_left_out | - | - | - | - | not judged: no cores |
"""


class Terminal:
    """What pytest writes its summary to."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def section(self, title: str) -> None:
        self.lines.append(title)

    def write_line(self, line: str) -> None:
        self.lines.append(line)


def report(judgements: Judgements, test: str, outcome: str, when: str = "call") -> None:
    each: Any = SimpleNamespace(nodeid=test, outcome=outcome, when=when, keywords={"measured": 1})
    each.longrepr = ("test_some.py", 1, "Skipped: not judged: no cores")
    judgements.pytest_runtest_logreport(each)


def test_the_table_holds_every_judgement(tmp_path: Path) -> None:
    """Noted twice, as where a test is repeated, the last one counts."""
    judgements, terminal = Judgements(tmp_path / "table.md"), Terminal()
    shared = {"verdict": "right", "bound": "98 to 101 %", "spread": "99.7 to 99.8 %"}
    judgements.note("test_right", "one", figure="99.9 %", num_spans=2, **shared)
    judgements.note("test_right", "one", figure="99.8 %", num_spans=3, **shared)
    judgements.note("test_right", "other", verdict="right")
    judgements.note("test_wrong", verdict="too slow", figure="95.0 %")
    report(judgements, "test_right", "passed")
    report(judgements, "test_right", "passed", "teardown")
    report(judgements, "test_wrong", "failed")
    report(judgements, "test_without_a_figure", "passed")
    report(judgements, "test_that_is_not_reached", "failed", "setup")
    report(judgements, "test_left_out", "skipped", "setup")
    judgements.pytest_terminal_summary(terminal)  # type: ignore[arg-type]
    assert (tmp_path / "table.md").read_text() == TABLE
    assert terminal.lines[0] == "judgements"
    assert terminal.lines[4].split() == ["test_wrong", "95.0", "%", "-", "-", "-", "too", "slow"]


def test_facts_have_no_table() -> None:
    judgements, terminal = Judgements(), Terminal()
    fact: Any = SimpleNamespace(nodeid="test_fact", outcome="failed", when="call", keywords={})
    judgements.pytest_runtest_logreport(fact)
    judgements.pytest_terminal_summary(terminal)  # type: ignore[arg-type]
    assert terminal.lines == []
