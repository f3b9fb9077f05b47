"""Is a workload of files run on each of its storages, in any shape, and no other workload?"""

from typing import Any

import pytest
from tests.engine.making import TRAIN, a_machine, an_experiment, devices_of

from broadgauge.engine.kinds.registry import in_engine
from broadgauge.engine.plan import make_plan
from broadgauge.specs.case import Case, case_name
from broadgauge.specs.plan import Plan
from broadgauge.specs.text.reading import read_experiment

STORAGES = [{"name": "disk", "path": "/mnt"}, {"name": "memory", "path": "/dev/shm"}]
RAW = {"kind": "storage", "name": "raw", "size": 1_000_000, "repetitions": 3}
BATCHES: dict[str, Any] = {
    "kind": "storage",
    "phase": "batches",
    "name": "batches",
    "samples": 64,
    "batch_per_rank": 8,
    "repetitions": 2,
}
MATRIX = {
    "networks": [{"name": "slow", "rate_gbps": 0.1}],
    "storages": STORAGES,
    "workloads": [TRAIN, RAW, {**RAW, "name": "on-disk", "storages": ["disk"], "size": 2_000_000}],
    "cluster": {"shapes": ["1x1", "2x1"], "backend": "gloo"},
}


def planned(**changes: Any) -> Plan:
    return make_plan(an_experiment(**{**MATRIX, **changes}), devices_of(a_machine()))


def labels(plan: Plan) -> list[str]:
    return sorted(case.label for case in plan.cases)


def test_cases_are_named_by_their_storages() -> None:
    assert labels(planned()) == [
        "on-disk 1x1 disk",
        "on-disk 2x1 slow, disk",
        "raw 1x1 disk",
        "raw 1x1 memory",
        "raw 2x1 slow, disk",
        "raw 2x1 slow, memory",
        "train 1x1 one node",
        "train 2x1 slow",
    ]
    names = {case_name(case) for case in planned().cases}
    assert len(names) == 8
    assert {name.storage for name in names if name.workload == "train"} == {""}


def test_a_rule_may_name_a_storage() -> None:
    left = planned(skip_if=[{"storage": "disk"}, {"nodes": 2}])
    assert labels(left) == ["raw 1x1 memory", "train 1x1 one node"]


def test_storages_of_one_node_share_a_launch() -> None:
    plan = planned(launches=1, cluster={"shapes": ["1x1"], "backend": "gloo"})
    assert len(plan.launches) == 1


def _key(storage: dict[str, Any]) -> str:
    (case,) = planned(
        storages=[storage], workloads=[RAW], cluster={"shapes": ["1x1"], "backend": "gloo"}
    ).cases
    return case.key


def test_what_is_said_of_a_storage_is_no_new_case() -> None:
    plain = _key(STORAGES[0])
    told = {"name": "other", "read_gbyte_per_s": 5, "write_gbyte_per_s": 1, "is_durable": True}
    assert _key(STORAGES[0] | told) == plain
    assert _key(STORAGES[1]) != plain


def test_written_bytes_are_those_of_all_ranks_and_repetitions() -> None:
    written = {case.label: in_engine(case.workload).written_bytes(case) for case in planned().cases}
    assert written["raw 1x1 disk"] == 4 * 1_000_000
    assert written["on-disk 2x1 slow, disk"] == 2 * 4 * 2_000_000
    assert written["train 2x1 slow"] == 0


def test_samples_that_ranks_can_not_share_leave_a_shape_out() -> None:
    plan = planned(workloads=[{**BATCHES, "samples": 63}], storages=STORAGES[:1])
    assert labels(plan) == ["batches 1x1 disk"]
    assert any("63 samples are no multiple of 2 ranks" in note for note in plan.notes)


def test_steps_that_compute_take_their_time() -> None:
    cluster = {"shapes": ["1x1"], "backend": "gloo"}
    plain, computing = (
        planned(workloads=[BATCHES | more], storages=STORAGES[:1], cluster=cluster).expected_s
        for more in ({}, {"step_time_s": 2.0})
    )
    steps = 8 * BATCHES["repetitions"]
    assert computing - plain >= 2.0 * steps


def test_making_many_samples_takes_its_time() -> None:
    cluster = {"shapes": ["1x1"], "backend": "gloo"}
    fast = [{**STORAGES[0], "read_gbyte_per_s": 1000.0, "write_gbyte_per_s": 1000.0}]
    few, many = (
        planned(workloads=[BATCHES | {"sample_size": size}], storages=fast, cluster=cluster)
        for size in ("16 KiB", "100 MiB")
    )
    assert many.expected_s - few.expected_s > BATCHES["samples"] * 0.1  # at 1 GB/s


def test_a_warm_up_that_a_limit_may_end_is_told() -> None:
    large = BATCHES | {"sample_size": "100 MiB"}
    told = planned(workloads=[BATCHES, large | {"name": "large"}], storages=STORAGES[:1]).notes
    (words,) = [note for note in told if "warm_up_s" in note]
    assert words.startswith("large: its warm-up takes about ")
    assert words.endswith("which `limits: {warm_up_s: 120}` may end")
    patient = {"limits": {"warm_up_s": 36_000}}
    told = planned(workloads=[large], storages=STORAGES[:1], **patient).notes
    assert not [note for note in told if "warm_up_s" in note]


def test_a_case_without_a_storage_has_the_key_that_it_had() -> None:
    (case,) = planned(workloads=[TRAIN], cluster={"shapes": ["1x1"], "backend": "gloo"}).cases
    stored = case.model_dump(mode="json", exclude={"storage"})
    assert Case.model_validate(stored).key == case.key


TEXT = """\
name: x
cluster: {shapes: [1x1]}
storages:
  - {name: disk, path: [/a, /b]}
workloads:
  - {kind: storage, name: raw, storages: [disk], cache: [cold, warm]}
skip_if:
  - {storage: disk, workload: raw-cache-warm}
"""


def test_a_list_of_paths_is_an_axis_whose_name_means_all_of_it() -> None:
    experiment = read_experiment(TEXT, "e.yaml")
    assert [storage.path for storage in experiment.storages] == ["/a", "/b"]
    names = [storage.name for storage in experiment.storages]
    for workload in experiment.workloads:
        assert workload.named_storages == tuple(names)
    (rule,) = experiment.skip_if
    assert rule.storage == ("disk-*",)


@pytest.mark.parametrize("name", ["disc", "dis"])
def test_a_storage_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(Exception, match=f"no storage is named `{name}`"):
        planned(workloads=[{**RAW, "storages": [name]}])
