"""Where do logs come from? Files, folders of them, archives of one file, or a pipe."""

import bz2
import gzip
import importlib
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

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
_FOREIGN = {b"PK\x03\x04": "zip", b"7z\xbc\xaf": "7z"}
_LOG_NAME = re.compile(
    r"\.(log|txt|out|err|stdout|stderr)\b|^(stdout|stderr|log|nccl)", re.IGNORECASE
)
_NO_LOG = (".npy", ".json", ".jsonl", ".html", ".yaml", ".py", ".pt", ".bin", ".safetensors")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Source:
    """One stream of bytes."""

    name: str
    """As the user wrote it, or the file's path in the folder that was named."""
    open: Callable[[], Iterator[bytes]]
    """From its beginning; may raise one of READ_ERRORS on the way."""


def text_source(text: str | bytes, name: str = STDIN) -> Source:
    """What is in memory already."""
    data = text.encode() if isinstance(text, str) else text
    return Source(name, lambda: _chunks(io.BytesIO(data)))


def open_sources(paths: Sequence[str | Path]) -> Iterator[Source]:
    """Every file of these, in their order. Raises InputError for what is not there or no log."""
    for path in paths:
        name = str(path)
        if name == STDIN:
            yield Source(STDIN, lambda: _chunks(sys.stdin.buffer))
        elif Path(path).is_dir():
            yield from _of_folder(Path(path))
        else:
            yield _of_file(Path(path))


def _of_folder(folder: Path) -> Iterator[Source]:
    found = [
        path
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(_NO_LOG) and _LOG_NAME.search(path.name)
    ]
    if not found:
        raise InputError(
            f"no log in the folder {folder}",
            hint="files named *.log, *.out, *.err or *.txt are read; name others one by one",
        )
    for path in sorted(found, key=_written_order):
        yield _of_file(path)


def _written_order(path: Path) -> tuple[str, int, str]:
    """`x.log.2.gz`, `x.log.1`, `x.log`: of rotated files the highest number is the oldest."""
    stem, separator, rest = path.name.partition(".log")
    numbers = _NUMBER.findall(rest) if separator else []
    is_rotated = len(numbers) == 1
    age = -int(numbers[0]) if is_rotated else 0
    return f"{path.parent}/{stem}{'' if is_rotated else rest}", age, path.name


def _of_file(path: Path) -> Source:
    try:
        with path.open("rb") as file:
            head = file.read(6)
    except OSError as error:
        raise InputError(
            f"{path} can't be read: {error.strerror or error}",
            hint="a log file, a folder of logs, or - for stdin",
        ) from error
    foreign = next((kind for magic, kind in _FOREIGN.items() if head.startswith(magic)), None)
    if foreign is not None:
        raise InputError(f"{path} is a {foreign} archive", hint="unpack it and name the folder")
    return Source(str(path), lambda: _chunks(_opened(path, head)))


def _opened(path: Path, head: bytes) -> IO[bytes]:
    kind = next((kind for magic, kind in _ARCHIVES.items() if head.startswith(magic)), None)
    match kind:
        case "gzip":
            return cast("IO[bytes]", gzip.open(path, "rb"))
        case "bzip2":
            return bz2.open(path, "rb")
        case "xz":
            return lzma.open(path, "rb")
        case "zstd":
            return _zstd(path)
    return path.open("rb")


def _zstd(path: Path) -> IO[bytes]:
    """By Python 3.14's own module, or the package zstandard where somebody installed it."""
    for module_name in ("compression.zstd", "zstandard"):
        try:
            module: Any = importlib.import_module(module_name)
        except ImportError:
            continue
        opened: IO[bytes] = module.open(path, "rb")
        return opened
    raise InputError(
        f"{path} is compressed by zstd, which this Python can't read",
        hint=f"zstd -dc {path} | broadgauge doctor --log -",
    )


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    """As they come: a pipe's lines are not held back until a block is full."""
    descriptor = None
    if isinstance(file, io.BufferedReader) and not isinstance(file.raw, io.BytesIO):
        descriptor = _descriptor(file)
    with file:
        while True:
            chunk = (
                os.read(descriptor, BLOCK_BYTES)
                if descriptor is not None
                else file.read(BLOCK_BYTES)
            )
            if not chunk:
                return
            yield chunk


def _descriptor(file: IO[bytes]) -> int | None:
    try:
        return file.fileno()
    except (OSError, ValueError):
        return None
