"""Where do logs come from? Files, folders of them, archives of one file, or a pipe."""

import bz2
import codecs
import functools
import gzip
import importlib
import io
import lzma
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from broadgauge.doctor.log.lines import BLOCK_BYTES
from broadgauge.specs.errors import InputError

STDIN = "-"
READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)
"""What a cut or damaged archive raises while it is read."""
_ARCHIVES = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_FOREIGN = {
    b"PK\x03\x04": ("a zip archive", "unpack it and name the folder"),
    b"7z\xbc\xaf": ("a 7z archive", "unpack it and name the folder"),
    b"\x7fELF": ("a program", "name what it printed"),
    b"\x93NUMPY": ("an array of numpy's", "name what the job printed"),
}
_HEAD_BYTES = 6
_LARGE_WORDS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_PIPES = ("/dev/fd/", "/dev/stdin", "/proc/")
"""What a shell names a pipe that it made: `--log <(zcat x)`."""
_LOG_SUFFIXES = (".log", ".txt", ".out", ".err", ".stdout", ".stderr")
_LOG_NAME = re.compile(
    rf"({'|'.join(map(re.escape, _LOG_SUFFIXES))})\b|^(stdout|stderr|log|nccl)", re.IGNORECASE
)
_OTHER_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".json")
"""What a log may also end with where a user names it: compressed, or of lines of JSON."""
_NO_LOG = (".npy", ".json", ".jsonl", ".html", ".yaml", ".py", ".pt", ".bin", ".safetensors")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Source:
    """One stream of bytes."""

    name: str
    """As the user wrote it, or the file's path in the folder that was named."""
    open: Callable[[], Iterator[bytes]]
    """From its beginning; may raise one of READ_ERRORS on the way."""


def is_called_like_log(path: Path) -> bool:
    """Is this the name of a log, and not that of a run? Of what isn't there to be looked at."""
    return path.suffix in (*_LOG_SUFFIXES, *_OTHER_SUFFIXES)


def text_source(text: str | bytes, name: str = STDIN) -> Source:
    """What is in memory already."""
    data = text.encode() if isinstance(text, str) else text
    return Source(name, lambda: iter((data,)))


def open_sources(paths: Sequence[str | Path]) -> Iterator[Source]:
    """Every file of these, in their order. Raises InputError for what is not there or no log."""
    for path in paths:
        name = str(path)
        if name == STDIN:
            yield Source(STDIN, lambda: _decoded(sys.stdin.buffer))
        elif _is_folder(Path(path)):
            yield from _of_folder(Path(path))
        else:
            yield _of_file(Path(path))


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"{path} can't be read: {error.strerror or error}",
        hint="a log file, a folder of logs, or - for stdin",
    )


def _of_folder(folder: Path) -> Iterator[Source]:
    try:
        found = [
            path
            for path in folder.rglob("*")
            if path.is_file() and not path.name.endswith(_NO_LOG) and _LOG_NAME.search(path.name)
        ]
    except OSError as error:
        raise _unreadable(folder, error) from error
    if not found:
        raise InputError(
            f"no log in the folder {folder}",
            hint="files named *.log, *.out, *.err or *.txt are read; name others one by one",
        )
    for path in sorted(found, key=_written_order):
        yield Source(str(path), functools.partial(_opened, path))


def _written_order(path: Path) -> tuple[str, int, str]:
    """`x.log.2.gz`, `x.log.1`, `x.log`: of rotated files the highest number is the oldest."""
    stem, separator, rest = path.name.partition(".log")
    numbers = _NUMBER.findall(rest) if separator else []
    is_rotated = len(numbers) == 1
    age = -int(numbers[0]) if is_rotated else 0
    return f"{path.parent}/{stem}{'' if is_rotated else rest}", age, path.name


def _of_file(path: Path) -> Source:
    """Asked now what it is: one that was named and is no log is a mistake of the user's."""
    if str(path).startswith(_PIPES):
        return Source(str(path), functools.partial(_opened, path))
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            with path.open("rb") as file:
                _refuse_foreign(path, file.read(_HEAD_BYTES))
    except OSError as error:
        raise _unreadable(path, error) from error
    if stat.S_ISFIFO(mode):
        raise InputError(f"{path} is a named pipe", hint=f"read it as stdin: --log - < {path}")
    if not stat.S_ISREG(mode) and str(path) != "/dev/null":
        raise InputError(f"{path} is a device or a socket, no log", hint="name a file of text")
    return Source(str(path), functools.partial(_opened, path))


def _refuse_foreign(path: Path, head: bytes) -> None:
    for magic, (kind, hint) in _FOREIGN.items():
        if head.startswith(magic):
            raise InputError(f"{path} is {kind}, no log", hint=hint)


def _opened(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from _decoded(file)


def _decoded(file: IO[bytes]) -> Iterator[bytes]:
    """Without compression, and as UTF-8. Raises UnreadableError for what is no text."""
    head = b""
    while len(head) < _HEAD_BYTES and (more := file.read(_HEAD_BYTES - len(head))):
        head += more
    for magic, (kind, _) in _FOREIGN.items():
        if head.startswith(magic):
            raise UnreadableError(f"it is {kind}, no log")
    whole = io.BufferedReader(_Rejoined(head, file), BLOCK_BYTES)
    kind_of = next((kind for magic, kind in _ARCHIVES.items() if head.startswith(magic)), None)
    if kind_of is not None:
        yield from _decompressed(whole, kind_of)
        return
    encoding = _encoding_of(head)
    chunks = _chunks(whole)
    yield from chunks if encoding is None else _recoded(chunks, encoding)


class UnreadableError(OSError):
    """What is no log, or can't be unpacked here; found while it is read."""


class _Rejoined(io.RawIOBase):
    """A file of which the first bytes were read already; a pipe can't go back."""

    def __init__(self, head: bytes, file: IO[bytes]) -> None:
        self._head = head
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._head or self._file.read(len(buffer))
        self._head = b""
        data, self._head = data[: len(buffer)], data[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


def _encoding_of(head: bytes) -> str | None:
    """None: a byte is a character, or UTF-8. Windows' shells write UTF-16."""
    for mark, encoding in _LARGE_WORDS.items():
        if head.startswith(mark):
            return encoding
    if len(head) >= 4 and head[1] == head[3] == 0 and head[0] != 0 and head[2] != 0:
        return "utf-16-le"
    return None


def _recoded(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode(errors="replace")
    yield decoder.decode(b"", final=True).encode(errors="replace")


def _decompressed(file: IO[bytes], kind: str) -> Iterator[bytes]:
    if kind == "zstd":
        unpacked, damage = _zstd(file)
        try:
            yield from _chunks(unpacked)
        except damage as error:
            raise UnreadableError(str(error)) from error
        return
    with _unpacked(file, kind) as whole:
        yield from _chunks(whole)


def _unpacked(file: IO[bytes], kind: str) -> gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile:
    if kind == "gzip":
        return gzip.GzipFile(fileobj=file)
    return bz2.BZ2File(file) if kind == "bzip2" else lzma.LZMAFile(file)


def _zstd(file: IO[bytes]) -> tuple[Any, type[Exception]]:
    """By Python 3.14's own module, or the package zstandard where somebody installed it."""
    for module_name in ("compression.zstd", "zstandard"):
        try:
            module: Any = importlib.import_module(module_name)
        except ImportError:
            continue
        return module.open(file, "rb"), module.ZstdError
    raise UnreadableError("it is compressed by zstd, which this Python can't read: zstd -dc FILE")


def _chunks(file: Any) -> Iterator[bytes]:
    """By single reads: what was unpacked before a damaged place is not lost."""
    while chunk := file.read1(BLOCK_BYTES):
        yield chunk
