"""Which scalars are in a TensorBoard event file? Read with the standard library alone.

A file is a row of records: length as uint64, its checksum, the bytes of an `Event` message, their
checksum. Sources: tensorflow/core/lib/io/record_writer.h (records, masked CRC-32C),
tensorflow/core/util/event.proto, framework/summary.proto and framework/tensor.proto (numbers of
fields), "Protocol Buffers, Encoding" (wire types), RFC 3720 appendix B.4 (CRC-32C).
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_HEAD = struct.Struct("<QI")
_POLYNOMIAL = 0x82F63B78
"""CRC-32C, reversed."""
_MASK_DELTA = 0xA282EAD8
MOST_BYTES = 1 << 20
"""Of a record that is looked into; a scalar has about a hundred, images and graphs are passed."""
_MOST_FIELDS = 10_000
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FLOAT, _DOUBLE = 1, 2
"""Of `DataType`."""

Fields = dict[int, list[int | bytes]]


class EventFileError(Exception):
    """The file can't be read further; its message says why and where."""


def _table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)


_TABLE = _table()


def masked_crc(data: bytes) -> int:
    """As records carry it: rotated, so that a checksum of a checksum is no weak one."""
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ _TABLE[(value ^ byte) & 0xFF]
    value ^= 0xFFFFFFFF
    return ((value >> 15 | value << 17) + _MASK_DELTA) & 0xFFFFFFFF


def scalars(path: Path, tag: str) -> Iterator[tuple[float, float]]:
    """Wall time in seconds and value, in the file's order. Raises EventFileError and OSError,
    after what was before the fault."""
    wanted = tag.encode()
    with path.open("rb") as file:
        for data in _records(file, wanted):
            try:
                yield from _scalars_of(data, wanted)
            except (ValueError, struct.error) as error:
                raise EventFileError(f"no event at byte {file.tell()}: {error}") from error


def _records(file: BinaryIO, wanted: bytes) -> Iterator[bytes]:
    """Those in which these bytes are; the checksum of others is not looked at."""
    while head := file.read(_HEAD.size):
        place = file.tell() - len(head)
        if len(head) < _HEAD.size:
            raise EventFileError(f"ends within a record, at byte {place}")
        length, crc = _HEAD.unpack(head)
        if masked_crc(head[:8]) != crc:
            raise EventFileError(f"no record of TensorBoard's at byte {place}: wrong checksum")
        if length > MOST_BYTES:
            file.seek(length, 1) if length < 1 << 62 else file.seek(0, 2)
            file.read(4)
            continue
        data, tail = file.read(length), file.read(4)
        if len(data) < length or len(tail) < 4:
            raise EventFileError(f"ends within a record, at byte {place}")
        if wanted in data:
            if masked_crc(data) != int.from_bytes(tail, "little"):
                raise EventFileError(f"damaged record at byte {place}: wrong checksum")
            yield data


def _scalars_of(data: bytes, wanted: bytes) -> Iterator[tuple[float, float]]:
    """Event: wall_time 1, summary 5; Summary: value 1; Value: tag 1, simple_value 2, tensor 8."""
    event = _fields(data)
    wall_s = _float64(event, 1)
    for summary in _messages(event, 5):
        for value in _messages(_fields(summary), 1):
            found = _fields(value)
            if wanted not in found.get(1, ()):
                continue
            simple = found.get(2, [None])[-1]
            number = _float32(simple) if isinstance(simple, bytes) else _tensor(found)
            if number is not None:
                yield wall_s, number


def _tensor(value: Fields) -> float | None:
    """TensorProto: dtype 1, tensor_content 4, float_val 5, double_val 6. None: no single number of
    these types."""
    for tensor in _messages(value, 8):
        found = _fields(tensor)
        kind = found.get(1, [0])[-1]
        form, listed = {_FLOAT: ("<f", 5), _DOUBLE: ("<d", 6)}.get(kind, ("", 0))  # type: ignore[arg-type]
        if not form:
            return None
        for number in (4, listed):
            content = found.get(number, [b""])[-1]
            if isinstance(content, bytes) and len(content) == struct.calcsize(form):
                (single,) = struct.unpack(form, content)
                return float(single)
    return None


def _messages(fields: Fields, number: int) -> Iterator[bytes]:
    return (each for each in fields.get(number, ()) if isinstance(each, bytes))


def _float32(data: bytes) -> float:
    (value,) = struct.unpack("<f", data)
    return float(value)


def _float64(fields: Fields, number: int) -> float:
    data = fields.get(number, [b"\0" * 8])[-1]
    (value,) = struct.unpack("<d", data if isinstance(data, bytes) else b"")
    return float(value)


def _fields(data: bytes) -> Fields:
    """By number, in order; fixed ones stay bytes. Raises ValueError for what is no message."""
    found: Fields = {}
    at = count = 0
    while at < len(data):
        count += 1
        if count > _MOST_FIELDS:
            raise ValueError("too many fields")
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        value: int | bytes
        if kind == _VARINT:
            value, at = _varint(data, at)
        else:
            length = {_FIXED64: 8, _FIXED32: 4}.get(kind)
            if kind == _BYTES:
                length, at = _varint(data, at)
            if length is None:
                raise ValueError(f"wire type {kind}")
            value, at = data[at : at + length], at + length
            if at > len(data):
                raise ValueError("a field is longer than its message")
        found.setdefault(number, []).append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for i in range(10):
        if at + i >= len(data):
            raise ValueError("ends within a number")
        value |= (data[at + i] & 0x7F) << 7 * i
        if data[at + i] < 0x80:
            return value, at + i + 1
    raise ValueError("a number of more than ten bytes")
