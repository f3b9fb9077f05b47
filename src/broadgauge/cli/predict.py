"""`broadgauge predict`: how long would a step take on this cluster, and what would it wait for?"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broadgauge.cli.predict_flags import add_flags

if TYPE_CHECKING:
    from broadgauge.predict.answers import Answers
    from broadgauge.predict.case import TrainingCase

MOST_SHOWN = 40
"""Cases that are printed; of more, the best."""
BEST_SHOWN = 20


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "predict",
        help="predict a training's step time on another cluster",
        description="Predicts step time with its 80 % interval, throughput, memory, bottleneck and "
        "cost of trainings, by flags (`--model llama3-8b --gpu h100-sxm --nodes 2,4,8 --network "
        "pod,roce-400g`) or of an experiment's trainings. Needs no GPU.".replace("%", "%%"),
        allow_abbrev=False,
    )
    parser.add_argument("experiment", metavar="EXPERIMENT", nargs="?", help="a file or an example")
    add_flags(parser)
    given = parser.add_argument_group("what is known")
    given.add_argument(
        "--system", type=Path, metavar="FILE", help="of `calibrate`: the machine's measured speed"
    )
    given.add_argument(
        "--usd-per-gpu-hour", type=float, metavar="USD", help="instead of the catalog's price"
    )
    output = parser.add_argument_group("output")
    output.add_argument("--explain", action="store_true", help="the estimate by hand beside it")
    output.add_argument("--json", action="store_true", help="print one JSON object instead")
    output.add_argument("--csv", action="store_true", help="print a line a case instead")
    output.add_argument("--html", type=Path, metavar="FILE", help="write a page with plots")
    output.add_argument(
        "--trace", type=Path, metavar="FILE", help="write one case's timeline for Perfetto"
    )
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    from broadgauge.cli.console import results_console
    from broadgauge.cli.output import write
    from broadgauge.cli.predict_flags import read_wish
    from broadgauge.predict.answers import answer
    from broadgauge.predict.wishes import expand
    from broadgauge.report.terminal_predict import print_answers
    from broadgauge.specs.errors import InputError

    wish = read_wish(options)
    for name in ("model", "gpu"):
        if name not in wish:
            raise InputError(
                f"--{name} is missing",
                hint="broadgauge predict --model llama3-8b --gpu h100-sxm --nodes 2,4 "
                "--network roce-400g",
            )
    asked = expand(wish)
    notes = [f"{number} × left out: {why}" for why, number in asked.left_out]
    prices = lambda case: options.usd_per_gpu_hour  # noqa: E731
    answers = answer(asked.cases, prices)
    with results_console() as console:
        print_answers(answers, asked.assumed, notes, console)
    return 0
