"""What does `broadgauge doctor RUN` print? What NCCL did in each case, and what is wrong where."""

from collections.abc import Sequence

from rich.console import Console

from broadgauge.report.doctor.answers import print_answers
from broadgauge.report.doctor.terminal import print_count, print_finding, print_job, print_matrix
from broadgauge.report.terminal.tables import heading, sentence
from broadgauge.report.words.printable import printable
from broadgauge.running.diagnosing import DiagnosedCase, DiagnosedFinding, RunDiagnosis
from broadgauge.wording.listing import listed

_MOST_NAMED = 4


def print_run_diagnosis(diagnosis: RunDiagnosis, console: Console) -> None:
    """Cases in which NCCL did the same are told once."""
    for cases in _alike(diagnosis.cases):
        last = cases[-1]
        sentence(f"In {_few([case.label for case in cases])}", console, "bold")
        if last.answers:
            print_answers(last.answers, console)
        if last.overview is not None:
            print_job(last.overview, console)
        if last.paths is not None:
            print_matrix(last.paths, console)
        console.print()
    without = [case.label for case in diagnosis.cases if case.overview is None]
    if without:
        sentence(f"NCCL said nothing in the logs of {_few(without)}.", console)
    for note in diagnosis.notes:
        sentence(printable(note), console, "yellow")
    heading("Findings", console)
    for each in diagnosis.findings:
        print_finding(each.finding, console, _where(each, diagnosis))
    print_count([each.finding for each in diagnosis.findings], console)


def _alike(cases: Sequence[DiagnosedCase]) -> list[list[DiagnosedCase]]:
    """By network, adapters, GPUDirect and ways; times and sizes differ from launch to launch."""
    found: dict[tuple[object, ...], list[DiagnosedCase]] = {}
    for case in cases:
        job = case.overview
        if job is not None:
            paths = case.paths
            ways = None if paths is None else (paths.cells, paths.inside, paths.between)
            kind = (job.versions, job.networks, job.interfaces, job.adapters, job.gdr, ways)
            found.setdefault(tuple(map(str, kind)), []).append(case)
    return list(found.values())


def _where(each: DiagnosedFinding, diagnosis: RunDiagnosis) -> str:
    """Which cases, and how many of their trials; nothing where it is of the whole run."""
    if not each.cases:
        return ""
    has_all = set(each.cases) >= {case.label for case in diagnosis.cases}
    cases = "all cases" if has_all and len(each.cases) > 1 else _few(each.cases)
    if each.trials:
        return f"{cases}: {_times(len(each.trials), 'trial', 'trials')}"
    if each.launches:
        return f"{cases}: {_times(len(each.launches), 'launch', 'launches')}"
    return cases


def _times(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _few(labels: Sequence[str]) -> str:
    shown = [printable(label) for label in labels[:_MOST_NAMED]]
    more = len(labels) - len(shown)
    return listed([*shown, f"{more} more"]) if more else listed(shown)
