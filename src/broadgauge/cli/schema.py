"""`broadgauge schema`: what may stand in an experiment file?"""

import argparse
from typing import Any


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "schema",
        help="print the JSON Schema of experiment files",
        description="Prints the JSON Schema of experiment files, for editors and for reading.",
        allow_abbrev=False,
    )
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    import json

    from broadgauge.cli.output import write
    from broadgauge.specs.text.schema import experiment_schema

    assert options.command == "schema"
    write(json.dumps(experiment_schema(), indent=2) + "\n")
    return 0
