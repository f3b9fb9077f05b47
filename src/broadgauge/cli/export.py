"""`broadgauge export`: a run as CSV, JSON or Parquet, for other tools."""

import argparse
from pathlib import Path
from typing import Any

from broadgauge.results.run_path import RUN_HELP
from broadgauge.results.table_names import TABLE_NAMES


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "export",
        help="write a run as CSV, JSON or Parquet",
        description="Writes a run as CSV or Parquet (one row a trial, or one a collective, size "
        "and trial) or as one JSON object with everything. To stdout unless --output names a file.",
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--format", "--to", dest="format", choices=("csv", "json", "parquet"), required=True
    )
    parser.add_argument(
        "--table",
        choices=TABLE_NAMES,
        default="records",
        help="which rows a CSV or a Parquet file has (default: records)",
    )
    parser.add_argument("--output", type=Path, metavar="FILE")
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    from broadgauge.analysis.store import read_analysed
    from broadgauge.cli.output import write, write_binary, write_file
    from broadgauge.report.export import to_csv, to_json
    from broadgauge.report.parquet import to_parquet
    from broadgauge.results.run_path import run_path

    analysed = read_analysed(run_path(options.run))
    data: str | bytes
    match options.format:
        case "json":
            data = to_json(analysed)
        case "csv":
            data = to_csv(analysed, options.table)
        case _:
            data = to_parquet(analysed, options.table)
    if options.output is not None:
        write_file(options.output, data)
    elif isinstance(data, bytes):
        write_binary(data)
    else:
        write(data)
    return 0
