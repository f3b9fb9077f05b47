"""`broadgauge predict`: how long would a step take on this cluster, and what would it wait for?"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broadgauge.cli import predict_here, predict_known
from broadgauge.cli.predict_flags import add_flags

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broadgauge.advise.recommendation import Recommendation
    from broadgauge.catalog.catalog import Catalog
    from broadgauge.predict.answering.answers import Answers, Prices
    from broadgauge.predict.asking.wishes import Asked
    from broadgauge.predict.case import TrainingCase

MOST_SHOWN = 40
"""Cases that are printed; of more, the best."""
BEST_SHOWN = 20
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
        "--catalog", type=Path, metavar="FILE", action="append", default=[], help="entries of yours"
    )
    given.add_argument(
        "--usd-per-gpu-hour", type=float, metavar="USD", help="instead of the catalog's price"
    )
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
    from broadgauge.cli.predict_flags import read_ratio
    from broadgauge.predict.answering.answers import answer
    from broadgauge.report.predict_data import to_csv, to_json
    from broadgauge.report.terminal_advice import print_recommendations
    from broadgauge.report.terminal_explain import print_explanations
    from broadgauge.report.terminal_predict import print_answers
    from broadgauge.specs.errors import InputError

    if options.json and options.csv:
        raise InputError("--json and --csv: one of them")
    pays_ratio = read_ratio("--pays", options.pays)
    catalog = load_catalog(options.catalog)
    known = predict_known.read_known(options, catalog)
    asked = _asked(options, catalog, known)
    prices, price_words = _prices(options, asked.cases, catalog)
    notes = [f"{number} × left out: {why}" for why, number in asked.left_out]
    notes += catalog.replaced_words()
    assumed = (*asked.assumed, *price_words, *known.words)
    is_data = options.json or options.csv
    answers = answer(
        asked.cases,
        prices,
        known.knowledge,
        most=None if is_data or len(asked.cases) <= MOST_SHOWN else BEST_SHOWN,
        with_curves=not options.csv,
    )
    is_whole = len(answers.answers) == answers.num_cases <= MOST_SHOWN
    with_sweeps = options.explain or options.json or options.html is not None
    found = (
        _recommendations(answers, known, pays_ratio, with_sweeps=with_sweeps) if is_whole else ()
    )
    if options.trace is not None:
        _write_trace(options.trace, asked.cases, known)
    if options.html is not None:
        from broadgauge.report.html_predict import render

        write_file(options.html, render(answers, assumed, notes, found))
    if options.json:
        document = to_json(
            answers, assumed, notes, found, catalog.replaced, is_explained=options.explain
        )
        write(document)
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


def _recommendations(
    answers: "Answers", known: predict_known.Known, pays_ratio: float, *, with_sweeps: bool
) -> "tuple[Recommendation, ...]":
    """What follows of those that fit; `with_sweeps` also from where on a network would pay."""
    from broadgauge.advise.network_choice import recommend
    from broadgauge.predict.predictor import predict_table

    predictions = [each.prediction for each in answers.answers]
    predictions = [each for each in predictions if each.memory.is_fitting]
    if not predictions:
        return ()
    if not with_sweeps:
        return recommend(predictions, pays_ratio=pays_ratio)
    return recommend(
        predictions,
        lambda cases: predict_table(cases, known.knowledge).evaluation.step_s,
        pays_ratio=pays_ratio,
    )


def _write_trace(path: Path, cases: "Sequence[TrainingCase]", known: predict_known.Known) -> None:
    """The timeline of the one case. Raises InputError where there are several."""
    from broadgauge.cli.output import say, write_file
    from broadgauge.predict.timeline.trace import chrome_trace, simulate
    from broadgauge.specs.errors import InputError

    if len(cases) > 1:
        raise InputError(
            f"--trace writes the timeline of one case, and these are {len(cases):,}",
            hint="one value for each flag",
        )
    case = cases[0]
    events = simulate(case, known.knowledge)
    title = f"{case.model.name}, {case.strategy}, {case.nodes}x{case.gpus_per_node} {case.gpu}"
    write_file(path, chrome_trace(events, title))
    say(f"wrote      {path}: {len(events):,} pieces, for https://ui.perfetto.dev")


def _asked(
    options: argparse.Namespace, catalog: "Catalog", known: "predict_known.Known"
) -> "Asked":
    """The trainings meant. Raises InputError."""
    from broadgauge.cli.predict_flags import read_wish
    from broadgauge.predict.asking.wishes import expand
    from broadgauge.specs.errors import InputError

    wish = read_wish(options)
    if known.gpu is not None:
        _check_measured(wish, known.gpu, catalog)
    if known.gpus_per_node is not None:
        wish["gpus_per_node"] = (known.gpus_per_node,)
    if options.experiment is not None:
        return _of_experiment(options.experiment, wish, catalog)
    if "model" not in wish:
        raise InputError("no training is named", hint=EXAMPLE)
    if "gpu" not in wish and "node" not in wish:
        raise InputError(
            "no GPU is named", hint="--gpu h100-sxm, or --node p5.48xlarge, for example"
        )
    return expand(wish, catalog)


def _check_measured(wish: "dict[str, Sequence[Any]]", gpu: str, catalog: "Catalog") -> None:
    """A system file speaks of its own GPU, which it also names. Raises InputError."""
    from broadgauge.specs.errors import InputError

    if "node" not in wish:
        wish.setdefault("gpu", (gpu,))
    named = [catalog.gpu(name).name for name in wish.get("gpu", ())]
    others = [name for name in named if name != gpu]
    others += [catalog.node(n).gpu for n in wish.get("node", ()) if catalog.node(n).gpu != gpu]
    if others:
        raise InputError(
            f"the system file is of {gpu}, and {others[0]} is asked",
            hint="leave --system out, or ask for its own GPU",
        )


OF_CLUSTER = ("gpu", "gpus_per_node", "nodes", "network")
"""What flags may say beside an experiment."""


def _of_experiment(name: str, wish: "dict[str, Sequence[Any]]", catalog: "Catalog") -> "Asked":
    """The trainings of a file, on the cluster of the flags. Raises InputError."""
    from broadgauge.predict.asking.experiment_cases import Instead, experiment_cases
    from broadgauge.running.experiments import load
    from broadgauge.specs.errors import InputError

    others = [field for field in wish if field not in OF_CLUSTER]
    if others:
        raise InputError(
            f"{others[0].replace('_', ' ')} is for the experiment {name} to say",
            hint="--gpu, --gpus-per-node, --nodes and --network go with an experiment",
        )
    if "gpu" not in wish:
        raise InputError(f"{name} names no GPU", hint=f"broadgauge predict {name} --gpu h100-sxm")
    instead = Instead(
        nodes=wish.get("nodes", ()),
        networks=wish.get("network", ()),
        gpus_per_node=wish.get("gpus_per_node", ()),
    )
    return experiment_cases(load(name, ()).experiment, wish["gpu"], instead, catalog)


def _prices(
    options: argparse.Namespace, cases: "tuple[TrainingCase, ...]", catalog: "Catalog"
) -> "tuple[Prices, list[str]]":
    """A price for each case, and the words that say whose. Raises InputError."""
    import functools
    import math

    from broadgauge.specs.errors import InputError

    own = options.usd_per_gpu_hour
    if own is not None:
        if not (math.isfinite(own) and own >= 0):
            raise InputError(f"--usd-per-gpu-hour {own:g}: not a price")
        return (lambda _case: float(own)), []

    nodes = {each.name for each in catalog.nodes}

    @functools.cache
    def known(gpu: str, node: str) -> tuple[float, str] | None:
        """A node's own price: another cloud's may be a quarter of it."""
        found = catalog.gpu_price(gpu, node if node in nodes else None)
        if found is None or (node in nodes and found.price.node != node):
            return None
        return found.price_usd_per_hour, f"{found.price.name}, {found.price.date}"

    def price(case: "TrainingCase") -> float | None:
        found = known(case.gpu, case.name)
        return None if found is None else found[0]

    kinds = dict.fromkeys((case.gpu, case.name) for case in cases)
    found = [(gpu, entry) for gpu, node in kinds if (entry := known(gpu, node)) is not None]
    words = [f"${usd:.3g} for a GPU ({gpu}) and hour ({whose})" for gpu, (usd, whose) in found]
    unpriced = [node for gpu, node in kinds if node in nodes and known(gpu, node) is None]
    if unpriced:
        words.append(f"no price of {', '.join(dict.fromkeys(unpriced))} is known")
    return price, list(dict.fromkeys(words))
