"""Do equal world sizes stand side by side?"""

import pytest
from tests.results import simulated_experiments as made

from broadgauge.results.comparing.placement import placements
from broadgauge.specs.case import Case
from broadgauge.specs.networks.network import NodePath

WIGGLE = (1.0, 1.01, 0.99, 1.005, 0.995)


def shaped(case: Case, nodes: int, ranks: int) -> Case:
    return case.model_copy(update={"nodes": nodes, "ranks_per_node": ranks})


def times(level: float) -> list[float]:
    return [level * w for w in WIGGLE]


INSIDE = shaped(made.network_case("x", nodes=1), 1, 4)
SLOW = made.network_case("slow")


def test_shapes_of_one_world_are_columns_and_networks_rows() -> None:
    cases = [shaped(SLOW, 4, 1), INSIDE, shaped(SLOW, 2, 2), SLOW]
    run = made.run_of(cases, [times(3.0), times(1.0), times(2.0), times(1.5)])
    (found,) = placements(run)
    assert (found.workload, found.world_size, found.metric) == ("train", 4, "step_time_s")
    assert found.shapes == ("1x4", "2x2", "4x1")
    (row,) = found.rows
    assert row.network == "slow"
    ratios = [cell.over_first and cell.over_first.value for cell in row.cells]
    assert ratios == [None, pytest.approx(2.0), pytest.approx(3.0)]


def test_several_paths_inside_have_rows_of_their_own() -> None:
    paths = [
        INSIDE.model_copy(update={"network": NodePath(name=name, path=name)})
        for name in ("nvlink", "shm")
    ]
    run = made.run_of([*paths, shaped(SLOW, 2, 2)], [times(1.0), times(1.2), times(2.0)])
    (found,) = placements(run)
    assert [row.network for row in found.rows] == ["nvlink", "shm", "slow"]
    assert [cell is None for cell in found.rows[2].cells] == [True, False]


def test_one_shape_or_a_baseline_is_no_placement() -> None:
    other = shaped(SLOW, 2, 2).model_copy(update={"arm": "baseline"})
    run = made.run_of([INSIDE, other], [times(1.0), times(2.0)])
    assert placements(run) == ()
    failed = made.run_of([INSIDE, shaped(SLOW, 2, 2)], [times(1.0), []])
    assert placements(failed) == ()
