"""How are records kept so that no end of the process, of the disk or of the power loses one?

`records.jsonl` holds one record a line. A line counts once its newline is there; it is synced
before the trial counts as stored. A last line that is torn (no newline, or no JSON) belongs to no
stored trial: readers pass over it, resuming cuts it. A broken line before the last is nobody's
doing here: it is an error that names it, and it is kept.
"""

import contextlib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import from_json

from broadgauge.results.folder import disk
from broadgauge.results.folder.unreadable import why_unreadable
from broadgauge.results.folder.usable_figures import without_unusable
from broadgauge.specs.errors import RunFolderError
from broadgauge.specs.records.record import SCHEMA_VERSION, Record

RECORDS_FILE = "records.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRecords:
    """What a records file says."""

    records: tuple[Record, ...]
    good_bytes: int
    """Length of the file without its torn last line."""
    torn_bytes: int
    sha256: str
    """Of the good bytes."""


def read_records(path: Path) -> ReadRecords:
    """Every stored record, in order. Raises RunFolderError, with file:line where one is broken."""
    with disk.telling("read", path):
        data = disk.read_whole(path, flags=os.O_NOFOLLOW)
    *lines, torn = data.split(b"\n")
    records: list[Record] = []
    for number, line in enumerate(lines, start=1):
        record = _read(line, f"{path}:{number}", is_last=number == len(lines) and not torn)
        if record is None:
            torn = line + b"\n"
        else:
            records.append(without_unusable(record))
    _refuse_twins(path, records)
    good_bytes = len(data) - len(torn)
    return ReadRecords(
        records=tuple(records),
        good_bytes=good_bytes,
        torn_bytes=len(torn),
        sha256=hashlib.sha256(memoryview(data)[:good_bytes]).hexdigest(),
    )


def _read(line: bytes, where: str, *, is_last: bool) -> Record | None:
    """None: the last line, and torn (a power failure leaves zeros in front of a newline)."""
    try:
        return Record.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            if is_last:
                return None
        elif _version(line) > SCHEMA_VERSION:
            raise RunFolderError(
                f"{where}: written by a newer Broadgauge (schema {_version(line)})",
                hint=f"this one reads up to schema {SCHEMA_VERSION}: install a newer one",
            ) from error
        raise RunFolderError(
            f"{where}: no record: {why_unreadable(error, _value(line))}",
            hint="the line is kept: read it with the newer Broadgauge that wrote it, or restore it "
            "from a copy, or remove it to run its trial again",
        ) from error


def _value(line: bytes) -> object:
    """None where the line is no JSON."""
    try:
        return from_json(line)
    except ValueError:
        return None


def _version(line: bytes) -> int:
    value = _value(line)
    version = value.get("schema_version") if isinstance(value, dict) else None
    return version if isinstance(version, int) else 0


def _refuse_twins(path: Path, records: list[Record]) -> None:
    seen: dict[str, int] = {}
    for number, record in enumerate(records, start=1):
        first = seen.setdefault(record.record_id, number)
        if first != number:
            raise RunFolderError(
                f"{path}:{number}: trial {record.record_id} is on line {first} already",
                hint="was the file put together by hand? remove one of the two",
            )


class RecordsFile:
    """The one open file that records are appended to. The caller holds the folder's lock."""

    def __init__(self, path: Path, good_bytes: int) -> None:
        self._path = path
        self._good_bytes = good_bytes
        with disk.telling("open", path):
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
            self._descriptor = os.open(path, flags, disk.PRIVATE_FILE)
            try:
                if os.fstat(self._descriptor).st_size != good_bytes:
                    os.ftruncate(self._descriptor, good_bytes)
                os.fsync(self._descriptor)
            except BaseException:
                os.close(self._descriptor)
                raise

    @property
    def good_bytes(self) -> int:
        """Length of what is stored for good."""
        return self._good_bytes

    def append(self, line: bytes) -> None:
        """The line is on the disk, or (an exception) no part of it is."""
        try:
            with disk.telling("write", self._path):
                disk.write_all(self._descriptor, line)
                os.fsync(self._descriptor)
                self._check_place()
            self._good_bytes += len(line)
        except BaseException:
            # If even this fails the line is torn, and resuming cuts it.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._good_bytes)
            raise

    def _check_place(self) -> None:
        """A file that was removed can be written to without an error: its bytes are lost."""
        here, there = os.fstat(self._descriptor), self._path.stat()
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
            raise RunFolderError(
                f"{self._path} was replaced while it was written",
                hint="was the folder moved or removed?",
            )

    def close(self) -> None:
        """Safe to call twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
