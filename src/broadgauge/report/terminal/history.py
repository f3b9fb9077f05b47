"""What does `broadgauge history` print? A case's figure run by run, with its trend."""

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console

from broadgauge.report.terminal.tables import heading, print_table, sentence
from broadgauge.report.words.quantities import show, spread, title_of
from broadgauge.results.history import CaseHistory, FoundRun, History, Point
from broadgauge.specs.units import show_ratio

BARS = "▁▂▃▄▅▆▇█"
SHOWN_COMMIT = 10
HEAD = ("started (UTC)", "commit", "versions", "figure (mean)", "change (geometric)")


def print_history(history: History, console: Console) -> None:
    """Each case with a line a run, oldest first."""
    runs = "1 run" if history.num_runs == 1 else f"{history.num_runs} runs"
    sentence(f"{history.experiment_name}: {runs}", console)
    if history.num_runs > 1:
        sentence(
            "The runs were not interleaved: a change may be the machine's. "
            "`broadgauge run --against` tells the two apart.",
            console,
            "dim",
        )
    for case in history.cases:
        heading(f"{case.label}: {title_of(case.metric)}  {trend(case)}", console)
        print_table(HEAD, [_cells(case, point) for point in case.points], console)
    print_notes(history.notes, console)


def print_experiments(runs: Sequence[FoundRun], notes: Sequence[str], console: Console) -> None:
    """Which experiments have runs here, and how many?"""
    names = sorted({run.experiment_name for run in runs})
    rows = [
        (name, str(len(mine)), mine[-1].folder.name)
        for name in names
        if (mine := [run for run in runs if run.experiment_name == name])
    ]
    if rows:
        print_table(("experiment", "runs", "newest"), rows, console)
    else:
        sentence("There are no runs here.", console)
    print_notes(notes, console)


def print_notes(notes: Sequence[str], console: Console) -> None:
    """What was left out."""
    if notes:
        console.print()
    for note in notes:
        sentence(f"note: {note}", console, "dim")


def trend(case: CaseHistory) -> str:
    """A bar a run, between the lowest and the highest figure."""
    values = [point.figure.value for point in case.points]
    low, high = min(values), max(values)
    if high <= low:
        return BARS[0] * len(values)
    top = len(BARS) - 1
    return "".join(BARS[round((value - low) / (high - low) * top)] for value in values)


def _cells(case: CaseHistory, point: Point) -> tuple[str, ...]:
    started = datetime.fromtimestamp(point.started_unix_s, UTC)
    versions = [f"broadgauge {point.broadgauge}" if point.broadgauge else ""]
    versions.append(f"torch {point.torch}" if point.torch else "")
    return (
        f"{started:%Y-%m-%d %H:%M}",
        "–" if point.git_commit is None else _commit(point.git_commit),
        "\n".join(each for each in versions if each) or "–",
        f"{show(case.metric, point.figure.value)}\n{spread(case.metric, point.figure)}",
        _change(point),
    )


def _commit(commit: str) -> str:
    return commit[:SHOWN_COMMIT] + ("+" if commit.endswith("+") else "")


def _change(point: Point) -> str:
    """`+3.1 %`, with its interval; not interleaved."""
    if not point.is_same_case:
        return "other settings"
    if point.change is None or point.change.comparison is None:
        return "–"
    ratio = point.change.comparison.ratio
    change = f"{ratio.value - 1:+.1%}".replace("%", " %")
    if ratio.low is None or ratio.high is None:
        return f"{change}\nno interval"
    return f"{change}\n{show_ratio(ratio.low - 1, 2).removesuffix(' %')} to " + show_ratio(
        ratio.high - 1, 2
    )
