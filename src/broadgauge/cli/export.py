"""`broadgauge export`: a run as CSV, JSON or Parquet, for other tools."""

import argparse
from pathlib import Path
from typing import Any

from broadgauge.cli.collector import no_collections
from broadgauge.cli.cost_flags import add_measured_flags, read_cost
from broadgauge.results.run_path import RUN_HELP
from broadgauge.results.table_names import TABLE_NAMES


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "export",
        help="write a run as CSV, JSON or Parquet",
        description="Writes a run as CSV or Parquet (one row a trial, or one a collective, size "
        "and trial) or as one JSON object with everything. To stdout unless --output names a file. "
        "With --describe: what the columns mean, in words, CSV, JSON or markdown.",
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", nargs="?", help=RUN_HELP)
    parser.add_argument(
        "--format", "--to", dest="format", choices=("csv", "json", "parquet", "markdown")
    )
    parser.add_argument(
        "--table",
        choices=TABLE_NAMES,
        default="records",
        help="which rows a CSV or a Parquet file has (default: records)",
    )
    parser.add_argument(
        "--describe", action="store_true", help="say what each column means; needs no RUN"
    )
    parser.add_argument("--output", type=Path, metavar="FILE")
    add_measured_flags(parser)
    parser.set_defaults(handler=handle)


@no_collections()
def handle(options: argparse.Namespace) -> int:
    from broadgauge.cli.output import write, write_binary, write_file

    data = _described(options) if options.describe else _exported(options)
    if data is None:
        return 0
    if options.output is not None:
        write_file(options.output, data)
    elif isinstance(data, bytes):
        write_binary(data)
    else:
        write(data)
    return 0


def _exported(options: argparse.Namespace) -> str | bytes:
    """The run's table, or all of it as JSON. Raises InputError."""
    from broadgauge.analysis.store import read_analysed
    from broadgauge.report.export.parquet import to_parquet
    from broadgauge.report.export.run_tables import to_csv, to_json
    from broadgauge.results.run_path import run_path
    from broadgauge.specs.errors import InputError

    if options.run is None:
        raise InputError("which run?", hint="broadgauge export last --format csv")
    if options.format in (None, "markdown"):
        asked = "no --format was given" if options.format is None else "a run is no markdown"
        raise InputError(asked, hint="--format csv, json or parquet")
    analysed = read_analysed(run_path(options.run), read_cost(options))
    match options.format:
        case "json":
            return to_json(analysed)
        case "csv":
            return to_csv(analysed, options.table)
        case _:
            return to_parquet(analysed, options.table)


def _described(options: argparse.Namespace) -> str | None:
    """The dictionary of columns. None: it was printed, for people. Raises InputError."""
    from broadgauge.cli.console import results_console
    from broadgauge.report.export import column_meanings
    from broadgauge.report.terminal.tables import print_table
    from broadgauge.specs.errors import InputError

    match options.format:
        case "markdown":
            return column_meanings.to_markdown()
        case "json":
            return column_meanings.to_json()
        case "csv":
            return column_meanings.to_csv()
        case "parquet":
            raise InputError(
                "the dictionary of columns is no Parquet file",
                hint="--format csv, json or markdown; a Parquet export has it in its fields",
            )
    if options.output is not None:
        raise InputError("no --format was given", hint="--format csv, json or markdown")
    rows = [
        (each.name, each.unit or "–", each.meaning)
        for each in column_meanings.described()
        if each.table == options.table
    ]
    with results_console() as console:
        print_table(("column", "unit", "meaning"), rows, console)
    return None
