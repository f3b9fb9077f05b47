"""Does a reader of today live with what a later version writes, at every place of every model?

The samples hold every model that a run folder can hold (a test counts them), so that a new kind of
workload or network joins the walk or fails it.
"""

import json
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import pytest
from pydantic import BaseModel
from rich.console import Console

from broadgauge.analysis.analyse import analysed
from broadgauge.report.terminal.printing import print_run
from broadgauge.results.folder.reading import read_environments, read_plan
from broadgauge.results.folder.records_file import read_records
from broadgauge.results.summary import summarise_stored
from broadgauge.specs.base import Spec
from broadgauge.specs.case import Case
from broadgauge.specs.cost import Cost
from broadgauge.specs.errors import RunFolderError
from broadgauge.specs.hypothesis import Hypothesis, PublishedFigure
from broadgauge.specs.networks.network import Network, NodePath
from broadgauge.specs.plan import BaselineRun, Plan, PlanGrowth, PlannedLaunch, PlannedTrial
from broadgauge.specs.records.imported import Imported
from broadgauge.specs.records.record import Environment, NodeFacts, Record
from broadgauge.specs.secrets.variables import FromEnvironment
from broadgauge.specs.storages.storage import EmulatedDisk, Storage
from broadgauge.specs.workloads.workload import (
    BatchesWorkload,
    CheckpointWorkload,
    CollectivesWorkload,
    CommandWorkload,
    ModelLoadWorkload,
    RawFilesWorkload,
    TrainWorkload,
)

MODEL = {"layers": 1, "hidden": 32, "heads": 2, "seq_len": 16}
WORKLOADS = (
    TrainWorkload.model_validate(
        {
            "kind": "train",
            "name": "plain",
            "model": MODEL,
            "lora": {},
            "data": {"prepared": "set"},
            "packing": {"max_batch_len": 64, "effective_batch_size": 8},
        }
    ),
    TrainWorkload.model_validate({"kind": "train", "name": "lines", "data": {"jsonl": "a.jsonl"}}),
    TrainWorkload.model_validate({"kind": "train", "name": "hub", "data": {"dataset": "a/b"}}),
    CollectivesWorkload.model_validate({"kind": "collectives", "name": "sweep"}),
    CollectivesWorkload.model_validate({"kind": "collectives", "name": "list", "sizes": [1024]}),
    CollectivesWorkload.model_validate(
        {"kind": "collectives", "name": "real", "sizes": {"model": MODEL}}
    ),
    CommandWorkload.model_validate(
        {
            "kind": "command",
            "name": "mine",
            "command": ["train.py"],
            "metrics": [{"name": "epoch_time_s", "regex": r"epoch (\d+)"}],
        }
    ),
    CommandWorkload.model_validate(
        {
            "kind": "command",
            "name": "by-config",
            "config": {"file": "config.json", "module": "a.b", "arguments": ["--seed", "42"]},
            "max_batch_len": 35000,
            "metrics": [{"name": "epoch_time_s", "json_key": "t"}],
        }
    ),
    TrainWorkload.model_validate(
        {
            "kind": "train",
            "name": "llama",
            "model": {"kind": "llama", **MODEL},
            "data": {"samples": 9, "mean_length": 8},
        }
    ),
    RawFilesWorkload.model_validate({"kind": "storage", "name": "raw"}),
    CheckpointWorkload.model_validate({"kind": "storage", "phase": "checkpoint", "name": "save"}),
    ModelLoadWorkload.model_validate({"kind": "storage", "phase": "load", "name": "load"}),
    BatchesWorkload.model_validate({"kind": "storage", "phase": "batches", "name": "batches"}),
)
DISK = Storage(name="disk", path="/mnt", emulated=EmulatedDisk(read=10**9, write=10**9))
NETWORKS = (
    Network.model_validate(
        {
            "name": "slow",
            "rate_gbps": 1.0,
            "slow_pairs": [{"nodes": [0, 1], "rate_ratio": 0.5}],
            "found": {"subnet": "10.0.1.0/24"},
            "kubernetes": "pod",
        }
    ),
    Network.model_validate(
        {
            "name": "vnic",
            "kubernetes": {
                "attachment": "host-device",
                "devices": "ens13",
                "ipam": {"kind": "whereabouts", "ranges": "10.0.0.0/24"},
            },
        }
    ),
    NodePath(name="nvlink", path="nvlink"),
    None,
)
EVERYWHERE = ("from_the_future", "command", "train", "between", "inside", "trace", "compile")
"""Keys to come: one that nobody has thought of, tags of unions, and those that are planned."""


def a_case(number: int) -> Case:
    network = NETWORKS[number % len(NETWORKS)]
    workload = WORKLOADS[number // len(NETWORKS)]
    return Case(
        workload=workload,
        network=network,
        storage=DISK if workload.kind == "storage" else None,
        nodes=2 if isinstance(network, Network) else 1,
        ranks_per_node=1,
        device="cpu",
        backend="gloo",
        environment={
            "NCCL_DEBUG": "INFO",
            "HF_TOKEN": FromEnvironment(from_environment=True),
            "A_URL": FromEnvironment(from_environment=True, shown="https://***@host"),
        },
        imported=None if number else Imported(program="fio", settings={"bs": "4k"}),
    )


CASES = tuple(a_case(number) for number in range(len(WORKLOADS) * len(NETWORKS)))
PLAN = Plan(
    experiment_name="newer",
    seed=1,
    cases=CASES,
    launches=tuple(
        PlannedLaunch(
            launch_id=f"b0.l{number}",
            block=0,
            expected_s=1.0,
            trials=(PlannedTrial(trial_id=f"b0.l{number}.t0", case_key=case.key, trial=0),),
        )
        for number, case in enumerate(CASES)
    ),
    expected_s=1.0,
    hypotheses=(
        Hypothesis.model_validate(
            {
                "name": "h",
                "statement": "it is slow",
                "cases": {"network": "slow"},
                "over": {"network": "one node"},
                "at_least": 1,
            }
        ),
    ),
    published=(
        PublishedFigure.model_validate(
            {
                "label": "theirs",
                "metric": "step_time_s",
                "value": 1,
                "cases": {"network": "slow"},
                "source": "a paper",
            }
        ),
    ),
    cost=Cost(usd_per_gpu_hour=2.0, tokens=10**9),
    growths=(PlanGrowth(grown_unix_s=1.0, reason="why", num_cases=0, num_launches=0),),
    baseline=BaselineRun(run="runs/x", experiment_name="x", started_unix_s=1.0, working_folder="."),
)
ROW = {
    "op": "all_reduce",
    "dtype": "float32",
    "size_bytes": 8,
    "iterations": 1,
    "time_s": 1.0,
    "algbw_gbyte_per_s": 1.0,
    "busbw_gbyte_per_s": 1.0,
}
TIMES = {"time_min_s": 1.0, "time_median_s": 1.0, "time_max_s": 1.0}
RECORD = Record.model_validate(
    {
        "record_id": "b0.l0.t0",
        "case_key": CASES[0].key,
        "workload": "plain",
        "network": "slow",
        "shape": "2x1",
        "launch_id": "b0.l0",
        "block": 0,
        "trial": 0,
        "position": 0,
        "started_unix_s": 1.0,
        "ended_unix_s": 2.0,
        "status": "ok",
        "error": {"kind": "crashed", "message": "x"},
        "metrics": {"step_time_s": 1.0},
        "collectives": [
            {**ROW, **TIMES},
            {**ROW, "engine": "nccl-tests"},
            {**ROW, **TIMES, "from_rank": 0, "to_rank": 1},
        ],
        "file_accesses": [
            {
                "access": "read",
                "repetition": 0,
                "size_bytes": 8,
                "time_s": 1.0,
                "slowest_rank": 0,
                "parts_s": {"reading": 1.0},
                "operations": 1,
                "cache": "cold",
            }
        ],
        "nodes": [
            {
                "node": 0,
                "elapsed_s": 1.0,
                "nics": [{"name": "eth0", "tx_bytes": 1, "rx_bytes": 1}],
                "cores_count": 1,
                "cpu_user_s": 0.1,
                "cpu_system_s": 0.1,
                "cpu_softirq_s": 0.1,
                "cpu_busy_ratio": 0.3,
            }
        ],
        "gpus": [{"index": 0, "name": "H200", "samples_count": 1}],
        "link": {"ceiling_gbps": 10.0},
        "path": {"used": "nvlink"},
        "nccl": {"network": "IB", "ways": [{"way": "P2P", "num_pairs": 1, "pairs": [[0, 1]]}]},
        "clocks": [{"node": 1, "offset_s": 0.1, "drift_s": 0.0, "uncertainty_s": 0.01}],
        "artifacts": [
            {"name": "t", "kind": "trace", "path": None, "size_bytes": 1, "sha256": "0"},
        ],
        "environment": "a",
        "findings": [{"rule": "drift", "severity": "warning", "symptom": "x"}],
    }
)
ENVIRONMENT = Environment(
    broadgauge="9",
    platform="emulated",
    python="3.14",
    kernel="7",
    cores=2,
    memory_bytes=1,
    gpus=({"name": "H200", "memory_bytes": 1},),  # type: ignore[arg-type]
    nodes=(NodeFacts(nodes=(0, 1), hostnames=("a", "b"), kernel="7", cores=2, memory_bytes=1),),
    cluster={"kubernetes": "v1.34.4", "zones": None},
)


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Every model that a value of this type may hold, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from models_in(field.annotation)
    elif get_origin(annotation) in (Annotated, typing.Union, types.UnionType, tuple, dict):
        for part in get_args(annotation):
            yield from models_in(part)


Place = tuple[str | int, ...]


def places(value: object, place: Place = ()) -> Iterator[tuple[Place, BaseModel]]:
    """Where in its JSON does a model stand, each at its own place?"""
    if isinstance(value, BaseModel):
        yield place, value
        for name in type(value).model_fields:
            yield from places(getattr(value, name), (*place, name))
    elif isinstance(value, tuple):
        for number, item in enumerate(value):
            yield from places(item, (*place, number))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*place, key))


def holder_at(stored: Any, place: Place) -> dict[str, Any]:
    for part in place:
        stored = stored[part]
    assert isinstance(stored, dict)
    return stored


def with_keys(model: BaseModel, keys: tuple[str, ...]) -> str:
    """As a later version would write it: these keys at every place where they mean nothing yet."""
    stored = json.loads(model.model_dump_json())
    for place, of in places(model):
        holder = holder_at(stored, place)
        for key in keys:
            if key not in type(of).model_fields:
                holder[key] = [{"deep": None}]
    return json.dumps(stored)


@pytest.mark.parametrize(
    "sample", [PLAN, RECORD, ENVIRONMENT], ids=lambda each: type(each).__name__
)
def test_the_samples_hold_every_model_of_a_run_folder(sample: BaseModel) -> None:
    held = {type(model) for _, model in places(sample)}
    missing = set(models_in(type(sample))) - held
    assert not missing, "give PLAN, RECORD or ENVIRONMENT above one of each"


def one_place_at_a_time(model: BaseModel) -> list[Place]:
    """Each model's first place, and every place of a case's workload and network."""
    first = {type(of): place for place, of in reversed([*places(model)])}
    return list(first.values())


@pytest.mark.parametrize("place", one_place_at_a_time(PLAN), ids=str)
def test_a_plan_with_an_unknown_key_is_read_to_the_same_values(
    tmp_path: Path, place: Place
) -> None:
    (of,) = [of for at, of in places(PLAN) if at == place]
    for key in EVERYWHERE:
        if key in type(of).model_fields:
            continue
        stored = json.loads(PLAN.model_dump_json())
        holder_at(stored, place)[key] = {"new": [1]}
        (tmp_path / "plan.json").write_text(json.dumps(stored))
        plan, notes = read_plan(tmp_path)
        assert plan == PLAN
        name = ".".join(map(str, (*place, key)))
        assert notes == (f"plan.json: unknown keys are ignored: {name}",)


@pytest.mark.parametrize("key", EVERYWHERE)
def test_a_folder_with_an_unknown_key_at_every_place_is_read_and_shown(
    tmp_path: Path, key: str
) -> None:
    (tmp_path / "environments").mkdir()
    (tmp_path / "plan.json").write_text(with_keys(PLAN, (key,)))
    (tmp_path / "records.jsonl").write_text(with_keys(RECORD, (key,)) + "\n")
    (tmp_path / "environments/a.json").write_text(with_keys(ENVIRONMENT, (key,)))
    (tmp_path / "experiment.yaml").write_text("name: newer\n")
    assert read_plan(tmp_path)[0] == PLAN
    assert read_records(tmp_path / "records.jsonl").records == (RECORD,)
    assert read_environments(tmp_path) == ({"a": ENVIRONMENT}, ())
    console = Console(record=True, width=100, quiet=True)
    print_run(analysed(summarise_stored(tmp_path)), console)


def plan_with(place: Place, value: object) -> str:
    stored = json.loads(PLAN.model_dump_json())
    *holder, last = place
    inside: Any = stored
    for part in holder:
        inside = inside[part]
    inside[last] = value
    return json.dumps(stored)


NEWER_KIND = {"kind": "serving", "name": "disk", "command": ["x"]}


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("cases", 0, "workload"), NEWER_KIND, "cases.0.workload.kind: `serving` is not known"),
        (("cases", 0, "backend"), "ucc", "cases.0.backend: `ucc` is not known"),
        (("cases", 0, "arm"), "third", "cases.0.arm: `third` is not known"),
        (("cases", 1, "network", "path"), "cxl", "cases.1.network.path: `cxl` is not known"),
        (("cases", 0, "workload", "strategy"), "zero9", "cases.0.workload.strategy: `zero9`"),
        (("cases", 24, "workload", "metrics", 0, "comma"), "both", "24.workload.metrics.0.comma"),
        (("hypotheses", 0, "quantity"), "variance", "hypotheses.0.quantity: `variance`"),
    ],
)
def test_an_unknown_member_of_a_plan_is_named_with_its_place(
    tmp_path: Path, place: Place, value: object, words: str
) -> None:
    (tmp_path / "plan.json").write_text(plan_with(place, value))
    with pytest.raises(RunFolderError) as caught:
        read_plan(tmp_path)
    assert words in caught.value.message
    assert "newer Broadgauge" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "change",
    [{"kind": "found", "interface": "net1"}, {"rails": 2}, {"path": "nvlink", "links": 4}],
    ids=str,
)
def test_a_case_that_differs_in_what_is_unknown_is_not_taken_for_another(
    tmp_path: Path, change: dict[str, object]
) -> None:
    """A later version's key hashes what it knows; without that the case is not the one planned."""
    number = 1 if "path" in change else 0
    stored = json.loads(PLAN.model_dump_json())
    stored["cases"][number]["network"] |= change
    stored["launches"][number]["trials"][0]["case_key"] = "feedfeedfeedfeed"
    (tmp_path / "plan.json").write_text(json.dumps(stored))
    with pytest.raises(RunFolderError, match="feedfeedfeedfeed") as caught:
        read_plan(tmp_path)
    unknown = [key for key in change if key != "path"]
    assert all(f"cases.{number}.network.{key}" in caught.value.message for key in unknown)
    assert "newer Broadgauge" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"status": "postponed"}, "status: `postponed` is not known"),
        ({"error": {"kind": "evicted", "message": "x"}}, "error.kind: `evicted` is not known"),
        (
            {"findings": [{"rule": "x", "severity": "fatal", "symptom": "x"}]},
            "findings.0.severity: `fatal` is not known",
        ),
        ({"block": "first"}, "block: .* not `first`"),
        ({"record_id": None}, "record_id: .* not `None`"),
    ],
    ids=str,
)
def test_an_unknown_member_of_a_record_is_named_with_its_place(
    tmp_path: Path, change: dict[str, object], words: str
) -> None:
    stored = json.loads(RECORD.model_dump_json()) | change
    (tmp_path / "records.jsonl").write_text(json.dumps(stored) + "\n")
    with pytest.raises(RunFolderError, match=rf"records\.jsonl:1: no record: {words}") as caught:
        read_records(tmp_path / "records.jsonl")
    assert "newer Broadgauge" in (caught.value.hint or "")


def test_an_experiment_is_as_strict_as_ever() -> None:
    """Only what comes from a run folder is read with unknown keys."""
    with pytest.raises(ValueError, match="planned and not there yet"):
        TrainWorkload.model_validate({"kind": "train", "trace": True})
    with pytest.raises(ValueError, match="Extra inputs"):
        TrainWorkload.model_validate({"kind": "train", "from_the_future": 1})
    assert issubclass(Case, Spec)
