"""How is 0.2 Gbit/s shown? The one place; specs/units.py reads what is shown here."""

import math


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
