"""Which values did the predictor's constants get, from which sources? fitted.yaml, generated."""

import functools
from collections.abc import Mapping

from pydantic import Field

from broadgauge.catalog.entries import Entry
from broadgauge.catalog.loading import shipped_entries


class Fit(Entry):
    """Constants fitted on all sources, or on all but one."""

    without: str | None = None
    """The source that was left out; None: none was."""
    constants: Mapping[str, float]
    """Those that differ from constants.yaml."""
    residuals: Mapping[str, tuple[float, float]] = Field(default_factory=dict)
    """Regime → logarithms of measured over predicted of sources left out, 10 % and 90 %."""


@functools.cache
def known_fits() -> tuple[Fit, ...]:
    """Every entry that is shipped."""
    return shipped_entries("fitted", Fit)
