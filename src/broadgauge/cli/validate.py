"""`broadgauge validate`: how far are predictions from published step times?"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broadgauge.specs.errors import InputError

if TYPE_CHECKING:
    from broadgauge.predict.scoring.peers import PeerSheet
    from broadgauge.predict.scoring.validation import Validation
    from broadgauge.predict.tables.table import MeasuredTable

NOTHING_SCORED = 2
MOST_POINTS = 1000


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "validate",
        help="score predictions on published step times",
        description="Predicts each row of a table of published step times with constants that "
        "were fitted without its source, and scores the predictions. Without FILE: on the tables "
        "of five articles on networks of training. docs/validation.md describes the columns.",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE.csv", nargs="?", type=Path, help="the table")
    parser.add_argument(
        "--calibrate",
        choices=("none", "system", "system-network"),
        default="none",
        help="let some rows of each system, or of each network of a system, calibrate it; they "
        "are not scored (default: none)",
    )
    parser.add_argument(
        "--points",
        type=_points,
        metavar="K",
        help="how many rows calibrate at most (default: 3)",
    )
    parser.add_argument(
        "--by", choices=("source",), help="also print the scores of each source of the table"
    )
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        metavar="NAME=FILE.csv",
        help="a peer's predictions (columns `id` and `step_time_s`), scored on the same rows",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object instead")
    form.add_argument(
        "--markdown",
        action="store_true",
        help="print docs/validation.md: FILE with every calibration, and the articles",
    )
    parser.set_defaults(handler=handle)


def _points(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= MOST_POINTS:
        raise argparse.ArgumentTypeError(f"K is a whole number from 1 on, not `{text}`")
    return number


def handle(options: argparse.Namespace) -> int:
    from broadgauge.predict.calibration.rows import DEFAULT_POINTS
    from broadgauge.predict.scoring.peers import against_rule, against_times
    from broadgauge.predict.scoring.validation import validate

    if options.points is not None and options.calibrate == "none":
        raise InputError("--points says how many rows calibrate, and none do",
                         hint="add --calibrate system, or --calibrate system-network")  # fmt: skip
    if options.markdown and (options.file is None or options.calibrate != "none"):
        raise InputError("--markdown is of a table, with every calibration",
                         hint="broadgauge validate FILE.csv --markdown")  # fmt: skip
    if options.file is None:
        return _articles(options)
    table = _table(options.file)
    peers = _peer_files(options.peer)
    if options.markdown:
        return _page(table, peers)
    validation = validate(
        table, calibrate=options.calibrate, num_points=options.points or DEFAULT_POINTS
    )
    sheets = [against_rule(validation.scored)]
    sheets += [against_times(name, validation.scored, times) for name, times in peers.items()]
    return _show(validation, sheets, options)


def _show(validation: "Validation", peers: "list[PeerSheet]", options: argparse.Namespace) -> int:
    from broadgauge.cli.console import results_console
    from broadgauge.cli.output import write
    from broadgauge.report.validation.as_json import validation_json
    from broadgauge.report.validation.terminal import print_validation

    if options.json:
        write(validation_json(validation, peers))
    else:
        with results_console() as console:
            print_validation(validation, peers, console, is_by_source=options.by == "source")
    return 0 if validation.scored else NOTHING_SCORED


def _page(table: "MeasuredTable", peers: dict[str, dict[str, float]]) -> int:
    from broadgauge.cli.output import write
    from broadgauge.predict.articles.scores import article_scores
    from broadgauge.predict.scoring.validation import validate
    from broadgauge.report.validation.page import calibrated_sheets, validation_page

    sheets = calibrated_sheets(table, validate(table))
    write(validation_page(table, sheets, peers, article_scores()).markdown)
    return 0


def _articles(options: argparse.Namespace) -> int:
    from broadgauge.cli.console import results_console
    from broadgauge.cli.output import write
    from broadgauge.predict.articles.scores import article_scores
    from broadgauge.report.validation.as_json import articles_json
    from broadgauge.report.validation.terminal_articles import print_articles

    if options.calibrate != "none" or options.peer:
        raise InputError(
            "the articles' tables have calibration rows of their own, and no peers",
            hint="name a table: broadgauge validate FILE.csv --calibrate system",
        )
    found = article_scores()
    if options.json:
        write(articles_json(found))
        return 0
    with results_console() as console:
        print_articles(found, console)
    return 0


def _table(path: Path) -> "MeasuredTable":
    from broadgauge.predict.tables.table import read_table

    return read_table(_bytes(path), path.name)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"`{path}` can't be read: {error.strerror or error}") from None


def _peer_files(words: list[str]) -> dict[str, dict[str, float]]:
    from broadgauge.predict.scoring.peers import read_times

    found = {}
    for word in words:
        name, _, filename = word.partition("=")
        if not name or not filename:
            raise InputError(f"--peer takes NAME=FILE.csv, not `{word}`")
        found[name] = read_times(_bytes(Path(filename)), filename)
    return found
