"""At which sizes do two cases differ, and by how much? In one sentence."""

from collections.abc import Callable, Sequence
from itertools import groupby

from broadgauge.results.model import SizeRatio
from broadgauge.specs.units import show_size

_ALIKE_RATIO = 0.05
"""Sizes that differ by less are told as alike: what smaller ratios mean, intervals say."""


def by_size_words(rows: Sequence[SizeRatio], change: Callable[[float], str]) -> str:
    """`by size: 1 KiB to 64 MiB alike (within 5 %), 256 MiB 40 % lower`; empty without sizes.

    `change`: a ratio in words, `50 % lower`.
    """
    curves = [list(each) for _, each in groupby(rows, lambda row: (row.engine, row.op, row.dtype))]
    has_engines = len({row.engine for row in rows}) > 1
    told = []
    for curve in curves:
        engine = f"{curve[0].engine} " if has_engines else ""
        name = f"{engine}{curve[0].op} {curve[0].dtype} " if len(curves) > 1 else ""
        spans = [list(each) for _, each in groupby(curve, _direction)]
        told += [f"{name}{_span_words(span, change)}" for span in spans]
    return f"by size: {', '.join(told)}" if told else ""


def _direction(row: SizeRatio) -> int:
    """-1: B is lower; 0: alike; 1: higher."""
    if abs(row.busbw_ratio - 1) < _ALIKE_RATIO:
        return 0
    return -1 if row.busbw_ratio < 1 else 1


def _span_words(span: Sequence[SizeRatio], change: Callable[[float], str]) -> str:
    first, last = (show_size(span[i].size_bytes) for i in (0, -1))
    sizes = first if len(span) == 1 else f"{first} to {last}"
    if _direction(span[0]) == 0:
        return f"{sizes} alike (within {100 * _ALIKE_RATIO:g} %)"
    ratios = sorted((row.busbw_ratio for row in span), key=lambda ratio: abs(ratio - 1))
    least, most = change(ratios[0]), change(ratios[-1])
    return f"{sizes} {least}" if least == most else f"{sizes} {least} up to {most}"
