"""Do the article's estimates follow from its own figures, and stand beside ours?"""

import pytest
from tests.predict.making_articles import articles_found

from broadgauge.catalog.articles import articles
from broadgauge.predict.articles.second_epochs import second_epochs

STEPS, HALF_S, SENT_BYTES = 1108, 249.19, 3.14e12
"""As the article prints them: half of 498.37 s, and 1,108 x 2 x 1.416 GB."""


def test_the_articles_estimates_follow_from_what_it_prints() -> None:
    by_rate, by_all_reduce = articles().estimates_net1
    seconds = {each.path: each.seconds for each in articles().all_reduce if each.backend == "nccl"}
    assert pytest.approx(SENT_BYTES, rel=1e-3) == STEPS * 2 * 1.416e9
    for path, gbyte_per_s in (("nvlink3", 600), ("hdr", 25)):
        rated, measured = getattr(by_rate, path), getattr(by_all_reduce, path)
        assert rated.rate_gbyte_per_s == gbyte_per_s
        assert rated.comm_s == round(SENT_BYTES / gbyte_per_s / 1e9, 2)
        assert rated.total_s == round(HALF_S + rated.comm_s, 2)
        assert measured.comm_s == round(STEPS * seconds[path], 2)
        assert measured.total_s == round(HALF_S + measured.comm_s, 2)


def test_each_row_has_what_was_computed_of_it_beside_ours() -> None:
    rows = {each.id: each for each in second_epochs(articles(), articles_found())}
    assert list(rows) == [each.id for each in articles().epoch2_seconds]
    estimated = {"e-15-5-3": (254.42, 271.35), "e-15-6-2": (374.79, 382.15)}
    for name, row in rows.items():
        assert (row.by_rate_s, row.by_all_reduce_s) == estimated.get(name, (None, None))
        assert (row.predicted_s is None) is (name == "e-15-1")
    slow = rows["e-15-6-2"]
    assert slow.error_ratio(374.79) == pytest.approx(-0.0771, abs=1e-4)
    assert slow.predicted_s is not None
    assert abs(slow.error_ratio(slow.predicted_s)) < 0.06
