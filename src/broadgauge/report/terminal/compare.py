"""What does `broadgauge compare` print? Ratios with their intervals, and what they can't tell."""

from collections.abc import Container, Sequence

from rich.console import Console
from rich.text import Text

from broadgauge.report.terminal.tables import heading, print_table, sentence
from broadgauge.report.words.quantities import show, smallest_change, spread, title_of
from broadgauge.report.words.sizes import by_size_words
from broadgauge.results.model import CaseComparison, RunComparison
from broadgauge.results.resolution import smallest_ratio
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.plan import BaselineRun
from broadgauge.specs.units import show_count


def print_runs_compared(comparison: RunComparison, console: Console) -> None:
    """Run B against run A, case by case."""
    for name, run in (("A", comparison.a), ("B", comparison.b)):
        trials = "1 trial" if len(run.records) == 1 else f"{len(run.records)} trials"
        console.print(Text(f"{name}: {run.folder} ({trials})"))
    for note in comparison.notes:
        sentence(f"note: {note}", console, "dim")
    for difference in comparison.environment_differences:
        sentence(f"  {difference}", console, "yellow")
    _print_changed(comparison, console)
    console.print()
    if comparison.rows:
        print_rows(comparison.rows, console)
    for name, labels in (("A", comparison.only_in_a), ("B", comparison.only_in_b)):
        if labels:
            heading(f"Only in {name}", console)
        for label in labels:
            sentence(f"  {label}", console)


def _print_changed(comparison: RunComparison, console: Console) -> None:
    """What the user changed between the runs, once for all cases that it was changed in alike."""
    by_words: dict[tuple[str, ...], list[str]] = {}
    for label, differences in comparison.setting_differences.items():
        by_words.setdefault(differences, []).append(label)
    for differences, labels in by_words.items():
        is_in_all = len(labels) == len({row.a_label for row in comparison.rows})
        where = "every case" if is_in_all and len(labels) > 1 else ", ".join(labels)
        sentence(f"Changed in {where}:", console)
        for words in differences:
            sentence(f"  {words}", console)


def print_networks_compared(
    rows: Sequence[CaseComparison],
    console: Console,
    *,
    is_imported: bool = False,
    reference: str = "the fastest network",
) -> None:
    """Each network of one run against its fastest: A is the fastest.

    Of networks that were found no rate is known: A is the first (`links.reference_words`).
    Nor is one known where the run was imported: A has the label that was named first.
    """
    if not rows:
        sentence("Nothing to compare: no workload succeeded on two networks.", console)
        return
    first = "label (B) against the first"
    if not is_imported:
        first = f"network (B) against {reference}"
    how = "in the order of their files" if is_imported else "block by block"
    sentence(f"Each {first} (A), paired {how}.", console)
    console.print()
    print_rows(rows, console)


def print_platforms_compared(rows: Sequence[CaseComparison], console: Console) -> None:
    """Each case on another platform than the one that the experiment names first."""
    sentence(
        "Each case on another platform (B) against the first one's (A), paired block by block.",
        console,
    )
    console.print()
    print_rows(rows, console)
    console.print()


def print_arms_compared(
    baseline: BaselineRun, rows: Sequence[CaseComparison], console: Console
) -> None:
    """The experiment's cases against the baseline's, which ran in the same blocks."""
    if not rows:
        sentence("Nothing to compare: no case succeeded on both sides.", console)
        return
    sentence(
        f"The experiment (B) against the baseline {baseline.run} (A), interleaved, paired block "
        "by block.",
        console,
    )
    console.print()
    print_rows(rows, console)


def print_rows(rows: Sequence[CaseComparison], console: Console) -> None:
    """B over A with its 95 % interval, and a sentence a row."""
    print_table(
        ("case", "metric", "A (mean)", "B (mean)", "B / A (geometric)"),
        [_cells(row) for row in rows],
        console,
    )
    console.print()
    common = [
        note
        for note in dict.fromkeys(n for row in rows for n in row.notes)
        if all(note in row.notes for row in rows)
    ]
    for row in rows:
        sentence(f"{compared_name(row)}: {finding(row, common)}", console)
    for note in common:
        sentence(f"note: {note}", console, "dim")


def compared_name(row: CaseComparison) -> str:
    """One label where both sides have it, else both."""
    if row.a_label in (row.b_label, f"{row.b_label} (baseline)"):
        return row.b_label
    return f"{row.b_label} against {row.a_label}"


def _cells(row: CaseComparison) -> tuple[str, ...]:
    ratio = None if row.comparison is None else row.comparison.ratio
    return (
        compared_name(row),
        title_of(row.metric),
        f"{show(row.metric, row.a.value)}\n{spread(row.metric, row.a)}",
        f"{show(row.metric, row.b.value)}\n{spread(row.metric, row.b)}",
        "–" if ratio is None else f"{show('speedup_ratio', ratio.value)}\n{_ends(ratio)}",
    )


def _ends(ratio: Estimate) -> str:
    """`1.045–1.055`."""
    if ratio.low is None or ratio.high is None:
        return "no interval"
    return f"{show_count(ratio.low, 4)}–{show_count(ratio.high, 4)}"


def finding(row: CaseComparison, said: Container[str] = ()) -> str:
    """`step time is 12 % higher in B, worse`, or that it can't be told and what would tell.

    Notes that were `said` already are left out. Of collectives it ends with what other sizes did.
    """
    by_size = by_size_words(row.by_size, _change)
    return f"{_finding(row, said)}; {by_size}" if by_size else _finding(row, said)


def _finding(row: CaseComparison, said: Container[str]) -> str:
    if row.comparison is None:
        return "; ".join(row.notes)
    comparison = row.comparison
    ratio = comparison.ratio.value
    own = [note for note in comparison.notes if note not in said]
    notes = f" ({'; '.join(own)})" if own else ""
    title = title_of(row.metric)
    smallest = smallest_ratio(comparison)
    more = ""
    if smallest is not None:
        launches = comparison.ratio.launches
        more = f": {launches} launches show {smallest_change(smallest)} or more in 4 of 5 tries"
    match comparison.verdict.value:
        case "different":
            return f"{title} is {_change(ratio)} in B{_judgement(row, ratio)}{notes}"
        case "no difference seen":
            return f"no difference in {title} seen{more}{notes}"
        case _:
            return f"can't tell whether {title} differs{notes}"


def _change(ratio: float) -> str:
    """`12 % higher`, and from twice on `2.4 times as high`."""
    if ratio >= 2 or ratio <= 0.5:
        return f"{show('speedup_ratio', ratio).removesuffix('×')} times as high"
    word = "higher" if ratio > 1 else "lower"
    return f"{show('change_ratio', abs(ratio - 1))} {word}"


def _judgement(row: CaseComparison, ratio: float) -> str:
    if row.direction == "neither":
        return ""
    is_better = (ratio < 1) == (row.direction == "lower")
    return ", better" if is_better else ", worse"
