"""`broadgauge catalog`: which GPUs, networks, nodes, models, prices are known, and from where?"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broadgauge.catalog.catalog import Catalog
    from broadgauge.catalog.entries import Entry

PROBLEMS_FOUND = 2


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "catalog",
        help="show what is known of GPUs, networks, nodes, models, storage and prices",
        description="Prints known figures, each with its source and date. Your own files have the "
        "same form and come first: --catalog FILE.",
        allow_abbrev=False,
    )
    _add_flags(parser, first=True)
    parser.set_defaults(handler=handle, action=None)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    kind = actions.add_parser("list", help="a line an entry", allow_abbrev=False)
    kind.add_argument(
        "kind",
        metavar="KIND",
        nargs="?",
        help="gpus, networks, transports, nodes, models, storage, prices, busbw, fabrics, "
        "frameworks or constants; all without it",
    )
    show = actions.add_parser("show", help="every figure, with its source", allow_abbrev=False)
    show.add_argument(
        "name",
        metavar="NAME",
        help="a name or alias; a network: `roce-400g*8`; the path of a model's config.json",
    )
    check = actions.add_parser(
        "check", help="find missing sources and impossible values", allow_abbrev=False
    )
    check.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        type=Path,
        help="a catalog file of yours; without one, what is shipped is checked",
    )
    for each in (kind, show, check):
        _add_flags(each, first=False)


def _add_flags(parser: argparse.ArgumentParser, *, first: bool) -> None:
    """Before or after the action: what is given after it must not undo what stands before."""
    parser.add_argument(
        "--catalog",
        action="append",
        type=Path,
        metavar="FILE",
        dest="catalog" if first else "catalog_after",
        help="a file of your own entries; may be repeated, the last of a name wins",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        dest="json" if first else "json_after",
        help="print one JSON object instead",
    )


def handle(options: argparse.Namespace) -> int:
    from broadgauge.catalog.catalog import load_catalog

    files = [*(options.catalog or ()), *(getattr(options, "catalog_after", None) or ())]
    as_json = options.json or getattr(options, "json_after", False)
    if options.action == "check":
        return _check(files, options.files, as_json=as_json)
    catalog = load_catalog(files)
    if options.action == "show":
        _show(options.name, catalog, as_json=as_json)
    elif options.action == "list":
        _list(options.kind, catalog, as_json=as_json)
    else:
        _overview(catalog, as_json=as_json)
    return 0


def _overview(catalog: "Catalog", *, as_json: bool) -> None:
    from broadgauge.cli.console import results_console
    from broadgauge.report.terminal.catalog import KINDS, print_overview

    if as_json:
        _write_json({"kinds": {kind: len(catalog.entries(kind)) for kind in KINDS}})
        return
    with results_console() as console:
        print_overview(catalog, console)


def _list(kind: str | None, catalog: "Catalog", *, as_json: bool) -> None:
    from broadgauge.cli.console import results_console
    from broadgauge.report.terminal.catalog import KINDS, print_kind, print_replaced
    from broadgauge.specs.base import did_you_mean
    from broadgauge.specs.errors import InputError

    if kind is not None and kind not in KINDS and f"{kind}s" in KINDS:
        kind = f"{kind}s"
    if kind is not None and kind not in KINDS:
        raise InputError(f"no kind is named `{kind}`", hint=did_you_mean(kind, KINDS))
    kinds = KINDS if kind is None else (kind,)
    if as_json:
        entries = {each: [_plain(entry) for entry in catalog.entries(each)] for each in kinds}
        _write_json(entries | {"notes": list(map(str, catalog.replaced))})
        return
    with results_console() as console:
        for each in kinds:
            print_kind(each, catalog, console)
        print_replaced(catalog, console)


def _show(name: str, catalog: "Catalog", *, as_json: bool) -> None:
    from broadgauge.cli.console import results_console
    from broadgauge.report.terminal.catalog import print_entry, print_replaced

    found = catalog.named(name) or (("networks", _network(name, catalog)),)
    if as_json:
        entries = [{"kind": kind, **_plain(entry)} for kind, entry in found]
        _write_json({"entries": entries, "notes": list(map(str, catalog.replaced))})
        return
    with results_console() as console:
        for kind, entry in found:
            print_entry(kind, entry, catalog, console)
        print_replaced(catalog, console)


def _network(name: str, catalog: "Catalog") -> "Entry":
    """A network that is written, not named. Raises InputError with the nearest name of any kind."""
    from broadgauge.catalog.networks import parse_network
    from broadgauge.report.terminal.catalog import KINDS
    from broadgauge.specs.base import did_you_mean
    from broadgauge.specs.errors import InputError

    network = parse_network(name, catalog.networks, catalog.transports)
    if network is not None:
        return network
    names = [each for kind in KINDS for entry in catalog.entries(kind) for each in entry.names()]
    hint = did_you_mean(name.lower(), names) or "`broadgauge catalog list` prints all"
    raise InputError(f"the catalog has nothing of the name `{name}`", hint=hint)


def _check(extra: list[Path], files: list[Path], *, as_json: bool) -> int:
    """One line a problem. Returns the exit code."""
    from datetime import UTC, datetime

    from broadgauge.catalog.catalog import ALL_KINDS, load_catalog
    from broadgauge.catalog.checks import check_catalog
    from broadgauge.cli.output import say, write
    from broadgauge.specs.errors import ExperimentError

    try:
        catalog = load_catalog([*extra, *files])
    except ExperimentError as error:
        lines = [str(problem).replace("\n  hint:", ";") for problem in error.problems]
        number = 0
    else:
        today = datetime.now(UTC).date()
        found = check_catalog(catalog, only_own=bool(files), today=today)
        lines = [str(each) for each in found]
        shipped = sum(len(catalog.entries(kind)) for kind in ALL_KINDS)
        number = len(catalog.places) if files else shipped
    if as_json:
        _write_json({"checked": number, "problems": lines})
    else:
        write("".join(f"{line}\n" for line in lines))
        problems = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
        checked = f"{number} {'entry' if number == 1 else 'entries'} checked: " if number else ""
        say(f"{checked}{problems if lines else 'no problem'}")
    return PROBLEMS_FOUND if lines else 0


def _plain(entry: "Entry") -> dict[str, Any]:
    return entry.model_dump(mode="json", by_alias=True)


def _write_json(document: dict[str, Any]) -> None:
    import json

    from broadgauge.cli.output import write

    head = {"format": "broadgauge catalog"}
    write(json.dumps(head | document, indent=2, allow_nan=False, ensure_ascii=False) + "\n")
