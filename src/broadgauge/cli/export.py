"""`broadgauge export`: a run as CSV or JSON, for other tools."""

import argparse
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "export",
        help="write a run as CSV or JSON",
        description="Writes a run as CSV (one row a trial, or one a collective, size and trial) "
        "or as one JSON object with everything. To stdout unless --output names a file.",
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", help="a run folder, or `last`")
    parser.add_argument("--format", choices=("csv", "json"), required=True)
    parser.add_argument(
        "--table",
        choices=("records", "collectives"),
        default="records",
        help="which rows a CSV has (default: records)",
    )
    parser.add_argument("--output", type=Path, metavar="FILE")
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    from broadgauge.cli.output import write, write_file
    from broadgauge.cli.runs import read_summary, run_path
    from broadgauge.results.export import to_csv, to_json

    run = read_summary(run_path(options.run))
    text = to_json(run) if options.format == "json" else to_csv(run, options.table)
    if options.output is None:
        write(text)
    else:
        write_file(options.output, text)
    return 0
