"""What does `broadgauge runs` print? A line a run, newest first."""

from collections.abc import Sequence

from rich.console import Console

from broadgauge.report.terminal.tables import print_table, sentence
from broadgauge.results.run_list import ListedRun, RunStatus
from broadgauge.results.run_path import LAST
from broadgauge.wording.amounts import show_size

HEAD = ("run", "", "status", "trials", "size", "began")
_MINUTE_S, _HOUR_S, _DAY_S = 60.0, 3600.0, 86400.0


def print_run_list(runs: Sequence[ListedRun], now_unix_s: float, console: Console) -> None:
    """Of all runs of a folder, in the order of `last~N`."""
    if not runs:
        sentence("There are no runs here. Begin with: broadgauge run quickstart", console)
        return
    print_table(HEAD, [_cells(at, run, now_unix_s) for at, run in enumerate(runs)], console)
    total = show_size(float(sum(run.size_bytes for run in runs)))
    console.print()
    sentence(f"{len(runs)} {'run' if len(runs) == 1 else 'runs'}, {total}.", console)
    for run in runs:
        if run.problem is not None:
            sentence(f"note: {run.problem}", console, "dim")
        if run.elsewhere is not None:
            sentence(f"note: {run.folder.name}: {run.elsewhere}", console, "dim")


def show_age(age_s: float) -> str:
    """5400 → `1 h ago`; whole units, rounded down, as people say it."""
    if age_s < _MINUTE_S:
        return "just now"
    if age_s < _HOUR_S:
        return f"{int(age_s / _MINUTE_S)} min ago"
    if age_s < _DAY_S:
        return f"{int(age_s / _HOUR_S)} h ago"
    days = int(age_s / _DAY_S)
    return "1 day ago" if days == 1 else f"{days} days ago"


def _cells(at: int, run: ListedRun, now_unix_s: float) -> tuple[str, ...]:
    return (
        run.folder.name,
        LAST if at == 0 else f"{LAST}~{at}",
        str(run.status),
        _trials(run),
        show_size(float(run.size_bytes)),
        show_age(now_unix_s - run.started_unix_s),
    )


def _trials(run: ListedRun) -> str:
    if run.status is RunStatus.UNREADABLE:
        return "–"
    failed = f"\n{run.num_failed} failed" if run.num_failed else ""
    return f"{run.num_stored} of {run.num_planned}{failed}"
