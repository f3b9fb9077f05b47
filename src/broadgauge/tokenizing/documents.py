"""Which texts does a source hold? Read piece by piece, never whole."""

import codecs
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broadgauge.messages.prepared_set import file_sha256
from broadgauge.messages.tasks import DatasetText
from broadgauge.probes.training.records import (
    Records,
    dataset_rows,
    json_lines,
    text_in,
    utf8,
    value_in,
)
from broadgauge.probes.trial import RefusedError
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError
from broadgauge.tokenizing.chat import ChatTemplate, ConversationError, check_messages
from broadgauge.tokenizing.request import PrepareRequest, SourceKind
from broadgauge.tokenizing.turns import Turn, TurnsOfText, written_turns
from broadgauge.wording.file_kinds import special_kind

LINE_ENDINGS = (".jsonl", ".ndjson")
PIECE_BYTES = 1 << 20
"""Of a text file so much is tokenised at once, cut behind a line feed."""


def kind_of_source(request: PrepareRequest) -> SourceKind:
    """Told by the request, else by what is there and its name. Raises InputError."""
    if not request.source:
        raise InputError("the name of the source is empty", hint="a file, or a data set's name")
    path = Path(request.source)
    if request.kind is not None:
        return request.kind
    if path.is_dir():
        return "dataset"
    if path.is_file():
        return "jsonl" if path.suffix.lower() in LINE_ENDINGS else "text"
    if path.exists():
        kind = special_kind(path.stat().st_mode)
        raise InputError(f"the source `{path}` is {kind or 'something else'}, no file")
    if not _may_be_hub_name(request.source):
        raise no_file(path)
    return "dataset"


def _may_be_hub_name(name: str) -> bool:
    """`squad`, `openai/gsm8k`; not `data.jsonl`, `./data` or a path of several folders. Source:
    huggingface_hub, `validate_repo_id`."""
    owner, slash, rest = name.partition("/")
    is_plain = "/" not in rest and not name.startswith((".", "/", "~"))
    return is_plain and bool(slash or not Path(owner).suffix)


def no_file(path: Path) -> InputError:
    if path.exists():
        return InputError(f"`{path}` is {'a folder' if path.is_dir() else 'no file'}, and not text")
    around = path.parent.iterdir() if path.parent.is_dir() else ()
    near = did_you_mean(path.name, (file.name for file in around if file.is_file()))
    return InputError(f"no file `{path}`", hint=near)


def content_sha256(request: PrepareRequest, kind: SourceKind) -> str:
    """Of a file's bytes; of a data set's rows what is in the field, as JSON.

    Raises InputError and RefusedError.
    """
    if kind != "dataset":
        return _file_sha256(Path(request.source))
    digest = hashlib.sha256()
    for place, record in rows_of(request, kind):
        value = value_in(record, request.field, place)
        digest.update(json.dumps(value, default=repr).encode() + b"\n")
    return digest.hexdigest()


def _file_sha256(path: Path) -> str:
    if not path.is_file():
        raise no_file(path)
    try:
        return file_sha256(path)
    except OSError as error:
        raise InputError(f"`{path}` can't be read: {error.strerror}") from error


def rows_of(request: PrepareRequest, kind: SourceKind) -> Records:
    """Lines of JSON, or rows of a data set, each with its place."""
    if kind == "jsonl":
        return json_lines(Path(request.source))
    return dataset_rows(
        DatasetText(
            dataset=request.source,
            subset=request.subset,
            split=request.split,
            field=request.field,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordText:
    """One record's text."""

    place: str
    text: str
    turns: tuple[Turn, ...] | None = None
    """What the assistant says in it; None: nobody asked."""


def documents_of(
    rows: Records, request: PrepareRequest, template: ChatTemplate | None
) -> Iterator[RecordText]:
    """Of each record; with a template the conversation's. Raises RefusedError that names the record
    where it lacks the field or holds something else."""
    field = request.field
    for place, record in rows:
        if template is None:
            found = RecordText(place=place, text=text_in(record, field, place))
        else:
            value = value_in(record, field, place)
            found = _conversation(value, place, request, template)
        utf8(found.text, field, place)
        yield found


def _conversation(
    value: Any, place: str, request: PrepareRequest, template: ChatTemplate
) -> RecordText:
    try:
        messages = check_messages(value, request.field)
        if request.loss_on == "all":
            return RecordText(place=place, text=template.render(messages) if messages else "")
        written = written_turns(messages, template) if messages else TurnsOfText(text="", turns=())
        return RecordText(place=place, text=written.text, turns=written.turns)
    except ConversationError as error:
        raise RefusedError(f"{place}: {error}") from error


def pieces_of(path: Path) -> Iterator[str]:
    """A text file in pieces of about PIECE_BYTES, each but the last ending with a line feed where
    its part of the file has one. Raises InputError where it is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    held = ""
    with path.open("rb") as file:
        while True:
            begin = file.tell()
            data = file.read(PIECE_BYTES)
            held += _decoded(decoder, data, path, begin)
            if not data:
                break
            cut = held.rfind("\n") + 1 or len(held)
            if cut:
                yield held[:cut]
            held = held[cut:]
    if held:
        yield held


def _decoded(decoder: codecs.IncrementalDecoder, data: bytes, path: Path, begin: int) -> str:
    waiting = len(decoder.getstate()[0])
    try:
        return decoder.decode(data, final=not data)
    except UnicodeDecodeError as error:
        place = begin - waiting + error.start
        raise InputError(
            f"`{path}` is not UTF-8: {error.reason}, byte {place + 1}",
            hint="the tokenizer `bytes` takes any file",
        ) from error
