"""How does a specification become a picture? SVG for print, and a compiled form for the screen."""

import json
import re
from dataclasses import dataclass
from functools import lru_cache

from broadgauge.report.charts.parts import Spec

WIDE, NARROW = 510, 330
"""Pixels: a page's column on a desk or on paper, and a phone's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """One chart, three ways."""

    wide_svg: str
    narrow_svg: str
    vega_json: str
    """The compiled specification; safe inside a script element."""


def draw(spec: Spec, name: str) -> Drawing:
    """The chart as SVG at two widths, and compiled for the runtime. `name` is unique in a page."""
    import vl_convert

    return Drawing(
        wide_svg=_svg(spec | {"width": WIDE}, f"{name}-wide"),
        narrow_svg=_svg(spec | {"width": NARROW}, f"{name}-narrow"),
        vega_json=script_json(vl_convert.vegalite_to_vega(spec)),
    )


def _svg(spec: Spec, name: str) -> str:
    """One SVG whose ids are its own: several stand in one document.

    The runtime counts its ids through a whole process, so they are numbered again: the same chart
    is the same text.
    """
    svg = drawn(json.dumps(spec))
    ids = dict.fromkeys(re.findall(r'\bid="([^"]+)"', svg))
    names = {old: f"{name}-{index}" for index, old in enumerate(ids)}

    def renamed(match: re.Match[str]) -> str:
        return f"{match[1]}{names.get(match[2], match[2])}{match[3]}"

    return re.sub(r'(\bid="|url\(#|href="#)([^")]+)(["\)])', renamed, svg)


@lru_cache(maxsize=64)
def drawn(spec_json: str) -> str:
    """The SVG as the runtime made it. A page of predictions that is too large is made twice."""
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(spec_json)
    return svg


def script_json(value: object) -> str:
    """JSON that ends no script element and begins no comment."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
