"""`broadgauge predict`: how long would a step take on this cluster, and what would it wait for?"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broadgauge.cli import cost_flags, predict_here, predict_known
from broadgauge.cli.predict_flags import add_flags

if TYPE_CHECKING:
    from broadgauge.running.predicting import Reply

EXAMPLE = (
    "broadgauge predict --model llama3-8b --gpu h100-sxm --nodes 2,4,8 --network pod,roce-400g"
)


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "predict",
        help="predict a training's step time on another cluster",
        description="Predicts step time with its 80 % interval, throughput, memory, bottleneck "
        "and cost of trainings: those of an experiment, or by flags, of which each may be a list. "
        f"Needs no GPU. For example: {EXAMPLE}",
        allow_abbrev=False,
    )
    parser.add_argument("experiment", metavar="EXPERIMENT", nargs="?", help="a file or an example")
    add_flags(parser)
    given = parser.add_argument_group("what is known")
    predict_known.add_flags(given)
    given.add_argument(
        "--catalog",
        type=Path,
        metavar="FILE",
        action="append",
        default=[],
        help="entries of yours, as a GPU `like: h100-sxm`: docs/catalog.md",
    )
    cost_flags.add_flags(given)
    given.add_argument(
        "--pays",
        default="10%",
        metavar="PERCENT",
        help="what a better network must bring to be recommended (default: 10%%)",
    )
    output = parser.add_argument_group("output")
    output.add_argument("--explain", action="store_true", help="the estimate by hand beside it")
    output.add_argument("--json", action="store_true", help="print one JSON object instead")
    output.add_argument("--csv", action="store_true", help="print a line a case instead")
    output.add_argument("--html", type=Path, metavar="FILE", help="also write a page with plots")
    output.add_argument(
        "--trace", type=Path, metavar="FILE", help="also write the timeline for Perfetto"
    )
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    if predict_here.is_here(options):
        return predict_here.handle(options)
    return _handle(options)


def _handle(options: argparse.Namespace) -> int:
    """On any cluster. Raises InputError."""
    from broadgauge.catalog.catalog import load_catalog
    from broadgauge.cli.console import results_console
    from broadgauge.cli.output import say, write, write_file
    from broadgauge.cli.predict_flags import read_properties, read_ratio
    from broadgauge.predict.answering.answers import MOST_OVER
    from broadgauge.report.predict.advice import print_recommendations
    from broadgauge.report.predict.data import MOST_FITTED, to_csv, to_json
    from broadgauge.report.predict.explain import print_explanations
    from broadgauge.report.predict.terminal import print_answers
    from broadgauge.running.predicting import Question, reply_to
    from broadgauge.specs.errors import InputError

    if options.json and options.csv:
        raise InputError("--json and --csv: one of them")
    question = Question(
        properties=read_properties(options),
        catalog=load_catalog(options.catalog),
        experiment=options.experiment,
        system_file=options.system,
        measured_file=options.measured,
        usd_per_gpu_hour=cost_flags.read_price(options),
        tokens_count=cost_flags.read_tokens(options),
        pays_ratio=read_ratio("--pays", options.pays),
    )
    reply = reply_to(
        question,
        is_cut=not (options.json or options.csv),
        with_curves=not options.csv,
        most_over=MOST_FITTED if options.json or options.csv else MOST_OVER,
        with_sweeps=options.explain or options.json or options.html is not None,
    )
    answers, assumed, notes = reply.answers, reply.assumed, reply.notes
    found = reply.recommendations
    if options.trace is not None:
        _write_trace(options.trace, reply)
    if options.html is not None:
        from broadgauge.report.predict.page import render

        write_file(options.html, render(answers, assumed, notes, found))
    if options.json:
        replaced = question.catalog.replaced
        write(to_json(answers, assumed, notes, found, replaced, is_explained=options.explain))
    elif options.csv:
        write(to_csv(answers))
        for note in notes:
            say(f"note: {note}")
    else:
        with results_console() as console:
            print_answers(answers, assumed, notes, console)
            print_recommendations(found, console, is_explained=options.explain)
            if options.explain:
                print_explanations(answers.answers, console)
    return 0


def _write_trace(path: Path, reply: "Reply") -> None:
    """The timeline of the one case. Raises InputError where there are several."""
    from broadgauge.cli.output import say, write_file
    from broadgauge.predict.timeline.trace import chrome_trace, simulate
    from broadgauge.specs.errors import InputError

    if len(reply.cases) > 1:
        raise InputError(
            f"--trace writes the timeline of one case, and these are {len(reply.cases):,}",
            hint="one value for each flag",
        )
    case = reply.cases[0]
    events = simulate(case, reply.knowledge)
    title = f"{case.model.name}, {case.strategy}, {case.nodes}x{case.gpus_per_node} {case.gpu}"
    write_file(path, chrome_trace(events, title))
    say(f"wrote      {path}: {len(events):,} pieces, for https://ui.perfetto.dev")
