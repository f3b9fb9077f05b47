"""The stored constants are what the rows give, and scoring a source uses none of its rows."""

from pathlib import Path

import pytest

from broadgauge.catalog.constants import known_constants
from broadgauge.catalog.fits import known_fits
from broadgauge.predict.facts.knowledge import default_knowledge, prior_knowledge
from broadgauge.predict.fitting.constants import fit_constants, sample_of
from broadgauge.predict.tables.table import read_table
from broadgauge.specs.errors import InputError

TABLE = Path(__file__).parents[3] / "references" / "measured-training.csv"


def test_fitted_constants_are_within_their_bounds() -> None:
    bounds = {each.name: (each.low, each.high) for each in known_constants()}
    for fit in known_fits():
        for name, value in fit.constants.items():
            low, high = bounds[name]
            assert low * 0.9999 <= value <= high * 1.0001, (fit.name, name)


def test_every_source_has_a_fit_without_it() -> None:
    everything = default_knowledge()
    table = read_table(TABLE.read_bytes(), TABLE.name)
    assert set(everything.fitted_on) == {row.source for row in table.rows}
    for source in everything.fitted_on:
        left = everything.without(source)
        assert everything.without(f" {source.upper()}").values == left.values
        assert source not in left.fitted_on
        assert len(left.fitted_on) == len(everything.fitted_on) - 1
        assert left.values != everything.values


def test_a_source_never_seen_needs_no_other_constants() -> None:
    assert default_knowledge().without("somebody else's table") is default_knowledge()


def test_a_source_without_a_fit_is_refused() -> None:
    first, second = default_knowledge().fitted_on[:2]
    with pytest.raises(InputError, match="fitted on"):
        default_knowledge().without(first).without(second)


def test_constants_are_physical_quantities_with_priors() -> None:
    for constant in known_constants():
        assert constant.low <= constant.value <= constant.high
        assert constant.source
    assert len(known_constants()) < 60


VTRAIN = "vTrain ground truth (single node, DP only)"


@pytest.mark.parametrize("without", [None, pytest.param(VTRAIN, marks=pytest.mark.thorough)])
def test_the_stored_constants_are_what_the_rows_give(without: str | None) -> None:
    rows = read_table(TABLE.read_bytes(), TABLE.name).rows
    again = fit_constants(sample_of(rows), without=without)
    known = default_knowledge()
    stored = known.values if without is None else known.without(without).values
    for name, value in again.items():
        assert stored[name] == pytest.approx(value, rel=0.01), name
    assert again != {name: prior_knowledge().values[name] for name in again}
