"""Proves predict/articles/storage.py: an article's storages, by its figures as published."""

import pytest

from broadgauge.catalog.articles import Articles, articles
from broadgauge.catalog.entries import find_entry
from broadgauge.catalog.references import known_storage
from broadgauge.predict.articles.rows import Role
from broadgauge.predict.articles.storage import (
    LIMIT_RATIO,
    ImpliedBytes,
    StorageScores,
    implied_bytes,
    is_underdetermined,
    storage_scores,
)
from broadgauge.predict.storage.from_catalog import of_entry
from broadgauge.specs.errors import InputError


@pytest.fixture(scope="module")
def found() -> StorageScores:
    return storage_scores(articles())


def changed(table: str, storage: str, **values: float) -> Articles:
    """The article with other figures of one storage."""
    rows = getattr(articles(), table)
    new = [r.model_copy(update=values) if r.storage == storage else r for r in rows]
    return articles().model_copy(update={table: tuple(new)})


def test_the_catalogs_rates_are_the_articles() -> None:
    for row in articles().storage_bandwidth:
        entry = find_entry(f"nebius-{row.storage}", known_storage(), "storage")
        assert (entry.read_gbyte_per_s, entry.write_gbyte_per_s) == (
            row.read_gbyte_per_s,
            row.write_gbyte_per_s,
        )


def test_the_network_ssd_is_known_by_name_and_has_no_rate_that_is_anothers() -> None:
    entry = find_entry("nebius-network-ssd", known_storage(), "storage")
    assert "which of the two was measured is not known" in entry.note
    with pytest.raises(InputError, match="nobody says what nebius-network-ssd reads"):
        of_entry(entry)


def test_two_rows_beside_the_anchor_are_within_a_fifth(found: StorageScores) -> None:
    assert {row.storage for row in found.scored} == {"shared-fs", "s3-cached"}
    assert all(abs(row.error_ratio) <= LIMIT_RATIO for row in found.scored)
    assert found.is_reached
    assert found.fixed_s == pytest.approx(20.9, abs=0.05)
    errors = [row.error_ratio for row in found.loads]
    assert errors == pytest.approx([0.0, -0.18, 1.02, -0.02], abs=0.006)


def test_the_contradictory_row_is_named_with_its_reason(found: StorageScores) -> None:
    (row,) = (row for row in found.loads if row.role is Role.CONTRADICTORY)
    assert row.storage == "s3-mount"
    assert "0.48 GB/s" in row.reason
    assert "states 0.3" in row.reason


def test_a_row_contradicts_by_its_figures_and_not_by_its_name() -> None:
    slower = storage_scores(changed("storage_phases_seconds", "s3-mount", model_loading=99.0))
    assert all(row.role is not Role.CONTRADICTORY for row in slower.loads)
    faster = storage_scores(changed("storage_phases_seconds", "s3-cached", model_loading=50.0))
    roles = {row.storage: row.role for row in faster.loads}
    assert roles["s3-cached"] is Role.CONTRADICTORY
    assert not faster.is_reached


def test_a_row_that_is_missed_is_not_reached() -> None:
    slow = storage_scores(changed("storage_phases_seconds", "shared-fs", model_loading=60.0))
    assert not slow.is_reached


def test_pairs_of_saves_imply_bytes_that_do_not_agree(found: StorageScores) -> None:
    sizes = {each.storages: round(each.num_bytes / 1e9) for each in found.saves}
    assert sizes == {
        ("local-nvme", "shared-fs"): 389,
        ("local-nvme", "s3-mount"): 26,
        ("local-nvme", "s3-cached"): 11,
        ("shared-fs", "s3-mount"): 6,
        ("shared-fs", "s3-cached"): -63,
        ("s3-mount", "s3-cached"): 34,
    }
    assert is_underdetermined(found.saves)
    words = dict(found.not_predicted)
    assert "nothing is fitted" in words["checkpoint saving"]
    assert "73 or 146 GB" in words["checkpoint saving"]


def test_rows_of_one_size_and_one_fixed_part_would_imply_it() -> None:
    def seconds(rate: float) -> float:
        return 30 + 50 / rate

    rates = (10.0, 1.6, 0.3)
    pairs = tuple(
        ImpliedBytes(
            storages=("one", "other"),
            num_bytes=implied_bytes(seconds(a), a, seconds(b), b),
        )
        for a, b in ((rates[0], rates[1]), (rates[1], rates[2]), (rates[0], rates[2]))
    )
    assert [each.num_bytes for each in pairs] == pytest.approx([50e9] * 3)
    assert not is_underdetermined(pairs)
