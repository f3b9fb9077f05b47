"""Which rows calibrate: deterministic, spread out, and blind to what was measured."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.predict.making_tables import table_of

from broadgauge.predict.calibration import rows as module
from broadgauge.predict.calibration.rows import Calibrate, system_of
from broadgauge.predict.facts.knowledge import prior_knowledge
from broadgauge.predict.tables.table import StepRow

GRID = [
    {"id": f"n{nodes}-b{batch}", "nodes": str(nodes), "data_parallel": str(8 * nodes),
     "micro_batch": str(batch), "global_batch": str(8 * nodes * batch),
     "transport": "none" if nodes == 1 else "infiniband"}
    for nodes in (1, 2, 4)
    for batch in (1, 2, 4, 8)
]  # fmt: skip


def calibration_rows(
    rows: Sequence[StepRow], calibrate: Calibrate, num_points: int
) -> dict[tuple[str, ...], list[StepRow]]:
    return module.calibration_rows(rows, calibrate, num_points, prior_knowledge())


def ids(chosen: dict[tuple[str, ...], list[StepRow]]) -> list[list[str]]:
    return [[row.id for row in rows] for rows in chosen.values()]


def test_nothing_calibrates_where_nothing_is_asked_for() -> None:
    assert calibration_rows(table_of(*GRID).rows, "none", 3) == {}


def test_a_system_has_at_most_so_many_and_a_network_of_it_too() -> None:
    rows = table_of(*GRID).rows
    assert [len(each) for each in ids(calibration_rows(rows, "system", 3))] == [3]
    assert [len(each) for each in ids(calibration_rows(rows, "system-network", 2))] == [4]


def test_never_more_than_half_of_a_group_calibrates() -> None:
    assert [len(each) for each in ids(calibration_rows(table_of(*GRID[:3]).rows, "system", 3))] == [
        1
    ]
    assert ids(calibration_rows(table_of(GRID[0]).rows, "system", 3)) == [[]]


def test_rows_of_one_system_are_alike_in_source_gpu_framework_and_arithmetic() -> None:
    others = [
        {"source": "somebody else"},
        {"gpu": "a100-sxm-80gb"},
        {"framework": "megatron-lm"},
        {"dtype": "fp16"},
    ]
    table = table_of({}, {"layers": "12"}, *others)
    assert len({system_of(row) for row in table.rows}) == 5


def test_rows_of_several_regimes_come_first() -> None:
    [chosen] = ids(calibration_rows(table_of(*GRID).rows, "system", 3))
    assert any(name.startswith("n1") for name in chosen)
    assert not all(name.startswith("n1") for name in chosen)
    assert len({name.split("-")[1] for name in chosen}) > 1


@settings(max_examples=10, deadline=None)
@given(st.lists(st.floats(0.01, 100), min_size=len(GRID), max_size=len(GRID)))
def test_what_was_measured_decides_nothing(times_s: list[float]) -> None:
    plain = calibration_rows(table_of(*GRID).rows, "system-network", 3)
    rows = [row | {"step_time_s": repr(time)} for row, time in zip(GRID, times_s, strict=True)]
    assert ids(calibration_rows(table_of(*rows).rows, "system-network", 3)) == ids(plain)


def test_one_setting_measured_often_calibrates_last() -> None:
    repeated = [GRID[5] | {"id": f"again{i}"} for i in range(5)]
    [chosen] = ids(calibration_rows(table_of(*repeated, *GRID[8:]).rows, "system", 3))
    assert sum(name.startswith("again") for name in chosen) <= 1


def test_of_like_kernels_those_of_many_rows_are_measured() -> None:
    """Each of twelve rows says the same of like kernels; of what is its own, half say it."""
    batches = [*range(60, 66), *[58] * 6]
    rows = [
        GRID[0] | {"id": f"b{batch}-{index}", "micro_batch": str(batch),
                   "global_batch": str(8 * batch), "gpus_per_node": "8", "data_parallel": "8"}
        for index, batch in enumerate(batches)
    ]  # fmt: skip
    [[chosen]] = ids(calibration_rows(table_of(*rows).rows, "system", 1))
    assert chosen.startswith("b58")
