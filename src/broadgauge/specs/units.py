"""What does `200 Mbit/s` mean, and how is 0.2 Gbit/s shown? The one place for both.

Decimal prefixes are powers of ten (SI), `Ki`, `Mi`, `Gi` powers of two (IEC 80000-13). A `b` that
could be a bit or a byte is refused: rates are written `Mbit/s` or `MB/s`, sizes `MB` or `MiB`.
"""

import math
import re
from typing import Annotated

from pydantic import BeforeValidator, Field

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
        raise ValueError(f"`{unit}` is no unit of {what}; write it like `{example}`")
    return float(match["number"]) * units[unit]


def parse_rate_gbps(value: object) -> object:
    """`200 Mbit/s` → 0.2 (10^9 bit/s). A bare number is in Gbit/s already."""
    return _parse(value, RATE_UNITS_GBPS, "a rate", "200 Mbit/s` or `25 MB/s")


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


RateGbps = Annotated[float, BeforeValidator(parse_rate_gbps), Field(ge=0.001, le=10_000)]
"""1 Mbit/s to 10 Tbit/s: what the shaper takes."""
SizeBytes = Annotated[int, BeforeValidator(parse_size_bytes), Field(gt=0, le=2**40)]
TimeS = Annotated[float, BeforeValidator(parse_time_s), Field(gt=0, le=7 * 86_400)]
DelayS = Annotated[float, BeforeValidator(parse_time_s), Field(ge=0, le=10)]
"""Of a packet; 0 is none."""


def _scaled(value: float, steps: tuple[tuple[float, str], ...], digits: int) -> str:
    if value == 0:
        return f"0 {steps[-1][1]}"
    if not math.isfinite(value):
        return "unknown"
    for factor, unit in steps:
        # A value that rounds up to the next unit is shown in that unit: 1000 Mbit/s is 1 Gbit/s.
        if abs(value) >= factor * (1 - 0.5 * 10.0**-digits):
            return f"{_significant(value / factor, digits)} {unit}"
    factor, unit = steps[-1]
    return f"{_significant(value / factor, digits)} {unit}"


def _significant(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def show_rate(gbps: float, digits: int = 3) -> str:
    """0.2 → `200 Mbit/s`."""
    steps = ((1e3, "Tbit/s"), (1.0, "Gbit/s"), (1e-3, "Mbit/s"), (1e-6, "kbit/s"))
    return _scaled(gbps, steps, digits)


def show_bandwidth(gbyte_per_s: float, digits: int = 3) -> str:
    """0.025 (10^9 byte/s) → `25 MB/s`."""
    return _scaled(gbyte_per_s, ((1e3, "TB/s"), (1.0, "GB/s"), (1e-3, "MB/s")), digits)


def show_size(size_bytes: float, digits: int = 3) -> str:
    """67108864 → `64 MiB`, 64000000 → `64 MB`: exact powers of two are shown as such."""
    if size_bytes >= 1024 and float(size_bytes).is_integer():
        for factor, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
            if size_bytes % factor == 0 and size_bytes // factor < 1024:
                return f"{int(size_bytes // factor)} {unit}"
    return _scaled(
        size_bytes, ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1, "B")), digits
    )


def show_time(seconds: float, digits: int = 3) -> str:
    """0.0123 → `12.3 ms`; minutes from 120 s on."""
    if abs(seconds) >= 120:
        return f"{_significant(seconds / 60, digits)} min"
    return _scaled(seconds, ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")), digits)


def show_count(value: float, digits: int = 3) -> str:
    """12345 → `12.3 k`; plain below 10,000."""
    if abs(value) < 10_000:
        return _significant(value, digits) if abs(value) < 1000 else f"{value:,.0f}"
    return _scaled(value, ((1e9, "G"), (1e6, "M"), (1e3, "k")), digits)


def show_ratio(ratio: float, digits: int = 3) -> str:
    """0.957 → `95.7 %`: ratios are 0..1 in data and percent on screen."""
    return f"{_significant(100 * ratio, digits)} %"
