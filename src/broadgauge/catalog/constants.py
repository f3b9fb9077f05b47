"""Which constants does the predictor start from? With bounds, spread and source."""

import functools

from pydantic import Field

from broadgauge.catalog.entries import Entry
from broadgauge.catalog.loading import shipped_entries


class Constant(Entry):
    """One entry of constants.yaml. A name is `quantity` or `quantity.kind`."""

    value: float = Field(gt=0)
    low: float = Field(gt=0)
    high: float = Field(gt=0)
    spread_log_sd: float = Field(gt=0)
    """How far from `value` it may well be: standard deviation of its logarithm."""
    is_fitted: bool = True
    """False: a fact, or nothing that measurements of steps can tell."""


@functools.cache
def known_constants() -> tuple[Constant, ...]:
    """Every entry that is shipped."""
    return shipped_entries("constants", Constant)
