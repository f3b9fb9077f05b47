"""How is 0.2 Gbit/s shown? The one place; specs/units.py reads what is shown here."""

import math
from collections.abc import Sequence

_RATES = ((1e3, "Tbit/s"), (1.0, "Gbit/s"), (1e-3, "Mbit/s"), (1e-6, "kbit/s"))
_BANDWIDTHS = ((1e3, "TB/s"), (1.0, "GB/s"), (1e-3, "MB/s"))
_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1, "B"))
_BINARY_SIZES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_PARAMETERS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
_COUNTS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def _scaled(
    value: float, steps: Sequence[tuple[float, str]], digits: int, like: float | None = None
) -> str:
    factor, unit = _step(value if like is None else like, steps, digits)
    if value == 0:
        return f"0 {steps[-1][1] if like is None else unit}"
    if not math.isfinite(value):
        return "unknown"
    if like is None:
        return f"{_significant(value / factor, digits)} {unit}"
    return f"{_grouped(value / factor, digits)} {unit}"


def _step(value: float, steps: Sequence[tuple[float, str]], digits: int) -> tuple[float, str]:
    """A value that rounds up to the next unit is shown in that unit: 1000 Mbit/s is 1 Gbit/s."""
    fitting = (step for step in steps if abs(value) >= step[0] * (1 - 0.5 * 10.0**-digits))
    return next(fitting, steps[-1])


def _significant(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _grouped(value: float, digits: int) -> str:
    """1474 → `1,470`: of the unit of a smaller value there may be thousands."""
    if abs(value) < 1000:
        return _significant(value, digits)
    return f"{round(value, digits - 1 - math.floor(math.log10(abs(value)))):,.0f}"


def show_rate(gbps: float, digits: int = 3, like: float | None = None) -> str:
    """0.2 → `200 Mbit/s`; with `like`, here and below, in the unit that this value is shown in."""
    return _scaled(gbps, _RATES, digits, like)


def show_bandwidth(gbyte_per_s: float, digits: int = 3, like: float | None = None) -> str:
    """0.025 (10^9 byte/s) → `25 MB/s`."""
    return _scaled(gbyte_per_s, _BANDWIDTHS, digits, like)


def show_size(size_bytes: float, digits: int = 3, like: float | None = None) -> str:
    """67108864 → `64 MiB`, 64000000 → `64 MB`: exact powers of two are shown as such."""
    shaping = size_bytes if like is None else like
    if shaping >= 1024 and float(shaping).is_integer():
        for step in _BINARY_SIZES:
            if shaping % step[0] == 0 and shaping // step[0] < 1024:
                return _scaled(size_bytes, (step,), 4 if like is None else digits, like)
    return _scaled(size_bytes, _SIZES, digits, like)


def show_time(seconds: float, digits: int = 3, like: float | None = None) -> str:
    """0.0123 → `12.3 ms`; minutes from 120 s on."""
    if math.isfinite(seconds) and abs(seconds if like is None else like) >= 120:
        words = _significant if like is None else _grouped
        return f"{words(seconds / 60, digits)} min"
    return _scaled(seconds, _TIMES, digits, like)


def show_count(value: float, digits: int = 3, like: float | None = None) -> str:
    """12345 → `12.3 k`; plain below 10,000."""
    if math.isfinite(value) and abs(value if like is None else like) < 10_000:
        return _significant(value, digits) if abs(value) < 1000 else f"{value:,.0f}"
    return _scaled(value, _COUNTS, digits, like)


def show_parameters(number: int) -> str:
    """2800000000 → `2.80B`: three figures, as models are named; plain below 1,000."""
    if number < 1000:
        return str(number)
    factor, unit = _step(number, _PARAMETERS, 3)
    return f"{number / factor:#.3g}".rstrip(".") + unit


def show_ratio(ratio: float, digits: int = 3) -> str:
    """0.957 → `95.7 %`: ratios are 0..1 in data and percent on screen."""
    return f"{_significant(100 * ratio, digits)} %" if math.isfinite(ratio) else "unknown"
