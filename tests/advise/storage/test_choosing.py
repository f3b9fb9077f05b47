"""Laws of the choice: needs are met, nothing better is left, and figures decide, not names."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.advise.storage.choosing import StorageAdvice, advise, alternatives, other_reading
from broadgauge.advise.storage.constraints import lost_at_most_s, violated
from broadgauge.advise.storage.placement import Constraint, StoragePlacement
from broadgauge.catalog.storage_tables import of_skypilot_2025
from broadgauge.specs.storage_table import (
    ResumeReading,
    StorageFigures,
    StorageJob,
    StorageNeeds,
    StoragePhase,
    StorageTable,
)

SECONDS = st.one_of(st.none(), st.integers(0, 50).map(float))


@st.composite
def figures(draw: st.DrawFn, name: str) -> StorageFigures:
    return StorageFigures(
        name=name,
        store=draw(st.sampled_from([None, "bucket", "disk"])),
        is_durable=draw(st.booleans()),
        batch_loading_s=draw(SECONDS),
        batch_cache=draw(st.sampled_from(["cold", "warm", "unknown"])),
        model_loading_s=draw(SECONDS),
        checkpoint_stall_s=draw(SECONDS),
        time_to_durable_s=draw(SECONDS),
        room_bytes=draw(st.one_of(st.none(), st.integers(1, 30))),
        price_usd_per_hour=draw(st.integers(0, 3)),
    )


@st.composite
def tables(draw: st.DrawFn) -> StorageTable:
    names = draw(st.lists(st.sampled_from("abcde"), min_size=1, max_size=4, unique=True))
    size = st.one_of(st.none(), st.integers(1, 20))
    return StorageTable(
        storages=tuple(draw(figures(name)) for name in names),
        job=StorageJob(
            samples=draw(st.integers(0, 500)),
            loads=draw(st.integers(0, 3)),
            saves=draw(st.integers(0, 10)),
            length_s=draw(st.one_of(st.none(), st.integers(1, 1000).map(float))),
            data_bytes=draw(size),
            model_bytes=draw(size),
            checkpoint_bytes=draw(size),
            memory_bytes=draw(size),
        ),
        needs=StorageNeeds(
            durable_checkpoints=draw(st.booleans()),
            durable_data=draw(st.booleans()),
            resume_from=draw(st.sampled_from(ResumeReading)),
            lose_at_most_s=draw(st.one_of(st.none(), st.integers(1, 400).map(float))),
            most_usd_per_hour=draw(st.one_of(st.none(), st.integers(0, 6).map(float))),
        ),
    )


def names(placement: StoragePlacement | None) -> tuple[str, ...] | None:
    return None if placement is None else tuple(each.storage.name for each in placement.waits)


def meets(table: StorageTable, *storages: StorageFigures) -> bool:
    """The needs, written down a second time from what they mean."""
    data, model, saves = storages
    needs, job = table.needs, table.job
    stores = [each.store or each.name for each in storages]
    sizes = (job.data_bytes or 0, job.model_bytes or 0, job.checkpoint_bytes or 0)
    paid_usd = sum({each.name: each.price_usd_per_hour for each in storages}.values())
    no_limit = float("inf")
    return (
        (saves.is_durable or not needs.durable_checkpoints)
        and (data.is_durable or not needs.durable_data)
        and (needs.resume_from is not ResumeReading.SAME_MOUNT or model == saves)
        and (needs.resume_from is not ResumeReading.SAME_STORE or stores[1] == stores[2])
        and (needs.lose_at_most_s is None or lost_s(job, saves) <= needs.lose_at_most_s)
        and all(
            sum(size for size, where in zip(sizes, stores, strict=True) if where == store)
            <= (each.room_bytes or no_limit)
            for each, store in zip(storages, stores, strict=True)
        )
        and paid_usd <= (no_limit if (most := needs.most_usd_per_hour) is None else most)
        and not (
            data.batch_cache == "warm" and (job.data_bytes or 0) > (job.memory_bytes or no_limit)
        )
    )


def lost_s(job: StorageJob, saves: StorageFigures) -> float:
    """Infinite: not known."""
    if saves.time_to_durable_s is None or job.length_s is None or job.saves == 0:
        return float("inf")
    return job.length_s / job.saves + saves.time_to_durable_s


def least_wait_s(table: StorageTable) -> float | None:
    job = table.job
    waits = [
        data.batch_loading_s * job.samples / 100
        + model.model_loading_s * job.loads
        + saves.checkpoint_stall_s * job.saves
        for data, model, saves in itertools.product(table.storages, repeat=3)
        if data.batch_loading_s is not None
        and model.model_loading_s is not None
        and saves.checkpoint_stall_s is not None
        and meets(table, data, model, saves)
    ]
    return min(waits, default=None)


@given(tables())
def test_it_is_the_least_wait_that_meets_the_needs(table: StorageTable) -> None:
    chosen = advise(table).chosen
    least_s = least_wait_s(table)
    assert (chosen is None) == (least_s is None)
    if chosen is not None and least_s is not None:
        assert chosen.total_s == pytest.approx(least_s)
        assert meets(table, *(wait.storage for wait in chosen.waits))


@given(tables())
def test_nothing_that_is_dominated_is_chosen(table: StorageTable) -> None:
    """One that is no slower in any phase, faster in one, as cheap, and meets all needs."""
    chosen = advise(table).chosen
    if chosen is None:
        return
    mine = [wait.once_s for wait in chosen.waits]
    for storages in itertools.product(table.storages, repeat=3):
        pairs = list(zip(StoragePhase, storages, strict=True))
        others = [each.phase_s(phase) for phase, each in pairs]
        paid = sum({each.name: each.price_usd_per_hour for each in storages}.values())
        if None in others or not meets(table, *storages) or paid > chosen.price_usd_per_hour:
            continue
        is_no_slower = all(theirs <= own for theirs, own in zip(others, mine, strict=True))
        assert not (is_no_slower and others != mine)


@given(tables())
def test_a_price_is_what_training_would_wait_less_without_the_need(table: StorageTable) -> None:
    found = advise(table)
    for price in found.prices:
        assert violated(price.without, table) == {price.constraint}
        assert found.chosen is not None
        assert price.price_s == pytest.approx(found.chosen.total_s - price.without.total_s)
        assert price.price_s > 0


@given(tables())
def test_where_nothing_is_chosen_a_need_that_stands_alone_is_named(table: StorageTable) -> None:
    found = advise(table)
    if found.chosen is None and Constraint.DURABLE_DATA in found.excluding:
        needs = table.needs.model_copy(update={"durable_data": False})
        assert advise(table.model_copy(update={"needs": needs})).chosen is not None


@given(tables(), st.randoms())
def test_the_order_of_the_storages_decides_nothing(table: StorageTable, random: object) -> None:
    shuffled = list(table.storages)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    again = advise(table.model_copy(update={"storages": tuple(shuffled)}))
    assert names(again.chosen) == names(advise(table).chosen)


def article(**needs: object) -> StorageAdvice:
    table = of_skypilot_2025()
    return advise(table.model_copy(update={"needs": StorageNeeds(**needs)}))


@pytest.mark.parametrize("saves", [1, 5, 10])
def test_the_articles_choice_follows_from_its_figures(saves: int) -> None:
    table = of_skypilot_2025().model_copy(update={"job": StorageJob(saves=saves)})
    found = advise(table)
    assert names(found.chosen) == ("shared-fs", "s3-mount", "s3-cached")
    assert names(found.other_reading) == ("shared-fs", "s3-cached", "s3-cached")
    assert names(found.now) == ("s3-mount",) * 3


def test_by_the_same_mount_it_is_the_articles_end_to_end_configuration() -> None:
    found = article(resume_from=ResumeReading.SAME_MOUNT)
    assert names(found.chosen) == ("shared-fs", "s3-cached", "s3-cached")


def test_without_durable_data_the_local_disk_holds_it() -> None:
    found = article(durable_data=False)
    assert names(found.chosen) == ("local-nvme", "s3-mount", "s3-cached")


def test_when_the_figures_change_the_choice_changes() -> None:
    table = of_skypilot_2025()
    faster = tuple(
        each.model_copy(update={"checkpoint_stall_s": 20.0}) if each.name == "shared-fs" else each
        for each in table.storages
    )
    found = advise(table.model_copy(update={"storages": faster}))
    assert names(found.chosen) == ("shared-fs",) * 3


def test_what_binds_is_named_with_its_price() -> None:
    found = article()
    prices = {price.constraint: price.price_s for price in found.prices}
    assert prices == {
        Constraint.DURABLE_CHECKPOINTS: pytest.approx(50.6 + 212 - 23.3 - 178),
        Constraint.RESUME_FROM: pytest.approx(50.6 - 23.3),
        Constraint.DURABLE_DATA: pytest.approx(4.29 - 3.47),
    }


def test_another_storage_in_one_phase_is_compared_with_the_choice() -> None:
    found = alternatives(article(), StoragePhase.MODEL_LOADING)
    assert [names(each.placement)[1] for each in found] == ["local-nvme", "shared-fs", "s3-cached"]  # type: ignore[index]
    assert [each.more_s for each in found] == pytest.approx([-27.3, -20.5, 53.4])
    assert [bool(each.violated) for each in found] == [True, True, False]


def test_what_a_lost_node_costs_is_an_interval_and_the_time_to_durable() -> None:
    one = StorageFigures(
        name="one", is_durable=True, batch_loading_s=1, model_loading_s=1, checkpoint_stall_s=1,
        time_to_durable_s=60,
    )  # fmt: skip
    job = StorageJob(saves=10, length_s=36_000)
    for limit_s, is_met in ((3660.0, True), (3659.0, False)):
        table = StorageTable(storages=(one,), job=job, needs=StorageNeeds(lose_at_most_s=limit_s))
        found = advise(table)
        assert (found.chosen is not None) == is_met
        if found.chosen is not None:
            assert lost_at_most_s(found.chosen, table) == 3660


def test_a_time_to_durable_that_is_not_known_meets_no_limit() -> None:
    found = article(lose_at_most_s=1e6)
    assert found.chosen is None
    assert found.excluding == {Constraint.LOSE_AT_MOST}


def test_both_readings_are_each_others_other() -> None:
    assert other_reading(other_reading(ResumeReading.SAME_STORE)) is ResumeReading.SAME_STORE
    assert other_reading(ResumeReading.ANYWHERE) is ResumeReading.SAME_STORE
