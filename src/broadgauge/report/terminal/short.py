"""What does `broadgauge show RUN` print, and `run` at its end? The answer, on about one screen."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from broadgauge.analysis.model import AnalysedRun, Analysis
from broadgauge.report.rows.closing import table_rows
from broadgauge.report.rows.failed_trials import alike, where_words
from broadgauge.report.rows.headline import headline_lines
from broadgauge.report.terminal.closing import print_closing_table
from broadgauge.report.terminal.findings import print_briefly, worst_findings
from broadgauge.report.terminal.tables import heading, indented, sentence
from broadgauge.report.words.failures import all_failed, has_failed_whole
from broadgauge.report.words.printable import printable
from broadgauge.results.model import RunSummary
from broadgauge.specs.records.record import Record
from broadgauge.wording.listing import listed

MOST_FINDINGS = 4
MOST_FAILURES = 4
MOST_CASES = 3


def print_run_briefly(analysed: AnalysedRun, console: Console, details: str) -> None:
    """What holds the job back, the table, failures, the worst findings. `details` is the command
    that prints the rest."""
    run, analysis = analysed.run, analysed.analysis
    rows = table_rows(run, analysis, analysed.cost)
    if not run.plan.is_imported and all_failed(row.job for row in rows) is None:
        for line in headline_lines(rows):
            sentence(printable(line), console, "bold")
        console.print()
    print_closing_table(analysed, console, details=details)
    _print_failures(run, [row.job.case.key for row in rows if has_failed_whole(row.job)], console)
    num_left = _print_findings(analysis, console)
    findings = f"{num_left} more {'finding' if num_left == 1 else 'findings'}"
    words = [*([findings] if num_left else []), "every figure, evidence", "the environment"]
    console.print()
    sentence(f"More ({', '.join(words)}): {details}", console)


def _print_failures(run: RunSummary, told: Sequence[str], console: Console) -> None:
    """Each reason once, but for cases whose verdict tells it."""
    groups: dict[str, list[Record]] = {}
    for same in alike(run):
        if same[0].case_key not in told:
            groups.setdefault(_reason(same[0]), []).extend(same)
    if groups:
        heading(f"Failed trials ({sum(map(len, groups.values()))})", console)
    for reason, records in list(groups.items())[:MOST_FAILURES]:
        for line in indented(Text(f"{_trials(records)}: {reason}"), console):
            console.print(line)
    if len(groups) > MOST_FAILURES:
        sentence(f"  reasons not shown: {len(groups) - MOST_FAILURES}", console)


def _trials(records: Sequence[Record]) -> str:
    """`3 trials of train 2x1 slow and train 2x1 fast`."""
    cases = list(dict.fromkeys(f"{r.workload} {r.shape} {r.network}" for r in records))
    where = listed(cases) if len(cases) <= MOST_CASES else f"{len(cases)} cases"
    return f"{'1 trial' if len(records) == 1 else f'{len(records)} trials'} of {where}"


def _reason(record: Record) -> str:
    if record.error is None:
        return "the reason is unknown"
    return f"{printable(record.error.headline)} ({where_words(record)})"


def _print_findings(analysis: Analysis, console: Console) -> int:
    """The worst. Returns how many are left."""
    shown = worst_findings(analysis)[:MOST_FINDINGS]
    if shown:
        heading("Findings", console)
    for group in shown:
        print_briefly(group, console)
    return len(analysis.findings) - len(shown)
