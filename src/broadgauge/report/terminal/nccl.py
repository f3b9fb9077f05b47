"""What did NCCL do? Its network and way from rank to rank, in the terminal."""

from rich.console import Console

from broadgauge.analysis.model import Analysis
from broadgauge.report.rows.nccl import (
    NCCL_HEAD,
    WAYS,
    RankWays,
    nccl_rows,
    path_matrices,
    way_counts,
)
from broadgauge.report.terminal.tables import heading, print_table, sentence
from broadgauge.report.words.printable import printable


def print_nccl(analysis: Analysis, console: Console) -> None:
    """A row a case, and which way its bytes went from rank to rank."""
    rows = nccl_rows(analysis)
    if not rows:
        return
    heading("What NCCL did, by its own logs", console)
    print_table(NCCL_HEAD, rows, console)
    for matrix in path_matrices(analysis):
        _print_matrix(matrix, console)


def _print_matrix(matrix: RankWays, console: Console) -> None:
    sentence(f"From rank to rank: {', '.join(matrix.labels)}", console, "bold")
    width = len(str(matrix.num_ranks - 1)) + 1
    if matrix.is_drawn and width * (matrix.num_ranks + 1) + 5 <= console.width:
        for line in _lines(matrix, width):
            console.print(line, highlight=False)
        for name, kind in matrix.legend:
            sentence(f"{kind.letter}: {name}, {kind.meaning}", console, "dim")
    sentence(printable(way_counts(matrix.ways)), console, "dim")


def _lines(matrix: RankWays, width: int) -> list[str]:
    """One a rank that sends; ranks that receive along the top."""
    ranks = range(matrix.num_ranks)
    head = "from ".rjust(width + 5) + "".join(str(rank).rjust(width) for rank in ranks)
    return [head, *(_line(matrix, rank, width) for rank in ranks)]


def _line(matrix: RankWays, origin: int, width: int) -> str:
    cells = [matrix.cells.get((origin, target)) for target in range(matrix.num_ranks)]
    letters = ["·" if ways is None else WAYS[ways[0]].letter for ways in cells]
    return f"{origin} ".rjust(width + 5) + "".join(letter.rjust(width) for letter in letters)
