"""Is Young's interval the best of all, by our own shares? And what does the article's hour say?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.catalog.articles import articles
from broadgauge.predict.storage.checkpoint_interval import (
    best_interval_s,
    is_first_order,
    lost_share,
)


@given(st.floats(0.1, 1000), st.floats(1e5, 1e7), st.floats(0.5, 2))
def test_no_other_interval_loses_less(stall_s: float, failures_s: float, factor: float) -> None:
    def lost_ratio(interval_s: float) -> float:
        share = lost_share(interval_s, stall_s=stall_s, mean_time_between_failures_s=failures_s)
        return share.ratio

    best_s = best_interval_s(stall_s, failures_s)
    assert lost_ratio(best_s) <= lost_ratio(best_s * factor) * (1 + 1e-9)


def test_the_articles_hour() -> None:
    (claim,) = (each for each in articles().claims if "12.1 % of an hour" in each.claim)
    (row,) = (row for row in articles().storage_phases_seconds if row.storage == "s3-mount")
    share = lost_share(3600, stall_s=row.checkpoint_saving)
    assert isinstance(claim.recomputed, dict)
    assert share.saving_ratio == pytest.approx(claim.recomputed["share"], abs=5e-4)
    assert share.failing_ratio is None


def test_a_failure_costs_half_an_interval_the_upload_and_the_load() -> None:
    share = lost_share(600, stall_s=10, durable_s=100, load_s=50, mean_time_between_failures_s=4500)
    assert share.failing_ratio == pytest.approx(450 / 4500)
    assert share.ratio == pytest.approx(0.1 + 10 / 600)


def test_no_share_is_above_one() -> None:
    share = lost_share(1, stall_s=100, mean_time_between_failures_s=1)
    assert (share.saving_ratio, share.failing_ratio, share.ratio) == (1, 1, 1)
    assert not is_first_order(100, 999)
    assert is_first_order(100, 1001)
