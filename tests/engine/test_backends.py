"""Are cases that a backend can't run left out with the reason, and all the others kept?"""

from typing import Any

import pytest
from tests.engine.making import COLLECTIVES, TRAIN, a_plan

PATHS = [{"name": path, "path": path} for path in ("nvlink", "pcie", "shm", "sockets")]
TWO_GPUS = {"shapes": ["1x2"], "device": "cuda", "backend": ["nccl", "gloo"]}


def test_every_path_has_its_case_and_gloo_the_sockets() -> None:
    plan = a_plan(gpus=2, networks=PATHS, workloads=[COLLECTIVES, TRAIN], cluster=TWO_GPUS)
    names = ["nvlink", "pcie", "shm", "sockets", "sockets/gloo"]
    assert [case.network_name for case in plan.cases] == names * 2
    left_out = "collectives 1x2 shm/gloo is left out: Gloo has no path but sockets inside a node"
    assert left_out in plan.notes


def test_each_path_of_nccl_has_a_launch_of_its_own() -> None:
    """NCCL reads its variables once in a process's life."""
    plan = a_plan(gpus=2, networks=PATHS, workloads=[COLLECTIVES], cluster=TWO_GPUS)
    by_key = {case.key: case for case in plan.cases}
    for launch in plan.launches:
        names = {by_key[trial.case_key].network_name for trial in launch.trials}
        assert len(names) == 1, names


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ops": ["all_reduce", "send_recv"]}, "Gloo sends no messages between two ranks"),
        ({"pairwise": True}, "Gloo sends no messages between two ranks"),
        ({"cuda_graphs": True}, "a CUDA graph holds work of the GPU alone"),
        ({"engine": "nccl-tests"}, "nccl-tests measures NCCL alone"),
    ],
)
def test_what_gloo_can_not_do_with_a_gpus_memory(change: dict[str, Any], reason: str) -> None:
    collectives = {key: value for key, value in COLLECTIVES.items() if key != "ops"} | change
    cluster = {**TWO_GPUS, "shapes": ["1x2", "2x1"]}
    plan = a_plan(gpus=2, workloads=[collectives], cluster=cluster)
    assert {case.backend for case in plan.cases} == {"nccl"}
    assert any(reason in note for note in plan.notes)


@pytest.mark.parametrize("op", ["all_to_all", "broadcast", "reduce", "all_gather"])
def test_collectives_go_through_the_host(op: str) -> None:
    plan = a_plan(gpus=2, workloads=[{**COLLECTIVES, "ops": [op]}], cluster=TWO_GPUS)
    assert {case.backend for case in plan.cases} == {"nccl", "gloo"}


def test_messages_between_cpus_are_gloos_own() -> None:
    plan = a_plan(workloads=[{**COLLECTIVES, "ops": ["send_recv"]}], cluster={"shapes": ["2x1"]})
    assert {case.backend for case in plan.cases} == {"gloo"}
