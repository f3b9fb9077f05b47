"""`broadgauge whatif`: what would a run give on another network, or on more nodes?"""

import argparse
from pathlib import Path
from typing import Any

from broadgauge.results.run_path import RUN_HELP


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "whatif",
        help="what another network would give this run",
        description="Takes a run as its own calibration (its step, its step with communication "
        "off, its own collectives) and models only what changes. Says what was measured and what "
        "was modelled. Lists with commas ask for each combination.",
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--case",
        metavar="KEY=VALUE",
        help="which of its trainings: workload, network, shape, backend (default: the only one, "
        "on its slowest network)",
    )
    parser.add_argument(
        "--network",
        metavar="LIST",
        help="a network of the catalog (`roce-400g`), of the run, or a rate (`25 Gbit/s`) of an "
        "emulated one",
    )
    parser.add_argument("--nodes", metavar="LIST", help="so many nodes, the batch of a rank as is")
    parser.add_argument("--strategy", metavar="LIST", help="ddp, fsdp, hsdp")
    parser.add_argument("--accumulation", metavar="LIST", help="micro-batches a step")
    parser.add_argument("--gradient-dtype", metavar="LIST", help="float32, bfloat16")
    parser.add_argument(
        "--model", metavar="NAME", help="which the run must have trained: another one is refused"
    )
    parser.add_argument("--storage", metavar="NAME", help="a storage of the catalog")
    parser.add_argument(
        "--system", type=Path, metavar="FILE", help="of `calibrate` on the run's machine"
    )
    parser.add_argument(
        "--catalog", type=Path, metavar="FILE", action="append", default=[], help="entries of yours"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    import json

    from broadgauge.catalog.catalog import load_catalog
    from broadgauge.cli.console import results_console
    from broadgauge.cli.output import write
    from broadgauge.predict.runs.cases import pick_case, picked_words
    from broadgauge.predict.system.file import read_system
    from broadgauge.predict.whatif.asked_changes import (
        AskedChanges,
        changes_of,
        check_model,
        notes_of,
    )
    from broadgauge.predict.whatif.whatif import what_if
    from broadgauge.report.predict.whatif import print_whatif, whatif_document
    from broadgauge.results.run_path import read_summary, run_path

    catalog = load_catalog(options.catalog)
    run = read_summary(run_path(options.run))
    base = pick_case(run, options.case)
    check_model(options.model, base, catalog)
    axes = ("network", "nodes", "strategy", "accumulation", "gradient_dtype")
    asked = AskedChanges(**{axis: _items(getattr(options, axis)) for axis in axes})
    changes = changes_of(asked, run, base, catalog)
    picked = picked_words(run, options.case, base)
    notes = notes_of(options.storage, base, changes, catalog)
    notes = notes if picked is None else (picked, *notes)
    system = None if options.system is None else read_system(options.system)
    found = what_if(run, base, changes, system=system, gpus=catalog.gpus)
    if options.json:
        document = whatif_document(found, notes, catalog.replaced)
        write(json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n")
        return 0
    with results_console() as console:
        print_whatif(found, notes, console)
    return 0


def _items(text: str | None) -> tuple[str, ...]:
    """Of a list with commas. Raises InputError."""
    from broadgauge.specs.errors import InputError

    parts = () if text is None else tuple(part.strip() for part in text.split(","))
    if not all(parts):
        raise InputError(f"an empty item in the list `{text}`", hint="`a,b`")
    return parts
