"""What does `broadgauge show RUN --details` print? All that the report holds and words can say."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from broadgauge.analysis.model import AnalysedRun
from broadgauge.report.kinds.registry import in_report
from broadgauge.report.rows.closing import table_rows
from broadgauge.report.rows.cost import cost_rows
from broadgauge.report.rows.failed_trials import alike, trial_words, where_words
from broadgauge.report.terminal.claims import print_published
from broadgauge.report.terminal.closing import print_closing_table
from broadgauge.report.terminal.findings import print_run_findings
from broadgauge.report.terminal.matrix import print_nics, print_paths, print_placements
from broadgauge.report.terminal.nccl import print_nccl
from broadgauge.report.terminal.storages import print_storages
from broadgauge.report.terminal.tables import heading, indented, print_table, sentence
from broadgauge.report.words.findings import why_failed
from broadgauge.report.words.links import stream_title
from broadgauge.report.words.printable import printable
from broadgauge.report.words.quantities import interval, show, title_of
from broadgauge.results.cost import CaseCost
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.machines.alike_nodes import nodes_words
from broadgauge.specs.machines.cluster_words import cluster_rows
from broadgauge.specs.records.imported import IMPORTED
from broadgauge.specs.records.record import Environment, Record
from broadgauge.specs.units import show_size


def print_run(analysed: AnalysedRun, console: Console) -> None:
    """The closing table, then every figure, collective, failure and the environment."""
    run, analysis = analysed.run, analysed.analysis
    print_title(run, console)
    if run.plan.description:
        sentence(printable(run.plan.description), console)
    print_closing_table(analysed, console, has_all=True)
    print_storages(run, console)
    print_published(analysis, console)
    print_placements(run, console)
    print_paths(analysis, console)
    print_nccl(analysis, console)
    print_nics(run, console)
    heading("Evidence", console)
    for row in table_rows(run, analysis, analysed.cost):
        if row.verdict.evidence:
            console.print(Text(row.job.case.label, style="bold"))
        for line in row.verdict.evidence:
            _print_indented(f"- {line}", console)
    for summary in run.cases:
        _print_case(summary, analysed.cost.cases.get(summary.case.key), console)
    _print_failures(run, console)
    print_run_findings(analysis, console)
    for key, environment in sorted(run.environments.items()):
        _print_environment(key, environment, console)


def print_title(run: RunSummary, console: Console) -> None:
    """Which run is it?"""
    console.print(Text(f"{run.plan.experiment_name}: {run.folder}", style="bold"))


def _print_indented(words: str, console: Console, style: str = "") -> None:
    for line in indented(Text(words, style=style), console):
        console.print(line)


def _print_case(summary: CaseSummary, cost: CaseCost | None, console: Console) -> None:
    heading(summary.case.label, console)
    counts = f"{summary.num_ok} of {summary.num_planned} trials good, {summary.num_failed} failed"
    sentence(f"{counts}; case {summary.case.key}", console, "dim")
    if summary.estimates:
        of_link = (
            (stream_title([summary]), "ceiling_gbps", summary.ceiling_gbps),
            (stream_title([summary], "eight"), "eight_streams_gbps", summary.eight_streams_gbps),
            (title_of("round_trip_s"), "round_trip_s", summary.round_trip_s),
        )
        measured = ((title_of(name), name, e) for name, e in summary.estimates.items())
        rows = [
            (title, show(name, e.value), interval(name, e), str(e.launches))
            for title, name, e in (*measured, *of_link)
            if e is not None
        ]
        rows += [(title, value, low, str(e.launches)) for title, value, low, e in cost_rows(cost)]
        print_table(("metric", "value", "95 % interval", "launches"), rows, console)
    for name, reason in summary.missing.items():
        _print_indented(f"{title_of(name)}: not measured, {reason}", console, "dim")
    in_report(summary.case.workload).print_details(summary, console)


def _print_failures(run: RunSummary, console: Console) -> None:
    groups = alike(run)
    if groups:
        heading(f"Failed trials ({sum(map(len, groups))})", console)
    for records in groups:
        _print_failure(records, console)


def _print_failure(records: Sequence[Record], console: Console) -> None:
    """Of one case, alike."""
    first = records[0]
    label = f"{first.workload} {first.shape} {first.network}: {trial_words(records)}"
    console.print(Text(label, style="bold red"))
    error = first.error
    if error is None:
        return
    _print_indented(f"{error.message} ({where_words(first)})", console)
    for line in why_failed(first):
        _print_indented(printable(line), console)
    for line in error.last_lines:
        _print_indented(f"| {printable(line)}", console, "dim")


def _print_environment(key: str, facts: Environment, console: Console) -> None:
    heading(f"Environment {key}", console)
    is_here = facts.platform != IMPORTED
    for name in Environment.model_fields:
        if name == "cluster":
            for title, known in cluster_rows(facts.cluster):
                _print_indented(f"{title}: {known}", console)
            continue
        value = getattr(facts, name)
        if name == "memory_bytes":
            value = None if facts.memory_bytes is None else show_size(facts.memory_bytes)
        elif name == "gpus":
            value = ", ".join(gpu.name for gpu in facts.gpus) or ("none" if is_here else None)
        elif name == "variables":
            value = " ".join(f"{k}={v}" for k, v in sorted(facts.variables.items())) or "none"
        elif name == "nodes":
            value = nodes_words(facts)
        elif isinstance(value, tuple):
            value = ", ".join(value) or None
        if value is None and not is_here:  # nearly everything: a file tells little
            continue
        _print_indented(f"{title_of(name)}: {'unknown' if value is None else value}", console)
