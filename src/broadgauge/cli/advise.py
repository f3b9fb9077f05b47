"""`broadgauge advise`: which storage for which phase of a training?"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broadgauge.specs.storage_table import StorageTable

HINT = "`broadgauge advise skypilot-2025` shows the advice on published figures"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "advise",
        help="choose a storage for batches, model and checkpoints",
        description="Chooses a storage for each phase of a training (loading batches, loading the "
        "model, saving checkpoints) from how long training waits for each, under needs like "
        "durable checkpoints; says which need decided, what it costs, and how often to save.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "table",
        metavar="TABLE",
        help="a run that measured storages, a file of figures (docs/storage.md), or those of an "
        "article: skypilot-2025",
    )
    parser.add_argument(
        "--write",
        metavar="FILE",
        help="keep the figures in a file, to be changed and advised on again",
    )
    parser.add_argument(
        "--set",
        dest="overrides",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change a part of the file first: --set job.saves=24",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    import json

    from broadgauge.advise.storage.choosing import advise
    from broadgauge.cli.console import results_console
    from broadgauge.cli.output import write
    from broadgauge.report.storage_json import advice_document
    from broadgauge.report.terminal_storage import print_advice

    table = _read(options.table, options.overrides)
    if options.write is not None:
        _keep(table, Path(options.write))
    advice = advise(table)
    if options.json:
        write(json.dumps(advice_document(advice), indent=2) + "\n")
    else:
        title = f"A storage for each phase, by {options.table}"
        with results_console() as console:
            print_advice(advice, title, console)
    return 0


def _read(name: str, overrides: list[str]) -> "StorageTable":
    """Raises InputError, RunFolderError."""
    from broadgauge.catalog.storage_tables import PUBLISHED
    from broadgauge.specs.errors import InputError
    from broadgauge.specs.reading_as import read_as
    from broadgauge.specs.storage_table import StorageTable

    if name in PUBLISHED:
        return read_as(StorageTable, PUBLISHED[name]().model_dump_json(), name, overrides)
    if (run := _run_named(name)) is not None:
        text = _table_of_run(run).model_dump_json(exclude_defaults=True)
        return read_as(StorageTable, text, name, overrides)
    try:
        text = Path(name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{name}: no such file", hint=HINT) from None
    except UnicodeDecodeError as error:
        message = f"{name}: not a text file (byte {error.start} is no UTF-8)"
        raise InputError(message, hint=HINT) from None
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}", hint=HINT) from None
    return read_as(StorageTable, text, name, overrides)


def _run_named(name: str) -> Path | None:
    """None: a file, or nothing that is there. Raises RunFolderError, of several runs too."""
    from broadgauge.results.run_path import run_path

    path = run_path(name)
    return path if path.is_dir() else None


def _table_of_run(path: Path) -> "StorageTable":
    """Raises InputError where it measured no storage."""
    from broadgauge.advise.storage.from_run import cache_notes, measured_storages, table_of_cases
    from broadgauge.results.summary import summarise_stored
    from broadgauge.specs.errors import InputError

    measured = measured_storages(summarise_stored(path))
    if measured is None:
        raise InputError(
            f"{path}: this run measured no storage",
            hint="a workload `kind: storage` and `storages` (docs/storage.md)",
        )
    notes = list(cache_notes(measured.cases))
    if measured.left_out:
        notes.append(f"left out, being of another shape or network: {', '.join(measured.left_out)}")
    return table_of_cases(measured.cases, note="; ".join(notes) or None)


def _keep(table: "StorageTable", path: Path) -> None:
    """Raises InputError: a file that is there is not replaced."""
    from broadgauge.specs.errors import InputError
    from broadgauge.specs.writing import dump_data

    text = dump_data(table.model_dump(mode="json", exclude_none=True))
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{path} is there already", hint="another name for --write") from None
    except OSError as error:
        raise InputError(f"{path} can't be written: {error.strerror}") from error
