"""`broadgauge explain`: of one step, what was compute, communication, waiting, idle?"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broadgauge.cli.collector import no_collections
from broadgauge.results.run_path import RUN_HELP

if TYPE_CHECKING:
    from broadgauge.running.explaining import ExplainedTraces
    from broadgauge.running.explaining_runs import ExplainedCase


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "explain",
        help="say where the time of a traced step went",
        description="Reads the traces of a run (`trace: {steps: 2}` in a workload), or PyTorch "
        "profiler traces (Kineto JSON, plain or gzip) of one rank or of "
        "all ranks of a job, and says what share of a step was compute, exposed communication, "
        "waiting for a late rank, waiting for data, checkpoint, idle. Two folders, or two traces "
        "of one rank, are compared.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "traces",
        metavar="TRACE|RUN",
        nargs="+",
        type=Path,
        help=f"a file, a folder of a job's ranks, or a run: {RUN_HELP}",
    )
    parser.add_argument(
        "--against", metavar="TRACE|RUN", nargs="+", type=Path, default=[], help="the other run's"
    )
    parser.add_argument(
        "--steps", metavar="LIST", help="only these, by the profiler's number: 3,4 (default: all)"
    )
    parser.add_argument(
        "--ranks-per-node",
        metavar="N",
        help="tells communication within nodes from that between them (default: by the hosts that "
        "files' names tell)",
    )
    parser.add_argument(
        "--reference",
        metavar="RUN",
        help="a run with collectives: what share of its busbw did each collective have? (default: "
        "the collectives of the traced run)",
    )
    parser.add_argument(
        "--perfetto", type=Path, metavar="FILE", help="write a trace with the parts as a track"
    )
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="write a page with a timeline that can be zoomed"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(handler=handle)


@no_collections()
def handle(options: argparse.Namespace) -> int:
    from broadgauge.running.explaining import explain_files
    from broadgauge.specs.errors import ExitCode, InputError

    if options.perfetto is not None and options.against:
        raise InputError("--perfetto writes one job's trace", hint="leave --against out")
    runs = _runs([*options.traces, *options.against])
    if runs:
        return _explain_runs(runs, options)
    found = explain_files(
        options.traces,
        against=options.against,
        step_numbers=_numbers(options.steps),
        ranks_per_node=_count(options.ranks_per_node),
        reference=_reference(options.reference),
    )
    if options.perfetto is not None:
        _write_perfetto(options.perfetto, found)
    if options.html is not None:
        _write_page(options.html, [("Traces", found)])
    if options.json:
        _print_json(found)
    else:
        _print(found)
    return ExitCode.OK


def _runs(paths: list[Path]) -> list[Path]:
    """The run folders, where these are one run or two; else none, and the paths are traces'."""
    from broadgauge.results.run_path import run_path
    from broadgauge.running.explaining import is_run

    found = [run_path(str(path)) for path in paths]
    return found if len(found) <= 2 and all(map(is_run, found)) else []


def _explain_runs(runs: list[Path], options: argparse.Namespace) -> int:
    from broadgauge.running.explaining_runs import explain_run
    from broadgauge.specs.errors import ExitCode, InputError

    against = runs[1] if len(runs) == 2 else None
    found = explain_run(
        runs[0],
        against=against,
        step_numbers=_numbers(options.steps),
        reference=_reference(options.reference),
    )
    if options.perfetto is not None:
        if len(found) > 1:
            raise InputError(
                f"--perfetto writes one job's trace, and {runs[0]} has {len(found)} traced cases",
                hint=f"name the ranks' traces: {runs[0]}/artifacts/{found[0].trial}.rank*.json.gz",
            )
        _write_perfetto(options.perfetto, found[0].traces)
    if options.html is not None:
        jobs = [(f"{case.label}, trial {case.trial}", case.traces) for case in found]
        _write_page(options.html, jobs)
    if options.json:
        _print_json_of_cases(runs[0], found)
        return ExitCode.OK
    for number, case in enumerate(found):
        _print(case.traces, title=f"{case.label}, trial {case.trial}", is_first=number == 0)
    return ExitCode.OK


def _print_json_of_cases(run: Path, found: "tuple[ExplainedCase, ...]") -> None:
    import json

    from broadgauge.cli.output import write

    cases = [{"case": c.label, "trial": c.trial, **_document(c.traces)} for c in found]
    document = {"run": str(run), "cases": cases}
    write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def _reference(text: str | None) -> Path | None:
    from broadgauge.results.run_path import run_path

    return None if text is None else run_path(text)


def _numbers(text: str | None) -> list[int] | None:
    from broadgauge.specs.errors import InputError

    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and len(word) < 16 for word in words):
        raise InputError(f"--steps: {text!r} is no list of steps", hint="--steps 3,4")
    return [int(word) for word in words]


def _count(text: str | None) -> int | None:
    from broadgauge.specs.errors import InputError

    if text is None:
        return None
    if not text.isdecimal() or not 0 < len(text) < 7 or int(text) == 0:
        raise InputError(f"--ranks-per-node: {text!r} is no number of ranks", hint="8")
    return int(text)


def _print_json(found: "ExplainedTraces") -> None:
    import json

    from broadgauge.cli.output import write

    write(json.dumps(_document(found), indent=2, allow_nan=False) + "\n")


def _document(found: "ExplainedTraces") -> dict[str, Any]:
    from broadgauge.report.traces_json import comparison_document, explanation_document

    if found.comparison is None:
        return explanation_document(found.explanation, found.beside)
    return comparison_document(found.comparison, found.beside, found.beside_other)


def _print(found: "ExplainedTraces", *, title: str | None = None, is_first: bool = True) -> None:
    from rich.text import Text

    from broadgauge.cli.console import results_console
    from broadgauge.report.terminal_traces import print_comparison, print_explanation

    with results_console() as console:
        if title is not None:
            if not is_first:
                console.print()
            console.print(Text(title, style="bold underline"))
        if found.comparison is None:
            print_explanation(found.explanation, console, found.beside)
        else:
            print_comparison(found.comparison, console, found.beside, found.beside_other)


def _write_perfetto(path: Path, found: "ExplainedTraces") -> None:
    from broadgauge.cli.output import say, write_file
    from broadgauge.report.traces_perfetto import perfetto_events
    from broadgauge.specs.errors import InputError

    if found.comparison is not None:
        raise InputError("--perfetto writes one job's trace, and these are two")
    if path.resolve() in {trace.path.resolve() for trace in found.traces if trace.path is not None}:
        raise InputError(f"--perfetto: `{path}` is the trace itself", hint="name another file")
    write_file(path, "".join(perfetto_events(found.traces, found.explanation)))
    say(f"{path}: open it at ui.perfetto.dev or chrome://tracing")


def _write_page(path: Path, jobs: "list[tuple[str, ExplainedTraces]]") -> None:
    """Of two runs both are shown."""
    from broadgauge.cli.output import say, write_file
    from broadgauge.report.html_explain import render
    from broadgauge.specs.errors import InputError

    read = {t.path.resolve() for _, found in jobs for t in found.traces if t.path is not None}
    if path.resolve() in read:
        raise InputError(f"--html: `{path}` is the trace itself", hint="name another file")
    shown = []
    for title, found in jobs:
        if found.comparison is None:
            shown.append((title, found.explanation, found.beside))
        else:
            a, b = found.comparison.a, found.comparison.b
            shown.append((f"{title}, A", a, found.beside))
            shown.append((f"{title}, B", b, found.beside_other))
    write_file(path, render(shown))
    say(f"{path}: open it in a browser")
