"""Are stored widenings what the rows say, and does the interval then hold eight in ten of them?"""

from pathlib import Path

import pytest

from broadgauge.catalog.widenings import known_widenings
from broadgauge.predict.fitting.widening import Missed, kind_ratios, missed, read_rows
from broadgauge.predict.scoring.validation import validate
from broadgauge.predict.tables.table import read_table

REFERENCES = Path(__file__).parents[3] / "references"
TABLES = ("measured-training.csv", "further-training.csv")


def rows_of(source: str, *ratios: float, kind: str = "fp8") -> list[Missed]:
    return [Missed(source=source, kinds=frozenset({kind}), ratio=ratio) for ratio in ratios]


def test_eight_in_ten_rows_are_held_however_many_a_source_has() -> None:
    many, few = rows_of("many", *[1.0] * 64), rows_of("few", 2.0, 2.0, 2.0, 2.0)
    (found,) = kind_ratios(many + few).values()
    assert found.rows == 68
    assert 1.0 <= found.ratio < 2.0
    (found,) = kind_ratios(many + rows_of("few", *[2.0] * 16)).values()
    assert found.ratio == 2.0


def test_one_source_does_not_tell_what_the_next_one_does() -> None:
    """Its kind is no surer than the least sure of the others."""
    known = rows_of("a", 3.0) + rows_of("b", 3.0)
    alone = rows_of("c", 1.1, 1.2, kind="mixture-of-experts")
    found = kind_ratios(known + alone)
    assert found["mixture-of-experts"].ratio == 3.0
    assert found["mixture-of-experts"].without == {"c": 3.0}
    assert kind_ratios(alone)["mixture-of-experts"].ratio == 1.2
    assert kind_ratios(alone)["mixture-of-experts"].without == {"c": 1.0}


def test_a_row_that_is_held_anyway_widens_nothing() -> None:
    (found,) = kind_ratios(rows_of("a", 1.0) + rows_of("b", 1.0)).values()
    assert found.ratio == 1.0


@pytest.mark.slow
def test_the_stored_widenings_are_what_the_rows_say() -> None:
    found = kind_ratios(missed(read_rows([str(REFERENCES / name) for name in TABLES])))
    for entry in known_widenings():
        again = found[entry.name]
        assert (entry.rows, tuple(entry.without_ratio)) == (again.rows, entry.fitted_on)
        assert entry.width_ratio == pytest.approx(again.ratio, rel=0.02)
        assert dict(entry.without_ratio) == pytest.approx(dict(again.without), rel=0.02)


@pytest.mark.slow
def test_rows_unlike_most_are_inside_as_often_as_is_said() -> None:
    """Each source with widenings and constants that it is not in. 49 % before there were any."""
    name = "further-training.csv"
    table = read_table((REFERENCES / name).read_bytes(), name)
    scored = validate(table).scored
    assert len(scored) > 170
    assert 0.75 <= sum(each.is_covered for each in scored) / len(scored) <= 0.9
