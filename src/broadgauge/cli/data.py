"""`broadgauge data`: text is tokenised once, and how long are its samples?"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broadgauge.messages.prepared_set import PreparedSet
    from broadgauge.tokenizing.preparing import PreparedFolder
    from broadgauge.tokenizing.request import PrepareRequest

_OF_RECORDS = {
    "kind": "--as",
    "field": "--field",
    "messages": "--messages",
    "subset": "--subset",
    "split": "--split",
    "tokenizer": "--tokenizer",
    "template": "--template",
    "loss_on": "--loss-on",
    "max_length": "--max-length",
    "over_length": "--over-length",
}
_UNREAD = {
    "text": ("field", "subset", "split", "over_length"),
    "jsonl": ("subset", "split"),
    "dataset": (),
}
"""Flags that a kind of source has no use for."""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "data",
        help="tokenise data once for trainings, and see how long its samples are",
        description="Prepares data for trainings: samples of token ids in a folder.",
        allow_abbrev=False,
    )
    parser.set_defaults(handler=handle)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    prepare = actions.add_parser(
        "prepare",
        help="tokenise a file or a data set, or make up samples",
        description="Tokenises text, JSON lines or a data set of Hugging Face's library once, and "
        "keeps the result by content; or makes up samples of given count and mean length. Prints "
        "samples and the distribution of their lengths. Nothing is downloaded.",
        allow_abbrev=False,
    )
    _add_source(prepare)
    _add_record_flags(prepare)
    show = actions.add_parser(
        "show",
        help="the same of a set that is there",
        description="Prints a prepared set's counts and lengths, and checks its files' checksums.",
        allow_abbrev=False,
    )
    show.add_argument("folder", metavar="FOLDER", type=Path, help="a prepared set")
    for each in (prepare, show):
        each.add_argument("--json", action="store_true", help="print one JSON object instead")


def _add_source(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "source",
        metavar="SOURCE",
        nargs="?",
        help="a text file, a .jsonl, a folder of `save_to_disk`, or the name of a data set that "
        "this machine has loaded before",
    )
    source.add_argument(
        "--synthetic",
        metavar="samples=N,mean_length=TOKENS[,max_length=,min_length=,sigma=,seed=,vocabulary=]",
        help="make up samples of random tokens whose lengths have this count and mean",
    )
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, help="default: one in the cache, by content"
    )


def _add_record_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as", dest="kind", choices=("text", "jsonl", "dataset"),
        help="what SOURCE is (default: by what is there and its name)",
    )  # fmt: skip
    parser.add_argument("--field", metavar="KEY", help="the records' key of the text (`text`)")
    parser.add_argument(
        "--messages", metavar="KEY", nargs="?", const="messages",
        help="records are conversations: the key of their messages (`messages`)",
    )  # fmt: skip
    parser.add_argument("--subset", metavar="NAME", help="of a data set")
    parser.add_argument("--split", metavar="NAME", help="of a data set (default: train)")
    parser.add_argument(
        "--tokenizer", metavar="bytes|PATH",
        help="a tokenizer.json or the folder of one (default: bytes are the tokens)",
    )  # fmt: skip
    parser.add_argument(
        "--template", choices=("chatml", "tokenizer"),
        help="of conversations (default: the tokenizer's own where it has one, else ChatML)",
    )  # fmt: skip
    parser.add_argument(
        "--loss-on", choices=("all", "assistant"),
        help="of conversations: whose tokens a training learns to predict (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--max-length", metavar="TOKENS", type=_length,
        help="longest sample; of a text file the length of its samples (1024)",
    )  # fmt: skip
    parser.add_argument(
        "--over-length", choices=("drop", "cut", "refuse"),
        help="what becomes of longer records (default: drop)",
    )  # fmt: skip


def _length(text: str) -> int:
    number = int(text) if text.isdecimal() and len(text) < 16 else 0
    if number < 2:
        raise argparse.ArgumentTypeError(f"TOKENS is a whole number from 2 on, not `{text}`")
    return number


def handle(options: argparse.Namespace) -> int:
    if options.action == "show":
        _show_folder(options.folder, as_json=options.json)
        return 0
    made = _make_up(options) if options.synthetic is not None else _prepare(options)
    _show(made.folder, made.described, as_json=options.json, was_there=made.was_there)
    return 0


def _make_up(options: argparse.Namespace) -> "PreparedFolder":
    from broadgauge.specs.errors import InputError
    from broadgauge.tokenizing.synthetic_set import parse_synthetic, prepare_synthetic

    given = [flag for name, flag in _OF_RECORDS.items() if getattr(options, name) is not None]
    if given:
        raise InputError(f"--synthetic reads no records: {', '.join(given)} is not of it")
    return prepare_synthetic(parse_synthetic(options.synthetic), options.out)


def _prepare(options: argparse.Namespace) -> "PreparedFolder":
    from broadgauge.cli.output import say
    from broadgauge.specs.errors import InputError
    from broadgauge.tokenizing.preparing import prepare
    from broadgauge.tokenizing.request import BYTES, PrepareRequest

    is_conversation = options.messages is not None
    if is_conversation and options.field is not None:
        raise InputError("--field and --messages name the same key: one of them")
    if options.template is not None and not is_conversation:
        raise InputError("--template is of conversations", hint="add --messages")
    if options.loss_on is not None and not is_conversation:
        raise InputError("--loss-on is of conversations", hint="add --messages")
    request = PrepareRequest(
        source=options.source,
        kind=options.kind,
        field=options.messages or options.field or "text",
        is_conversation=is_conversation,
        subset=options.subset,
        split=options.split or "train",
        tokenizer=options.tokenizer or BYTES,
        template=options.template,
        loss_on=options.loss_on or "all",
        max_length=options.max_length,
        over_length=options.over_length or "drop",
        out=options.out,
    )
    _refuse_unread(options, request)
    return prepare(request, lambda number: say(f"{number:,} samples"))


def _refuse_unread(options: argparse.Namespace, request: "PrepareRequest") -> None:
    """A flag that this kind of source does not have would change nothing. Raises InputError."""
    from broadgauge.specs.errors import InputError
    from broadgauge.tokenizing.documents import kind_of_source

    kind = kind_of_source(request)
    given = [_OF_RECORDS[name] for name in _UNREAD[kind] if getattr(options, name) is not None]
    if given:
        raise InputError(
            f"`{request.source}` is read as {kind}, where {', '.join(given)} says nothing",
            hint=f"leave {'it' if len(given) == 1 else 'them'} out, or say what it is with --as",
        )


def _show_folder(folder: Path, *, as_json: bool) -> None:
    from broadgauge.messages.prepared_set import (
        PreparedSetError,
        check_content,
        read_prepared_set,
    )
    from broadgauge.specs.errors import InputError

    try:
        described = read_prepared_set(folder)
        check_content(folder, described)
    except PreparedSetError as error:
        raise InputError(str(error)) from error
    _show(folder.absolute(), described, as_json=as_json, was_there=True)


def _show(folder: Path, described: "PreparedSet", *, as_json: bool, was_there: bool) -> None:
    from broadgauge.cli.console import results_console
    from broadgauge.messages.prepared_set import PreparedSetError
    from broadgauge.report.terminal.prepared_set import print_prepared
    from broadgauge.specs.errors import InputError
    from broadgauge.tokenizing.lengths import counts_of

    try:
        counts = counts_of(folder, described.num_tokens)
    except PreparedSetError as error:
        raise InputError(str(error)) from error
    if as_json:
        _write_json(folder, described, counts, was_there=was_there)
        return
    with results_console() as console:
        print_prepared(folder, described, counts, console)


def _write_json(
    folder: Path, described: "PreparedSet", counts: "Mapping[int, int]", *, was_there: bool
) -> None:
    """set.json, where it lies, and the distribution of lengths."""
    import json

    from broadgauge.cli.output import write
    from broadgauge.messages.codec import encode
    from broadgauge.tokenizing.lengths import histogram

    document = {
        "document": "broadgauge prepared set",
        "folder": str(folder),
        "was_there": was_there,
        **encode(described),
        "lengths": {"mean": described.mean_length, **encode(described.lengths)},
        "histogram": encode(histogram(counts)),
    }
    write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
