"""How does a source of text become a prepared set: tokenised once, and found again by content?

The key is a hash of the source's content, the tokenizer's file, the template and the settings.
What changes one of these makes another set; a path or a time of day does not.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from broadgauge.messages.prepared_set import PreparedSet
from broadgauge.probes.trial import RefusedError
from broadgauge.specs.errors import InputError
from broadgauge.tokenizing.chat import ChatTemplate, chat_template
from broadgauge.tokenizing.documents import content_sha256, kind_of_source
from broadgauge.tokenizing.places import key_of, place_of, set_there
from broadgauge.tokenizing.request import BYTES, DEFAULT_BLOCK, PrepareRequest, SourceKind
from broadgauge.tokenizing.samples import Tally, samples_of
from broadgauge.tokenizing.tokenizer import ByteTokenizer, FileTokenizer, open_tokenizer
from broadgauge.tokenizing.writing import Draft, SetWriter, drafting

Tell = Callable[[int], None]
"""Told of the samples that are written, now and then."""
TELL_EVERY = 100_000
NO_END = "samples end without an end token: the tokenizer's settings name none"
BLOCKS = "the text is cut into samples of equal length, wherever that is"
_Stamp = tuple[int, int]
"""Of a file: its size in bytes, and when it was changed, in nanoseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedFolder:
    folder: Path
    described: PreparedSet
    was_there: bool
    """Nothing was done: a set of this key was prepared before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """A request with all that it names opened."""

    request: PrepareRequest
    kind: SourceKind
    tokenizer: ByteTokenizer | FileTokenizer
    template: ChatTemplate | None
    stamp: _Stamp | None
    """The source's, before its content was hashed; None: a data set, which its library holds
    still."""
    content_sha256: str

    @property
    def key(self) -> str:
        request = self.request
        is_text = self.kind == "text"
        # Sets without a mask keep the keys that they had before there was one.
        masked = {} if request.loss_on == "all" else {"loss_on": request.loss_on}
        return key_of(
            masked
            | {
                "content": self.content_sha256,
                "kind": "text" if is_text else "records",
                "field": None if is_text else request.field,
                "template": None if self.template is None else self.template.sha256,
                "tokenizer": self.tokenizer.sha256 or BYTES,
                "max_length": _block(request) if is_text else request.max_length,
                "over_length": None if is_text else request.over_length,
            }
        )


def prepare(request: PrepareRequest, tell: Tell = lambda _: None) -> PreparedFolder:
    """Raises InputError with the place of what is wrong."""
    with _in_words(request):
        job = _open(request)
        final = place_of(request.out, job.key)
        if (found := set_there(final, job.key)) is not None:
            return PreparedFolder(folder=final, described=found, was_there=True)
        with drafting(final) as draft:
            described = _write(job, draft, tell)
        return PreparedFolder(folder=final, described=described, was_there=False)


@contextmanager
def _in_words(request: PrepareRequest) -> Iterator[None]:
    try:
        yield
    except RefusedError as error:
        raise InputError(str(error)) from error
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"the source `{request.source}` can't be read: {reason}") from error


def _open(request: PrepareRequest) -> _Job:
    kind = kind_of_source(request)
    if kind == "text" and request.is_conversation:
        raise InputError(f"`{request.source}` is read as text, which holds no conversations",
                         hint="--as jsonl, if its lines are JSON")  # fmt: skip
    if request.loss_on != "all" and not request.is_conversation:
        raise InputError("a loss on what the assistant says is of conversations")
    tokenizer = open_tokenizer(request.tokenizer)
    template = chat_template(tokenizer, request.template) if request.is_conversation else None
    return _Job(
        request=request,
        kind=kind,
        tokenizer=tokenizer,
        template=template,
        stamp=_stamp(request, kind),
        content_sha256=content_sha256(request, kind),
    )


def _write(job: _Job, draft: Draft, tell: Tell) -> PreparedSet:
    tally = Tally()
    samples = samples_of(job.request, job.kind, job.tokenizer, job.template, tally)
    is_masked = job.request.loss_on != "all"
    with SetWriter(draft.folder, job.tokenizer.vocabulary, is_masked=is_masked) as writer:
        for number, sample in enumerate(samples, start=1):
            writer.add(sample.ids, sample.counted)
            if number % TELL_EVERY == 0:
                tell(number)
    if _stamp(job.request, job.kind) != job.stamp:
        raise InputError(f"`{job.request.source}` was changed while it was read")
    if not writer.num_samples:
        raise InputError(
            f"`{job.request.source}` gives no sample: {tally.words or 'it is empty'}",
            hint="--max-length and --over-length decide about long records",
        )
    described = PreparedSet(
        key=job.key,
        source=_source_words(job, tally),
        source_sha256=job.content_sha256,
        tokenizer=job.tokenizer.words,
        tokenizer_sha256=job.tokenizer.sha256,
        template=None if job.template is None else job.template.words,
        vocabulary=job.tokenizer.vocabulary,
        token_bytes=writer.token_bytes,
        num_samples=writer.num_samples,
        num_tokens=writer.num_tokens,
        lengths=writer.lengths,
        num_records=tally.num_records,
        left_out=dict(sorted(tally.left_out.items())),
        num_cut=tally.num_cut,
        num_counted=writer.num_counted if is_masked else None,
        notes=_notes(job),
        files=writer.files,
    )
    draft.describe(described)
    return described


def _source_words(job: _Job, tally: Tally) -> str:
    request = job.request
    if job.kind == "text":
        return f"{_shown(job)}, {tally.num_records:,} blocks of {_block(request)} tokens"
    parts = [_shown(job)]
    if job.kind == "dataset":
        parts += [part for part in (request.subset, request.split) if part]
    what = "conversations" if request.is_conversation else "texts"
    return f"{' '.join(parts)}, `{request.field}` of {tally.num_records:,} records: {what}"


def _shown(job: _Job) -> str:
    """The source's name; a byte of it that is no UTF-8 can't stand in set.json."""
    return job.request.source.encode(errors="backslashreplace").decode()


def _block(request: PrepareRequest) -> int:
    return DEFAULT_BLOCK if request.max_length is None else request.max_length


def _notes(job: _Job) -> tuple[str, ...]:
    if job.kind == "text":
        return (BLOCKS,)
    lacks_end = isinstance(job.tokenizer, FileTokenizer) and not job.tokenizer.ends_samples
    return (NO_END,) if lacks_end and job.template is None else ()


def _stamp(request: PrepareRequest, kind: SourceKind) -> _Stamp | None:
    """None: a data set, or no file."""
    path = Path(request.source)
    if kind == "dataset" or not path.is_file():
        return None
    found = path.stat()
    return found.st_size, found.st_mtime_ns
