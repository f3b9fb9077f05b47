"""By how much are intervals wider for what few have measured? widenings.yaml, generated."""

import functools
from collections.abc import Mapping

from pydantic import Field

from broadgauge.catalog.entries import Entry, plain
from broadgauge.catalog.loading import shipped_entries


class Widening(Entry):
    """One kind of unfamiliarity: `fp8`, `tensor-parallel`."""

    width_ratio: float = Field(ge=1)
    """Of what kernels make of half an interval (a logarithm): eight in ten rows of this kind are
    inside then."""
    rows: int = Field(gt=0)
    """Measured steps of this kind, none of which the constants were fitted on as they were
    predicted; of the sources in `fitted_on`."""
    without_ratio: Mapping[str, float]
    """The same, a source left out: for scoring that source."""


@functools.cache
def known_widenings() -> tuple[Widening, ...]:
    """Every entry that is shipped."""
    return shipped_entries("widenings", Widening)


def widening_ratios(without: str | None = None) -> dict[str, float]:
    """Kind → ratio; nothing of this source is in it, however its name is written."""
    left_out = plain(without or "")
    return {
        entry.name: next(
            (ratio for source, ratio in entry.without_ratio.items() if plain(source) == left_out),
            entry.width_ratio,
        )
        for entry in known_widenings()
    }
