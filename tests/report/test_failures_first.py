"""Does a reader see first that nothing succeeded, before any verdict?"""

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from broadgauge.analysis.analyse import analysed
from broadgauge.report.page.top import headline
from broadgauge.report.rows.closing import table_rows
from broadgauge.report.terminal.printing import print_closing_table
from broadgauge.report.words.failures import reasons
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.records.record import ErrorKind, Record, Status, TrialError


def failing(
    run: RunSummary, fails: Callable[[Record], bool], message: str = "no such file: train.py"
) -> RunSummary:
    """The same run, where these trials failed."""
    error = TrialError(kind=ErrorKind.NOT_STARTED, message=message)
    bad = {"status": Status.FAILED, "metrics": {}, "collectives": (), "error": error}
    records = [r.model_copy(update=bad) if fails(r) else r for r in run.records]
    return summarise_run(
        folder=run.folder,
        plan=run.plan,
        records=records,
        experiment_yaml=run.experiment_yaml,
        environments=run.environments,
    )


def first_line(run: RunSummary) -> str:
    console = Console(file=io.StringIO(), width=160)
    print_closing_table(analysed(run), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()[0]


def on_page(run: RunSummary) -> str:
    return headline(table_rows(run, analysed(run).analysis))


def test_that_every_trial_failed_is_all_that_is_said(run: RunSummary) -> None:
    failed = failing(run, lambda _: True)
    said = "Every trial failed: no such file: train.py."
    assert on_page(failed) == f'<p class="headline">{said}</p>'
    assert first_line(failed) == said


@pytest.mark.parametrize(
    ("printed", "told"),
    [("\nhello\nbye", "its last line: bye"), ("", "it printed no line")],
)
def test_a_reason_announces_no_lines_that_it_leaves_out(
    run: RunSummary, printed: str, told: str
) -> None:
    failed = failing(run, lambda _: True, f"no step_time_s; its last lines:{printed}")
    assert reasons(failed.cases) == (f"no step_time_s; {told}",)
    assert first_line(failed) == f"Every trial failed: no step_time_s; {told}."


def test_where_every_trial_failed_stands_before_the_verdicts(run: RunSummary) -> None:
    some = failing(run, lambda record: record.network == "vnic-like")
    text = on_page(some)
    why = "Every trial failed on vnic-like: no such file: train.py; network-bound on"
    assert text.startswith(f'<p class="headline">{why}')
    assert text.count("vnic-like") == 1
    assert "failed:" not in first_line(some)


@pytest.mark.parametrize("width", [60, 120, 300])
def test_how_many_failed_is_told_once_beside_a_verdict(run: RunSummary, width: int) -> None:
    failed = failing(run, lambda record: record.network == "vnic-like")
    console = Console(file=io.StringIO(), width=width)
    print_closing_table(analysed(failed), console)
    assert isinstance(console.file, io.StringIO)
    text = " ".join(console.file.getvalue().split())
    assert text.count("all 5 trials failed") == 1
    assert "(5 failed)" not in text


def test_of_a_run_that_went_well_no_failure_is_told(run: RunSummary) -> None:
    assert "failed" not in on_page(run)
    assert "failed" not in first_line(run).lower()
