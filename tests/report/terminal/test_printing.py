"""Does the terminal show every figure whole, at any width, with and without colours?"""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from broadgauge.advise.verdicts.verdict import Bound
from broadgauge.analysis.analyse import analysed
from broadgauge.report.rows.closing import table_rows
from broadgauge.report.terminal.closing import STYLES
from broadgauge.report.terminal.printing import (
    print_closing_table,
    print_networks_compared,
    print_run,
    print_runs_compared,
)
from broadgauge.results.comparing.compare_cases import against_reference, compare_runs
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_stored
from broadgauge.specs.estimate import Estimate

FIGURES = ("23.2 MB/s", "97 %", "of line", "723 ms", "2,543", "560 ms", "77 %", "of step", "80.7 %")


def printed(printer, argument: object, width: int, *, is_terminal: bool = False) -> str:
    stream = io.StringIO()
    printer(argument, Console(file=stream, width=width, force_terminal=is_terminal))
    return stream.getvalue()


@pytest.mark.parametrize("width", [40, 60, 79, 80, 100, 160, 300])
def test_no_figure_is_cut_and_no_line_too_long(run: RunSummary, width: int) -> None:
    text = printed(print_closing_table, analysed(run), width)
    for figure in FIGURES:
        assert figure in (text if width >= 60 else " ".join(text.split()))
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("width", range(70, 100))
def test_no_cell_is_cut_when_figures_are_wide(run: RunSummary, width: int) -> None:
    """Intervals of a noisy machine are wider than those of the sample."""
    cases = []
    for summary in run.cases:
        scaling = summary.scaling
        if scaling is not None:
            wide = replace(scaling.efficiency, low=0.033, high=0.087)
            scaling = replace(scaling, efficiency=wide)
        cases.append(replace(summary, scaling=scaling))
    text = printed(print_closing_table, analysed(replace(run, cases=tuple(cases))), width)
    for figure in (*FIGURES, "network cost", "3.3–8.7 %"):
        assert figure in text


def test_eighty_columns_hold_the_table(run: RunSummary) -> None:
    first = printed(print_closing_table, analysed(run), 80).splitlines()[0]
    assert first.split()[:3] == ["network", "line", "rate"]
    assert "network cost" in first


def test_sixty_columns_are_stacked(run: RunSummary) -> None:
    text = printed(print_closing_table, analysed(run), 60)
    assert "  step time     723 ms  ± 0.38 %" in text.splitlines()


def test_scaling_is_of_one_rank(run: RunSummary) -> None:
    lines = printed(print_closing_table, analysed(run), 60).splitlines()
    scaling = [line for line in lines if line.startswith("  scaling")]
    assert len(scaling) == 3
    assert all(line.endswith("per rank, of 1x1") for line in scaling)


def test_verdicts_and_failures_are_said(run: RunSummary) -> None:
    text = " ".join(printed(print_closing_table, analysed(run), 80).split())
    assert "network-bound: 77 % of each step waits for the network" in text
    assert "the link runs at 97 % of its 200 Mbit/s" in text
    assert "two nodes are slower than one" in text
    assert "vnic-like 2x1 (1 failed)" in text
    assert "1 of 35 trials failed; no figure counts them" in text


def test_without_a_terminal_there_are_no_escapes(run: RunSummary) -> None:
    assert "\x1b" not in printed(print_run, analysed(run), 80)
    assert "\x1b" in printed(print_run, analysed(run), 80, is_terminal=True)


def test_show_says_everything(run: RunSummary) -> None:
    text = printed(print_run, analysed(run), 100)
    for words in (
        "network share 77.4 %, 95 % interval",
        "rank 1 ended with exit code 1 (crashed in phase measure, rank 1)",
        "RuntimeError: Connection closed by peer",
        "all_reduce float32",
        "the peak of a CPU is not known",
        "reduce_scatter sends more than the ring algorithm would",
        "torch: 2.11.0+cpu",
        "one stream unshaped, at least",
    ):
        assert words in text


def test_markup_in_names_and_logs_is_text(samples, tmp_path) -> None:
    made = samples.sample_run(tmp_path)
    assert samples.HOSTILE in printed(print_run, analysed(made), 200)


def test_comparison_says_what_it_cannot_tell(run: RunSummary, samples, tmp_path) -> None:
    other = samples.sample_run(tmp_path, samples.Options(launches=2, has_failure=False))
    text = " ".join(printed(print_runs_compared, compare_runs(run, other), 80).split())
    assert "can't tell whether step time differs" in text
    assert "not interleaved" in text


def test_networks_of_one_run_are_compared(run: RunSummary) -> None:
    text = " ".join(printed(print_networks_compared, against_reference(run), 80).split())
    assert "step time is 3.59 times as high in B, worse" in text
    assert "Nothing to compare" in printed(print_networks_compared, (), 80)


def test_every_bound_has_its_colours(repository: Path) -> None:
    """A new one would stand uncoloured between the others."""
    style = (repository / "src/broadgauge/report/assets/report.css").read_text()
    for bound in Bound:
        assert bound in STYLES
        assert f".badge.{bound.value}" in style


@pytest.mark.parametrize(("launches", "words"), [(1, "1 launch each."), (2, "2 launches each.")])
@pytest.mark.parametrize("width", [60, 100])
def test_launches_without_intervals_are_said_once(
    run: RunSummary, launches: int, words: str, width: int
) -> None:
    cases = tuple(
        replace(
            summary,
            estimates={
                name: replace(estimate, low=None, high=None, launches=launches)
                for name, estimate in summary.estimates.items()
            },
            scaling=None,
        )
        for summary in run.cases
    )
    text = printed(print_closing_table, analysed(replace(run, cases=cases)), width)
    assert text.count(f"Figures without an interval: {words}") == 1
    assert "launch)" not in text
    assert "launches)" not in text


def test_nothing_is_said_of_launches_where_figures_have_intervals(run: RunSummary) -> None:
    assert "without an interval" not in printed(print_closing_table, analysed(run), 100)


def ten_times(estimate: Estimate) -> Estimate:
    return replace(estimate, value=10 * estimate.value, low=None, high=None)


@pytest.mark.parametrize("width", [60, 120])
def test_a_column_of_figures_has_one_unit(run: RunSummary, width: int) -> None:
    busbw = "busbw_gbyte_per_s"
    cases = tuple(
        replace(case, estimates={**case.estimates, busbw: ten_times(case.estimates[busbw])})
        if case.case.network_name == "reference" and busbw in case.estimates
        else case
        for case in run.cases
    )
    text = printed(print_closing_table, analysed(replace(run, cases=cases)), width)
    for figure in ("23.2 MB/s", "115 MB/s", "3,470 MB/s"):
        assert figure in text


@pytest.mark.parametrize("width", [60, 120])
def test_sizes_of_a_collective_are_told_in_one_unit(run: RunSummary, width: int) -> None:
    table = printed(print_run, analysed(run), width).split("all_reduce float32")[1]
    table = table.split("all_gather")[0]
    for units in (("µs", "ms"), ("MB/s", "GB/s"), ("kbit/s", "Mbit/s", "Gbit/s")):
        assert sum(f" {unit}" in table for unit in units) == 1, units


@pytest.mark.parametrize("width", [120, 160, 300])
def test_a_row_of_the_table_is_two_lines(run: RunSummary, width: int) -> None:
    lines = printed(print_closing_table, analysed(run), width).splitlines()
    body = [line.strip() for line in lines[lines.index(next(filter(is_rule, lines))) + 1 :]]
    body = body[: body.index("")] if "" in body else body[:8]
    assert [line.split("  ")[0] for line in body[::2]] == [
        *("one node", "pod-like", "vnic-like", "reference"),
    ]
    assert len(body) == 8
    titles = " ".join(lines[:3])
    for title in ("of line", "of step", "scaling per", "rank of 1x1"):
        assert title in titles
    assert " ".join(lines).count("(1 failed)") == 1


def test_a_row_is_two_lines_where_trials_failed_and_columns_are_many(repository: Path) -> None:
    golden = analysed(summarise_stored(repository / "tests/results/golden/schema-1"))
    table, _, below = printed(print_closing_table, golden, 120).partition("\n\n")
    lines = table.splitlines()
    body = lines[lines.index(next(filter(is_rule, lines))) + 1 :]
    rows = table_rows(golden.run, golden.analysis)
    assert [line.split("  ")[0] for line in body[::2]] == [row.network for row in rows]
    assert len(body) == 2 * len(rows)
    assert below.count("(1 failed)") == 1


def is_rule(line: str) -> bool:
    return set(line.strip()) == {"─"}


def test_a_verdict_beside_the_figures_is_two_lines_at_most(run: RunSummary) -> None:
    """The table of a script of one's own is narrow: its rows are not made long by sentences."""
    cases = tuple(
        replace(case, scaling=None, estimates={"step_time_s": case.estimates["step_time_s"]})
        for case in run.cases
        if "step_time_s" in case.estimates
    )
    narrow = replace(analysed(run), run=replace(run, cases=cases))
    seen = {width: printed(print_closing_table, narrow, width) for width in range(100, 200, 5)}
    beside = {width: text for width, text in seen.items() if "verdict" in text.splitlines()[0]}
    assert beside
    for width, text in beside.items():
        lines = text.split("\n\n")[0].splitlines()
        assert len(lines) == 2 + 2 * len(cases), width
