"""Proves predict/storage/lost_hours.py: what an interval between saves loses, also in the
background."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.predict.making_cases import storage_waits

from broadgauge.predict.case import StorageWaits
from broadgauge.predict.storage.lost_hours import lost_hours, share_at, young_interval_s

DAY_S = 86_400.0


def in_background(*, staging_s: float, written_s: float, durable_s: float) -> StorageWaits:
    return replace(
        storage_waits(1.0, steps_between_saves=100),
        least_stall_s=staging_s,
        written_s=written_s,
        durable_s=durable_s,
        mean_time_between_failures_s=DAY_S,
    )


def test_of_an_hour_one_save_takes_its_stall() -> None:
    found = {hour.saves.interval_s: hour for hour in lost_hours(storage_waits(43.6), 1.0, 0.25)}
    hour = found[3600.0]
    assert hour.saves.saving_ratio == pytest.approx(436 / 3600)
    assert hour.batches_ratio == 0.25
    assert hour.start_ratio == 1.0
    assert hour.saves.failing_ratio is None


def test_who_saves_nothing_loses_no_hour_to_saves() -> None:
    assert lost_hours(storage_waits(1.0, steps_between_saves=None), 1.0, 0.0) == ()


def test_a_save_in_the_background_loses_its_staging_and_risks_until_it_is_durable() -> None:
    waits = in_background(staging_s=2, written_s=60, durable_s=500)
    share = share_at(waits, 600)
    assert share.saving_ratio == pytest.approx(2 / 600)
    assert share.failing_ratio == pytest.approx((300 + 500 + 100) / DAY_S)


def test_sooner_than_it_is_written_no_other_save_begins() -> None:
    share = share_at(in_background(staging_s=2, written_s=60, durable_s=60), 22)
    assert share.interval_s == 60
    assert share.saving_ratio == pytest.approx(40 / 60)


@given(st.floats(0.1, 10), st.floats(10, 1000), st.floats(1e5, 1e7), st.floats(0.2, 5))
def test_no_other_interval_loses_less_than_the_best(
    staging_s: float, written_s: float, failures_s: float, factor: float
) -> None:
    waits = replace(
        in_background(staging_s=staging_s, written_s=written_s, durable_s=written_s),
        mean_time_between_failures_s=failures_s,
    )
    best_s = young_interval_s(waits)
    assert best_s is not None
    assert best_s >= written_s
    least = share_at(waits, best_s).ratio
    assert least <= share_at(waits, best_s * factor).ratio * (1 + 1e-9)


def test_where_failures_are_as_frequent_as_saves_no_interval_is_called_best() -> None:
    waits = replace(storage_waits(10.0), mean_time_between_failures_s=500.0)
    assert young_interval_s(waits) is None
    hours = lost_hours(waits, 1.0, 0.0)
    assert hours
    assert not any(hour.is_best for hour in hours)
