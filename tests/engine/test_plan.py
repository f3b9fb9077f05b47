"""Laws of the plan: what every experiment's schedule must keep, and what shapes mean."""

from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.engine.making import (
    COLLECTIVES,
    COMMAND,
    NETWORKS,
    TRAIN,
    a_machine,
    a_plan,
    an_experiment,
    devices_of,
    trial_ids,
)

from broadgauge.engine.plan import make_plan, on_local_platform
from broadgauge.platforms.devices import emulated_devices
from broadgauge.specs.errors import ExperimentError, InputError
from broadgauge.specs.plan import Plan, PlannedLaunch

WORKLOADS = (
    TRAIN,
    COLLECTIVES,
    {**TRAIN, "name": "longer", "steps": 8},
    {**TRAIN, "name": "tuned", "environment": {"OMP_NUM_THREADS": "2"}},
    COMMAND,
    {**TRAIN, "name": "on-slow", "steps": 16, "networks": ["slow"]},
)


@st.composite
def plans(draw: st.DrawFn) -> tuple[Plan, dict[str, Any], int]:
    changes = {
        "workloads": draw(
            st.lists(st.sampled_from(WORKLOADS), min_size=1, max_size=6, unique_by=str)
        ),
        "cluster": {
            "shapes": draw(
                st.lists(
                    st.sampled_from(("1x2", "2x1", "2xauto", "4x1", "1xall")),
                    min_size=1,
                    unique=True,
                )
            )
        },
        "launches": draw(st.integers(1, 9)),
        "trials_per_launch": draw(st.integers(1, 3)),
        "seed": draw(st.integers(0, 2**32 - 1)),
    }
    for number, workload in enumerate(changes["workloads"]):
        changes["workloads"][number] = {"name": workload.get("name", workload["kind"]), **workload}
    gpus = draw(st.sampled_from((0, 1, 2, 4, 8)))
    is_alone = changes["cluster"]["shapes"] == ["1xall"]  # all of one rank: collectives have none
    assume(not is_alone or any(w["kind"] != "collectives" for w in changes["workloads"]))
    return a_plan(gpus=gpus, **changes), changes, gpus


def in_launch(plan: Plan, launch: PlannedLaunch) -> list[str]:
    return [trial.case_key for trial in launch.trials]


@given(plans())
@settings(max_examples=150, deadline=None)
def test_every_block_holds_every_case_equally(made: tuple[Plan, dict[str, Any], int]) -> None:
    plan, changes, _ = made
    by_block: dict[int, Counter[str]] = defaultdict(Counter)
    for launch in plan.launches:
        by_block[launch.block].update(in_launch(plan, launch))
    wanted = {
        case.key: 1 if case.workload.kind == "command" else changes["trials_per_launch"]
        for case in plan.cases
    }
    assert sorted(by_block) == list(range(changes["launches"]))
    assert all(counts == wanted for counts in by_block.values())
    assert [launch.block for launch in plan.launches] == sorted(
        launch.block for launch in plan.launches
    )


@given(plans())
@settings(max_examples=100, deadline=None)
def test_ids_are_unique_and_planning_again_gives_the_same_bytes(
    made: tuple[Plan, dict[str, Any], int],
) -> None:
    plan, changes, gpus = made
    ids = trial_ids(plan)
    assert len(set(ids)) == len(ids)
    assert len({launch.launch_id for launch in plan.launches}) == len(plan.launches)
    assert len({case.key for case in plan.cases}) == len(plan.cases)
    assert a_plan(gpus=gpus, **changes).model_dump_json() == plan.model_dump_json()
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


@given(plans())
@settings(max_examples=100, deadline=None)
def test_cases_of_a_launch_could_share_their_ranks(made: tuple[Plan, dict[str, Any], int]) -> None:
    plan, _, _ = made
    for launch in plan.launches:
        cases = [plan.case(key) for key in in_launch(plan, launch)]
        first = cases[0]
        for case in cases:
            assert (case.shape, case.device, case.backend) == (
                first.shape,
                first.device,
                first.backend,
            )
            assert case.environment == first.environment
            assert case.backend == "gloo" or case.network == first.network
        if any(case.workload.kind == "command" for case in cases):
            assert len(cases) == 1


@given(plans())
@settings(max_examples=100, deadline=None)
def test_any_two_cases_are_in_both_orders_equally_often(
    made: tuple[Plan, dict[str, Any], int],
) -> None:
    plan, changes, _ = made
    num_pairs = changes["launches"] // 2
    firsts: list[dict[str, int]] = []
    for block in range(2 * num_pairs):
        first_place: dict[str, int] = {}
        keys = [
            key
            for launch in plan.launches
            if launch.block == block
            for key in in_launch(plan, launch)
        ]
        for place, key in enumerate(keys):
            first_place.setdefault(key, place)
        firsts.append(first_place)
    for a, b in combinations([case.key for case in plan.cases], 2):
        assert sum(first[a] < first[b] for first in firsts) == num_pairs


def test_the_first_blocks_of_three_cases() -> None:
    workloads = [{**TRAIN, "name": name, "steps": 4 + n} for n, name in enumerate("abc")]
    plan = a_plan(workloads=workloads, cluster={"shapes": ["1x1"]}, launches=6, trials_per_launch=2)
    orders = [
        "".join(plan.case(trial.case_key).workload.name for trial in launch.trials)
        for launch in plan.launches
    ]
    assert orders == ["abcabc", "cbacba", "bcabca", "acbacb", "cabcab", "bacbac"]
    assert [trial.trial for trial in plan.launches[0].trials] == [0, 0, 0, 1, 1, 1]


def test_the_seed_says_where_the_first_block_begins() -> None:
    first = [launch.trials[0].case_key for launch in a_plan(seed=0).launches]
    assert first != [launch.trials[0].case_key for launch in a_plan(seed=1).launches]


def test_gloo_has_one_launch_for_all_networks_and_nccl_one_for_each() -> None:
    shapes = {"shapes": ["2x1"]}
    assert len(a_plan(cluster=shapes, launches=1).launches) == 1
    assert len(a_plan(gpus=2, cluster=shapes, launches=1).launches) == 2


@pytest.mark.parametrize(
    ("shapes", "gpus", "expected", "device"),
    [
        (["1x1", "2x1"], 0, ["1x1", "2x1"], "cpu"),
        (["1x1", "2x1"], 1, ["1x1", "2x1"], "cpu"),
        (["1x1", "2x1"], 2, ["1x1", "2x1"], "cuda"),
        (["1xauto", "2xauto"], 8, ["1x4", "2x4"], "cuda"),
        (["1xauto", "2xauto"], 0, ["1x1", "2x1"], "cpu"),
        (["1xauto", "2xauto"], 1, ["1x1", "2x1"], "cpu"),
        (["2xauto", "1xall"], 5, ["2x2", "1x4"], "cuda"),
        (["1xall"], 8, ["1x8"], "cuda"),
        (["1xall", "2x2"], 0, ["1x4", "2x2"], "cpu"),
        (["2x1", "2xauto"], 0, ["2x1"], "cpu"),
    ],
)
def test_shapes(shapes: list[str], gpus: int, expected: list[str], device: str) -> None:
    plan = a_plan(gpus=gpus, cluster={"shapes": shapes})
    assert list(dict.fromkeys(case.shape for case in plan.cases)) == expected
    assert {case.device for case in plan.cases} == {device}


@pytest.mark.parametrize(
    ("cluster", "gpus", "words"),
    [
        ({"shapes": ["2x2"], "device": "cuda"}, 2, "2x2 needs a GPU for each of its 4 ranks"),
        ({"shapes": ["2xauto"], "device": "cuda"}, 0, "this machine has no GPU"),
        ({"backend": "nccl"}, 0, "NCCL needs a GPU for each rank"),
        ({"shapes": ["1x3", "2xall"]}, 0, "do not divide by 2 nodes"),
        ({"shapes": ["1xall", "10x10"]}, 0, "a node has 1 to 64 ranks"),
    ],
)
def test_clusters_that_are_refused(cluster: dict[str, Any], gpus: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        a_plan(gpus=gpus, cluster=cluster)


def test_every_rank_of_every_shape_has_the_same_cores() -> None:
    plan = a_plan(cores=8, cluster={"shapes": ["1x1", "2x2", "4x1", "1xall"]})
    cores = {
        plan.case(launch.trials[0].case_key).shape: launch.cores_per_node
        for launch in plan.launches
    }
    assert cores == {"1x1": 2, "2x2": 4, "4x1": 2, "1x4": 8}
    assert {launch.cores_per_node for launch in a_plan(cluster={"cores_per_node": 7}).launches} == {
        7
    }
    assert {launch.cores_per_node for launch in a_plan(cores=1).launches} == {1}


def test_more_rows_than_a_record_holds_are_refused() -> None:
    sizes = {"from_bytes": 8, "to_bytes": 2**33, "factor": 1.1}
    with pytest.raises(ExperimentError, match="fit in its record"):
        a_plan(workloads=[{**COLLECTIVES, "sizes": sizes}])


def test_one_node_has_no_network_and_its_cases_are_there_once() -> None:
    plan = a_plan(cluster={"shapes": ["1x2"]})
    assert [(case.workload.name, case.network) for case in plan.cases] == [
        ("train", None),
        ("collectives", None),
    ]
    assert "no shape has several nodes: the networks between nodes are not used" in plan.notes


def test_the_same_case_under_two_names_is_run_once_and_said() -> None:
    plan = a_plan(networks=[*NETWORKS, {"name": "as-slow", "rate_gbps": 0.1}])
    assert all(case.network_name != "as-slow" for case in plan.cases)
    assert "train 2x1 as-slow is the same as train 2x1 slow: it is run once" in plan.notes


def test_collectives_of_one_rank_are_left_out_and_said() -> None:
    assert "collectives 1x1 one node is left out: one rank has no communication" in a_plan().notes
    with pytest.raises(InputError, match="nothing is left to run"):
        a_plan(workloads=[COLLECTIVES], cluster={"shapes": ["1x1"]})


def test_variables_of_the_workload_win_over_the_networks_and_the_experiments() -> None:
    plan = a_plan(
        environment={"A": "experiment", "B": "experiment", "C": "experiment"},
        networks=[{"name": "slow", "environment": {"B": "network", "C": "network"}}],
        workloads=[{**TRAIN, "environment": {"C": "workload"}}],
    )
    by_shape = {case.shape: case.environment for case in plan.cases}
    assert by_shape["2x1"] == {"A": "experiment", "B": "network", "C": "workload"}
    assert by_shape["1x1"] == {"A": "experiment", "B": "experiment", "C": "workload"}


def test_expected_times_are_the_sums_and_grow_with_slower_links() -> None:
    plan = a_plan(workloads=[TRAIN, COLLECTIVES, COMMAND])
    assert plan.expected_s == pytest.approx(sum(launch.expected_s for launch in plan.launches))
    slower = a_plan(networks=[{"name": "slow", "rate_gbps": 1e-3}, {"name": "reference"}])
    assert slower.expected_s > 1.5 * a_plan().expected_s
    assert any("is a guess" in note for note in plan.notes)


def test_what_can_run_on_the_local_platform() -> None:
    local = on_local_platform(
        an_experiment(cluster={"shapes": ["1x1", "2x2", "1xall"]}), emulated_devices(a_machine())
    )
    assert local.platform == "local"
    assert local.cluster.shapes == ("1x1", "1x4")
    assert all(case.network is None for case in make_plan(local, devices_of(a_machine())).cases)
    none_of_one_node = on_local_platform(
        an_experiment(cluster={"shapes": ["2x1"]}), emulated_devices(a_machine())
    )
    assert none_of_one_node.cluster.shapes == ("1x2",)


def test_a_schedule_that_no_one_can_want_is_refused() -> None:
    with pytest.raises(InputError, match=r"trials .* are more than the 100,000"):
        a_plan(launches=1000, trials_per_launch=1000)


def test_cases_that_exclude_each_other_run_one_by_one_and_are_never_in_one_block() -> None:
    plan = a_plan(
        allocation="per_case",
        workloads=[{**COLLECTIVES, "name": "a"}, {**COLLECTIVES, "name": "b"}],
        launches=3,
    )
    keys = [launch.trials[0].case_key for launch in plan.launches]
    order = list(dict.fromkeys(keys))
    assert order == [case.key for case in plan.cases]
    assert keys == [key for key in order for _ in range(3)]
    assert all(len({t.case_key for t in launch.trials}) == 1 for launch in plan.launches)
    blocks = defaultdict(set)
    for launch in plan.launches:
        blocks[launch.block].add(launch.trials[0].case_key)
    assert all(len(own) == 1 for own in blocks.values())
    assert any("no comparison is paired" in note for note in plan.notes)
