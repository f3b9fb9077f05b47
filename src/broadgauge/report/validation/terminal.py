"""What does `broadgauge validate FILE.csv` print? Scores, peers, and what wasn't read."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from broadgauge.predict.scoring.peers import PeerSheet
from broadgauge.predict.scoring.scoring import Scored, Scores
from broadgauge.predict.scoring.validation import Validation, score_sheet
from broadgauge.predict.tables.table import UnreadRow
from broadgauge.report.terminal.tables import heading, indented, print_table, sentence
from broadgauge.specs.units import show_time

HEAD = ("in %", "n", "MAPE", "median", "P90", "worst", "bias", "inside", "order")
LEGEND = (
    "All but n in percent. bias: mean signed error, + is predicted too slow. inside: measured "
    "times inside the 80 % interval. order: of two settings that differ by more than 10 %, the "
    "faster one named."
)
MOST_UNREAD = 20
MOST_ROWS = 30
"""Of a table whose rows are printed one by one."""
LONGEST_NAME = 38
ROW_HEAD = ("row", "measured", "predicted", "error, %", "in 80 %")


def print_validation(
    validation: Validation, peers: Sequence[PeerSheet], console: Console, *, is_by_source: bool
) -> None:
    """All tables, then the rows that were not scored."""
    table = validation.table
    sentence(f"{table.name}: {_counted(len(validation.scored), 'row')} predicted", console)
    sentence(_how(validation), console, "dim")
    sheet, unflagged = score_sheet(validation.scored), score_sheet(validation.unflagged)
    console.print()
    rows = [
        score_cells("all rows", sheet.overall),
        score_cells("  mean over sources", sheet.mean_over_sources),
    ]
    if len(validation.unflagged) < len(validation.scored):
        rows.append(score_cells("without flagged", unflagged.overall))
        rows.append(score_cells("  mean over sources", unflagged.mean_over_sources))
    print_table(HEAD, rows, console)
    scaling = sheet.overall.scaling_efficiency_error
    if scaling is not None:
        sentence(f"Scaling efficiency when nodes are added: mean error {scaling:.3f}", console)
    sentence(LEGEND, console, "dim")
    if 0 < len(validation.scored) <= MOST_ROWS:
        heading("Row by row", console)
        print_table(ROW_HEAD, [_row_cells(each) for each in validation.scored], console)
    if is_by_source:
        heading("By source", console)
        print_table(HEAD, [score_cells(n, each) for n, each in sheet.by_source.items()], console)
    for peer in peers:
        print_peer(peer, console)
    _print_unread(validation.unread, console)
    for note in table.notes:
        sentence(f"note: {note}", console, "dim")


def print_peer(peer: PeerSheet, console: Console) -> None:
    """A peer and we on the same rows."""
    heading(f"{peer.name}, on the same rows", console)
    rows = []
    for name, sheet in ((peer.name, peer.peer), ("broadgauge", peer.ours)):
        rows.append(score_cells(name, sheet.overall))
        rows.append(score_cells("  mean over sources", sheet.mean_over_sources))
    print_table(HEAD, rows, console)


def score_cells(name: str, scores: Scores) -> tuple[str, ...]:
    """One line of a table."""
    return (
        name,
        str(scores.n),
        percent(scores.mape),
        percent(scores.median_ape),
        percent(scores.p90_ape),
        percent(scores.worst_ape),
        percent(scores.bias, is_signed=True),
        percent(scores.interval_coverage, places=0),
        percent(scores.pair_order, places=0),
    )


def _row_cells(scored: Scored) -> tuple[str, ...]:
    return (
        _short(scored.row.id),
        show_time(scored.row.step_time_s),
        show_time(scored.step_time_s.value),
        percent(scored.error_ratio, is_signed=True),
        "yes" if scored.is_covered else "no",
    )


def _short(name: str) -> str:
    """Both ends, as either may tell rows apart; the figures beside it fit 80 columns then."""
    half = LONGEST_NAME // 2
    return name if len(name) <= LONGEST_NAME else f"{name[:half]}…{name[1 - half :]}"


def percent(ratio: float | None, *, is_signed: bool = False, places: int = 1) -> str:
    """`0.123` → `12.3`; nothing to count → `–`."""
    if ratio is None:
        return "–"
    return f"{ratio * 100:{'+' if is_signed else ''}.{places}f}"


def _how(validation: Validation) -> str:
    if validation.calibrate == "none":
        return "Nothing calibrated; each source with constants fitted without it."
    per = "system" if validation.calibrate == "system" else "system and network"
    return (
        f"At most {validation.num_points} rows per {per} calibrated it and are not scored "
        f"({len(validation.calibration)} in all); constants fitted without the source."
    )


def _print_unread(unread: Sequence[UnreadRow], console: Console) -> None:
    if not unread:
        return
    heading(f"{_counted(len(unread), 'row')} not scored", console)
    for each in unread[:MOST_UNREAD]:
        name = f" ({each.id})" if each.id else ""
        for line in indented(Text(f"line {each.line}{name}: {each.reason}"), console):
            console.print(line)
    rest = len(unread) - MOST_UNREAD
    if rest > 0:
        sentence(f"  and {rest} more; --json lists them all", console)


def _counted(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"
