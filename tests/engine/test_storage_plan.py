"""Is a workload on storages a case on each of them, with a name of its own and bytes that are
bounded?"""

from typing import Any

import pytest
from tests.engine.making import COMMAND, TRAIN, a_machine, a_plan, an_experiment, devices_of

from broadgauge.engine.expected_time import trial_s
from broadgauge.engine.kinds.storage import MOST_STORAGE_ROWS, num_rows
from broadgauge.engine.plan import make_plan
from broadgauge.specs.errors import ExperimentError, InputError
from broadgauge.specs.tasks import task_of
from broadgauge.specs.workload import StorageWorkload

PHASES: dict[str, Any] = {"kind": "storage", "name": "phases"}
STORAGES: list[dict[str, Any]] = [
    {"name": "nvme", "path": "/mnt/nvme"},
    {"name": "bucket", "url": "s3://mine/runs", "endpoint": "http://127.0.0.1:9000"},
]
ONE_NODE = {"cluster": {"shapes": ["1x2"]}, "networks": []}


def planned(**changes: Any) -> Any:
    keys = {"workloads": [PHASES], "storages": STORAGES, **ONE_NODE, **changes}
    return make_plan(an_experiment(**keys), devices_of(a_machine()))


def test_each_storage_is_a_case_with_its_own_name_and_key() -> None:
    cases = planned().cases
    assert [(c.workload.name, c.storage.name) for c in cases] == [
        ("phases-nvme", "nvme"),
        ("phases-bucket", "bucket"),
    ]
    assert len({case.key for case in cases}) == 2
    assert "phases-nvme" in cases[0].label


def test_what_a_storage_is_called_and_costs_is_no_part_of_the_key() -> None:
    renamed = [{**STORAGES[0], "name": "disk", "price_usd_per_hour": 2, "store": "s"}, STORAGES[1]]
    assert [c.key for c in planned(storages=renamed).cases] == [c.key for c in planned().cases]
    moved = [{**STORAGES[0], "path": "/mnt/other"}, STORAGES[1]]
    assert planned(storages=moved).cases[0].key != planned().cases[0].key


def test_a_workload_names_the_storages_it_runs_on() -> None:
    on_one = {**TRAIN, "name": "saving", "storages": ["nvme"]}
    on_none = {**TRAIN, "name": "plain", "steps": 6}
    names = [c.workload.name for c in planned(workloads=[on_one, on_none, PHASES]).cases]
    assert names == ["saving-nvme", "plain", "phases-nvme", "phases-bucket"]


def test_cases_on_storages_share_launches_as_others_do() -> None:
    plan = planned(launches=2)
    assert [len(launch.trials) for launch in plan.launches] == [2, 2]


def test_selectors_name_them() -> None:
    for rule in ({"workload": "*-nvme"}, {"workload": "phases-nvme"}, {"storage": "nv*"}):
        assert [c.storage.name for c in planned(skip_if=[rule]).cases] == ["bucket"]
    statement = {
        "name": "faster",
        "statement": "NVMe loads faster",
        "metric": "model_loading_s",
        "cases": {"workload": "phases-nvme"},
        "over": {"workload": "phases-bucket"},
        "at_most": 0.5,
    }
    notes = planned(hypotheses=[statement]).notes
    assert not [note for note in notes if "matches no case" in note]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"storages": []}, "`phases` needs a storage"),
        ({"workloads": [{**PHASES, "storages": ["nvm"]}]}, "no storage is named `nvm`"),
        ({"workloads": [{**PHASES, "name": "a" * 60}]}, "is too long: on a storage"),
        ({"workloads": [PHASES, {**TRAIN, "name": "phases-nvme"}]}, "another's name"),
        ({"storages": [{"name": "x"}]}, "exactly one of `path`, `url` and `emulated`"),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises((InputError, ValueError), match=said):
        planned(**changes)


def test_no_more_is_written_than_may_be() -> None:
    model = {"model_bytes": "3 GiB"}
    with pytest.raises(ExperimentError) as caught:
        planned(workloads=[{**PHASES, "model_loading": model, "most_bytes": "2 GiB"}])
    text = str(caught.value)
    assert text.startswith("workloads.0.most_bytes: a trial of 1x2 writes")
    assert "model_loading 13.1 GB" in text
    assert "hint: `most_bytes: 16 GiB`" in text
    planned(workloads=[{**PHASES, "model_loading": model, "most_bytes": "16 GiB"}])


def test_rows_of_the_largest_sensible_workload_fit() -> None:
    every = StorageWorkload.model_validate(
        {
            **PHASES,
            "batch_loading": {"layouts": ["files", "jsonl", "arrow", "webdataset"]},
            "model_loading": {
                "formats": ["safetensors", "safetensors-mmap", "torch", "dcp"],
                "load_by": ["every-rank", "rank0-broadcast"],
            },
            "checkpoint_saving": {
                "formats": [
                    *("torch", "safetensors", "dcp"),
                    *("dcp-async", "dcp-async-process", "dcp-async-pinned"),
                ]
            },
        }
    )
    assert num_rows(every) == (3 + 2 * 3) + 2 * 4 + 2 * 4 * 2 + 6 <= MOST_STORAGE_ROWS
    twice = {"formats": ["torch"] * (MOST_STORAGE_ROWS + 1)}
    with pytest.raises(ExperimentError, match="measurements in one trial"):
        planned(workloads=[{**PHASES, "checkpoint_saving": twice, "most_bytes": "1 TiB"}])


def test_slower_storages_and_more_bytes_take_longer() -> None:
    slow = {"name": "slow", "emulated": {"kind": "s3", "rate_gbps": 0.1}}
    fast, slower = planned(storages=[STORAGES[0], slow]).cases
    assert trial_s(slower) > 2 * trial_s(fast)
    small = {**PHASES, "model_loading": {"model_bytes": "1 MiB"}}
    assert trial_s(planned(workloads=[small]).cases[0]) < trial_s(fast)


def test_a_task_says_where_and_nothing_secret() -> None:
    nvme, bucket = (task_of(case.workload, case.storage) for case in planned().cases)
    assert nvme.place.folder == "/mnt/nvme"
    assert (bucket.place.objects.bucket, bucket.place.objects.prefix) == ("mine", "runs")
    assert bucket.place.objects.endpoint == "http://127.0.0.1:9000"
    assert (nvme.place.is_shared, bucket.place.is_shared) == (False, True)
    assert nvme.raw is not None
    left_out = planned(workloads=[{**PHASES, "raw": None}]).cases[0]
    assert task_of(left_out.workload, left_out.storage).raw is None


def test_training_and_commands_are_told_of_their_storage() -> None:
    command = {**COMMAND, "command": ["train.py", "--data={storage.data}"]}
    train = {**TRAIN, "storages": ["nvme"]}
    cases = planned(workloads=[command, train], storages=STORAGES[:1]).cases
    for case in cases:
        assert task_of(case.workload, case.storage).storage.folder == "/mnt/nvme"
    assert task_of(a_plan(workloads=[TRAIN]).cases[0].workload).storage is None


@pytest.mark.parametrize(
    "keys",
    [
        {"command": ["train.py", "--data={storage.dta}"]},
        {"environment": {"DATA": "{storage.dta}"}},
    ],
)
def test_a_placeholder_that_stands_for_nothing_is_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"`\{storage\.dta\}` stands for nothing"):
        planned(workloads=[{**COMMAND, **keys}])


def test_a_command_with_a_placeholder_needs_a_storage() -> None:
    with pytest.raises(ValueError, match="needs a storage"):
        planned(workloads=[{**COMMAND, "command": ["t.py", "{storage.model}"]}], storages=[])
