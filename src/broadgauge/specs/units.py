"""What does `200 Mbit/s` mean? The one place; wording/amounts.py writes it.

Decimal prefixes are powers of ten (SI), `Ki`, `Mi`, `Gi` powers of two (IEC 80000-13). A `b` that
could be a bit or a byte is refused: rates are written `Mbit/s` or `MB/s`, sizes `MB` or `MiB`.
"""

import math
import re
from typing import Annotated

from pydantic import BeforeValidator, Field

from broadgauge.wording.amounts import (
    show_bandwidth,
    show_count,
    show_parameters,
    show_rate,
    show_ratio,
    show_size,
    show_time,
)

__all__ = [
    "RATE_UNITS_GBPS",
    "SIZE_UNITS_BYTES",
    "TIME_UNITS_S",
    "ByteRate",
    "CapacityBytes",
    "DelayS",
    "RateGbps",
    "SizeBytes",
    "TimeS",
    "TokenCount",
    "parse_byte_rate",
    "parse_rate_gbps",
    "parse_size_bytes",
    "parse_time_s",
    "parse_token_count",
    "show_bandwidth",
    "show_count",
    "show_parameters",
    "show_rate",
    "show_ratio",
    "show_size",
    "show_time",
]

_NUMBER = r"(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
_QUANTITY = re.compile(rf"\s*{_NUMBER}\s*(?P<unit>[^\d\s].*?)?\s*")

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}

RATE_UNITS_GBPS: dict[str, float] = {
    **{f"{p}bit/s": f / 1e9 for p, f in _DECIMAL.items()},
    **{f"{p}bps": f / 1e9 for p, f in _DECIMAL.items() if p},
    **{f"{p}B/s": 8 * f / 1e9 for p, f in (_DECIMAL | _BINARY).items()},
}
SIZE_UNITS_BYTES: dict[str, float] = {f"{p}B": f for p, f in (_DECIMAL | _BINARY).items()}
TIME_UNITS_S: dict[str, float] = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
}


def _parse(value: object, units: dict[str, float], what: str, example: str) -> object:
    """Numbers pass as they are (in the unit of the field's name); text needs a known unit."""
    if isinstance(value, bool) or not isinstance(value, str):
        return value
    match = _QUANTITY.fullmatch(value)
    if match is None:
        raise ValueError(f"{what} is written like `{example}`")
    unit = match["unit"]
    if unit is None:
        raise ValueError(f"{what} in quotes needs a unit, like `{example}`")
    if unit not in units:
        whole = next((unit + end for end in ("B", "/s") if unit + end in units), None)
        like = example if whole is None else f"{match['number']} {whole}"
        raise ValueError(f"`{unit}` is no unit of {what}; write it like `{like}`")
    return float(match["number"]) * units[unit]


def parse_rate_gbps(value: object) -> object:
    """`200 Mbit/s` → 0.2 (10^9 bit/s). A bare number is in Gbit/s already."""
    return _parse(value, RATE_UNITS_GBPS, "a rate", "200 Mbit/s` or `25 MB/s")


def parse_byte_rate(value: object) -> object:
    """`500 MB/s` → 500000000, and so does `4 Gbit/s`. A bare number is in byte/s already."""
    parsed = _parse(value, RATE_UNITS_GBPS, "a rate of bytes", "500 MB/s")
    return (
        round(parsed * 1e9 / 8) if isinstance(value, str) and isinstance(parsed, float) else parsed
    )


def parse_size_bytes(value: object) -> object:
    """`64 MiB` → 67108864. A bare number is in bytes already."""
    parsed = _parse(value, SIZE_UNITS_BYTES, "a size", "64 MiB` or `64 MB")
    if isinstance(parsed, float):
        if not math.isclose(parsed, round(parsed), rel_tol=1e-12):
            raise ValueError("a size is a whole number of bytes")
        return round(parsed)
    return parsed


def parse_time_s(value: object) -> object:
    """`90 s`, `500 ms`, `2 min` → seconds. A bare number is in seconds already."""
    return _parse(value, TIME_UNITS_S, "a time", "90 s")


MOST_TOKENS = 1e18
_TOKENS = re.compile(r"(?P<number>\d+(?:\.\d*)?(?:e\d+)?)\s*(?P<unit>[kmbgt]?)", re.IGNORECASE)
_TOKEN_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}


def parse_token_count(value: object) -> object:
    """`300B`, `1.5T`, `15e12`, `300_000_000_000` → a whole number. A bare number is one already."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return value
    match = _TOKENS.fullmatch(
        str(value).strip().replace("_", "").replace(",", "").replace("e+", "e")
    )
    number = 0.0 if match is None else float(match["number"]) * _TOKEN_UNITS[match["unit"].lower()]
    if not 1 <= number <= MOST_TOKENS:
        raise ValueError("a number of tokens is written like `300B` or `1.5T`")
    return round(number)


TokenCount = Annotated[int, BeforeValidator(parse_token_count)]
RateGbps = Annotated[float, BeforeValidator(parse_rate_gbps), Field(ge=0.001, le=10_000)]
"""1 Mbit/s to 10 Tbit/s: what the shaper takes."""
ByteRate = Annotated[int, BeforeValidator(parse_byte_rate), Field(ge=125_000, le=1_250_000_000_000)]
"""Of files, byte/s: 1 Mbit/s to 10 Tbit/s, as a link may have."""
SizeBytes = Annotated[int, BeforeValidator(parse_size_bytes), Field(gt=0, le=2**40)]
"""Of a message."""
CapacityBytes = Annotated[int, BeforeValidator(parse_size_bytes), Field(gt=0, le=2**60)]
"""Of memory, or of a volume."""
TimeS = Annotated[float, BeforeValidator(parse_time_s), Field(gt=0, le=7 * 86_400)]
DelayS = Annotated[float, BeforeValidator(parse_time_s), Field(ge=0, le=10)]
"""Of a packet; 0 is none."""
