"""Laws of a plan with a baseline: both arms in every block, side by side, in both orders."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.fake_platform import FakeClock, FakePlatform, services
from tests.engine.making import (
    COMMAND,
    NETWORKS,
    TRAIN,
    a_machine,
    an_experiment,
    devices_of,
    make_folder,
)

from broadgauge.engine.against import Against
from broadgauge.engine.plan import make_plan
from broadgauge.engine.run import run
from broadgauge.specs.case import Arm, case_name
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.plan import BaselineRun, Plan

OLD_FOLDER = "/old"
NEW_FOLDER = "/new"
QUICKER = {**TRAIN, "batch_per_rank": 1}
TUNED = {**TRAIN, "environment": {"OMP_NUM_THREADS": "2"}}


def against(experiment: Experiment, folder: str = OLD_FOLDER) -> Against:
    return Against(
        run=BaselineRun(
            run="runs/old", experiment_name="old", started_unix_s=1.0, working_folder=folder
        ),
        experiment=experiment,
    )


def both(
    candidate: dict[str, Any], baseline: dict[str, Any], *, gpus: int = 0, folder: str = OLD_FOLDER
) -> Plan:
    return make_plan(
        an_experiment(**candidate),
        devices_of(a_machine(gpus=gpus)),
        working_folder=NEW_FOLDER,
        against=against(an_experiment(**baseline), folder),
    )


def arm_of(plan: Plan, case_key: str) -> Arm:
    return plan.case(case_key).arm


changes = st.fixed_dictionaries(
    {
        "workloads": st.lists(
            st.sampled_from(
                [
                    {"name": "a", **TRAIN},
                    {"name": "b", **QUICKER},
                    {"name": "c", **TUNED},
                    {"name": "d", **COMMAND},
                ]
            ),
            min_size=1,
            max_size=4,
            unique_by=lambda workload: workload["name"],
        ),
        "launches": st.integers(1, 7),
        "trials_per_launch": st.integers(1, 2),
        "seed": st.integers(0, 99),
    }
)


@given(changes, changes, st.sampled_from((0, 2)))
@settings(max_examples=150, deadline=None)
def test_both_sides_of_a_case_run_in_every_block_in_both_orders(
    candidate: dict[str, Any], baseline: dict[str, Any], gpus: int
) -> None:
    names = {w["name"] for w in candidate["workloads"]} & {w["name"] for w in baseline["workloads"]}
    if not names:
        with pytest.raises(InputError, match="no case of the experiment is in the baseline"):
            both(candidate, baseline, gpus=gpus)
        return
    plan = both(candidate, baseline, gpus=gpus)
    sides: dict[Any, dict[str, str]] = {}
    for case in plan.cases:
        sides.setdefault(case_name(case), {})[case.arm] = case.key
    pairs = [keys for keys in sides.values() if len(keys) == 2]
    assert {case.workload.name for case in plan.cases if case.arm == "baseline"} == names
    assert len({launch.block for launch in plan.launches}) == max(
        3, candidate["launches"], baseline["launches"]
    )
    for keys in pairs:
        first = []
        for block in {launch.block for launch in plan.launches}:
            order = [
                trial.case_key
                for launch in plan.launches
                if launch.block == block
                for trial in launch.trials
            ]
            counts = {arm: order.count(key) for arm, key in keys.items()}
            assert counts["candidate"] == counts["baseline"] > 0
            first.append(order.index(keys["candidate"]) < order.index(keys["baseline"]))
        assert all(one is not other for one, other in list(pairwise(first))[::2])


@given(changes, st.sampled_from((0, 2)))
@settings(max_examples=80, deadline=None)
def test_the_two_launches_of_a_comparison_are_neighbours(
    candidate: dict[str, Any], gpus: int
) -> None:
    plan = both(candidate, candidate, gpus=gpus)
    for block in {launch.block for launch in plan.launches}:
        launches = [launch for launch in plan.launches if launch.block == block]
        assert len(launches) % 2 == 0
        for one, other in zip(launches[::2], launches[1::2], strict=True):
            arms = [
                {arm_of(plan, trial.case_key) for trial in each.trials} for each in (one, other)
            ]
            assert sorted(map(sorted, arms)) == [["baseline"], ["candidate"]]
            names = [
                {case_name(plan.case(t.case_key)) for t in each.trials} for each in (one, other)
            ]
            assert names[0] == names[1]


def test_groups_that_a_variable_parts_on_one_side_stay_together() -> None:
    workloads = [{"name": "a", **TRAIN}, {"name": "b", **QUICKER}]
    parted = [{"name": "a", **TUNED}, {"name": "b", **QUICKER}]
    shapes = {"shapes": ["1x1", "2x1"]}
    plan = both(
        {"workloads": workloads, "cluster": shapes}, {"workloads": parted, "cluster": shapes}
    )
    for block in (0, 1, 2):
        launches = [launch for launch in plan.launches if launch.block == block]
        shapes_run = [plan.case(launch.trials[0].case_key).shape for launch in launches]
        assert len(launches) == 6
        assert sum(a != b for a, b in pairwise(shapes_run)) == 1


def test_what_one_side_alone_has_is_named_and_the_baselines_is_not_run() -> None:
    plan = both(
        {"workloads": [TRAIN, COMMAND], "networks": [NETWORKS[0]]},
        {"workloads": [TRAIN], "networks": NETWORKS},
        gpus=0,
    )
    assert [case.label for case in plan.cases if case.arm == "baseline"] == [
        "train 1x1 one node (baseline)",
        "train 2x1 slow (baseline)",
    ]
    assert (
        "command 1x1 one node is in this experiment only: it is run without a partner" in plan.notes
    )
    assert "train 2x1 reference is in the baseline only: it is not run" in plan.notes


def test_what_is_the_same_on_both_sides_is_said() -> None:
    command = {"workloads": [COMMAND], "cluster": {"shapes": ["1x1"]}}

    def is_said(plan: Plan) -> bool:
        return any(note.startswith("the same on both sides") for note in plan.notes)

    assert is_said(both(command, command, folder=NEW_FOLDER))
    assert not is_said(both(command, command, folder=OLD_FOLDER))
    training = {"workloads": [TRAIN], "cluster": {"shapes": ["1x1"]}}
    assert is_said(both(training, training, folder=OLD_FOLDER))
    assert not is_said(both(training, {**training, "workloads": [QUICKER]}, folder=NEW_FOLDER))


def test_launches_and_limits_are_the_larger_of_both() -> None:
    plan = both({"launches": 4, "limits": {"measure_s": 9}}, {"launches": 6})
    assert len({launch.block for launch in plan.launches}) == 6
    assert "6 launches of each case, not 4: the baseline's number" in plan.notes
    assert plan.limits.measure_s == 600
    assert len({launch.block for launch in both({"launches": 1}, {"launches": 1}).launches}) == 3


def test_a_baseline_that_cannot_run_here_is_named() -> None:
    with pytest.raises(InputError, match=r"the baseline runs/old can't be run here: .*GPU"):
        both({}, {"cluster": {"device": "cuda"}})


def test_each_arm_runs_in_its_own_folder_and_resume_knows_it(tmp_path: Path) -> None:
    experiment = {"workloads": [COMMAND], "cluster": {"shapes": ["1x1"]}}
    plan = both(experiment, experiment)
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    folder = make_folder(tmp_path, plan)
    clock = FakeClock()
    platform = FakePlatform(clock)
    run(plan, platform, folder, services(clock))
    assert {each.arm for each in platform.requests} == {"candidate", "baseline"}
    assert all(len({case.arm for case in each.cases}) == 1 for each in platform.requests)


def test_the_plan_knows_what_only_the_baseline_has() -> None:
    """For the gate to count; the baseline's own label, not an arm's."""
    here = {"workloads": [{"name": "a", **TRAIN}]}
    there = {"workloads": [{"name": "a", **TRAIN}, {"name": "b", **QUICKER}]}
    plan = both(here, there)
    assert plan.baseline is not None
    assert {label.split()[0] for label in plan.baseline.only_there} == {"b"}
    same = both(here, here).baseline
    assert same is not None
    assert same.only_there == ()


@pytest.mark.parametrize("folder", [NEW_FOLDER, OLD_FOLDER])
def test_a_gate_never_holds_a_folder_against_itself(folder: str) -> None:
    """What was edited in place runs in both arms: `no regression` would be false."""
    command = an_experiment(workloads=[COMMAND], cluster={"shapes": ["1x1"]})
    there = against(command, folder)
    gated = Against(run=there.run.model_copy(update={"fail_above_ratio": 0.03}), experiment=command)

    def plan() -> Plan:
        return make_plan(command, devices_of(a_machine()), working_folder=NEW_FOLDER, against=gated)

    if folder == OLD_FOLDER:
        assert plan().baseline is not None
    else:
        with pytest.raises(InputError, match="compared with itself") as raised:
            plan()
        assert "git worktree" in str(raised.value.hint)
