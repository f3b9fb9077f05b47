"""A run of files on storages alone, made up: on one node without a network, or on two."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from broadgauge.messages.storage import Access
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.case import Case
from broadgauge.specs.networks.network import Network
from broadgauge.specs.plan import Plan, PlannedLaunch, PlannedTrial
from broadgauge.specs.records.file_access_row import FileAccessRow
from broadgauge.specs.records.record import NodeUse, Record, Status
from broadgauge.specs.storages.storage import Storage
from broadgauge.specs.workloads.workload import (
    CheckpointWorkload,
    ModelLoadWorkload,
    RawFilesWorkload,
    Workload,
)

WORKLOADS = tuple(
    RawFilesWorkload(kind="storage", name=f"raw-cache-{cache}", cache=cache)
    for cache in ("cold", "warm")
)
SAVE = CheckpointWorkload(kind="storage", phase="checkpoint", name="save")
SAVE_PARTS_S = {"plan": 0.5, "serialise": 3.0, "write": 2.0, "fsync": 1.5, "fsync folder": 1.0}
LOAD = ModelLoadWorkload(kind="storage", phase="load", name="load")
LOAD_PARTS_S = {"open": 0.5, "read": 2.0, "deserialise": 1.0, "copy": 0.5}
STORAGES = (Storage(name="disk", path="/mnt"), Storage(name="memory", path="/dev/shm"))


def storage_run(
    storages: Sequence[Storage] = STORAGES,
    network: Network | None = None,
    workloads: Sequence[Workload] = WORKLOADS,
    save_parts_s: Mapping[str, float] = SAVE_PARTS_S,
) -> RunSummary:
    """Each workload on each storage, in two launches. `save_parts_s`: of each rank's saves."""
    cases = [_case(workload, each, network) for workload in workloads for each in storages]
    launches = [
        PlannedLaunch(
            launch_id=f"b{block}.l{index}",
            block=block,
            expected_s=1,
            trials=(PlannedTrial(trial_id=f"b{block}.l{index}.t0", case_key=case.key, trial=0),),
        )
        for block in range(2)
        for index, case in enumerate(cases)
    ]
    plan = Plan(
        experiment_name="x", seed=0, cases=tuple(cases), launches=tuple(launches), expected_s=1
    )
    records = [
        _record(cases[index % len(cases)], launch, index % len(cases), save_parts_s)
        for index, launch in enumerate(launches)
    ]
    return summarise_run(
        folder=Path("x"), plan=plan, records=records, experiment_yaml="", environments={}
    )


def _case(workload: Workload, storage: Storage, network: Network | None) -> Case:
    return Case(
        workload=workload,
        network=network,
        nodes=1 if network is None else 2,
        ranks_per_node=1,
        device="cpu",
        backend="gloo",
        environment={},
        storage=storage,
    )


def _record(
    case: Case, launch: PlannedLaunch, position: int, save_parts_s: Mapping[str, float]
) -> Record:
    rate = 1.0 + position + 0.01 * launch.block
    metrics = {"read_gbyte_per_s": rate, "write_gbyte_per_s": 0.5 * rate}
    accesses = (_access("write", 2 / rate), _access("read", 1 / rate))
    if case.workload == SAVE:
        save = _save(save_parts_s, case.world_size)
        metrics = {
            "save_stall_s": save.stall_s or 0.0,
            "save_durable_s": save.time_s,
            "write_gbyte_per_s": save.size_bytes / 1e9 / save.time_s,
        }
        accesses = (save,)
    if case.workload == LOAD:
        load = _load(case.world_size)
        metrics = {"model_load_s": load.time_s, "read_gbyte_per_s": 1 / load.time_s}
        accesses = (load,)
    return Record(
        record_id=launch.trials[0].trial_id,
        case_key=case.key,
        workload=case.workload.name,
        network=case.network_name,
        shape=case.shape,
        launch_id=launch.launch_id,
        block=launch.block,
        trial=0,
        position=position,
        started_unix_s=float(launch.block),
        ended_unix_s=launch.block + 1.0,
        status=Status.OK,
        metrics=metrics | {"cpu_busy_ratio": 0.3},
        nodes=(_node(),),
        file_accesses=accesses,
    )


def _node() -> NodeUse:
    return NodeUse(
        node=0,
        elapsed_s=1.0,
        cores_count=2,
        cpu_user_s=0.2,
        cpu_system_s=0.4,
        cpu_softirq_s=0.0,
        cpu_busy_ratio=0.3,
    )


def _access(access: Access, time_s: float) -> FileAccessRow:
    return FileAccessRow(
        access=access,
        repetition=0,
        size_bytes=10**9,
        time_s=time_s,
        slowest_rank=0,
        parts_s={"open": 0.1 * time_s, "moving": 0.9 * time_s},
        operations=1000,
        cache="cold" if access == "read" else None,
        file_system="ext4",
    )


def _save(parts_s: Mapping[str, float], num_ranks: int) -> FileAccessRow:
    """Training waits until the folder is fsync'd."""
    time_s = sum(parts_s.values())
    return FileAccessRow(
        access="write",
        repetition=0,
        size_bytes=10**9,
        time_s=time_s,
        slowest_rank=0,
        parts_s=dict(parts_s),
        stall_s=time_s - parts_s["fsync folder"],
        parts_of_ranks=(dict(parts_s),) * num_ranks,
        operations=1000,
        file_system="ext4",
    )


def _load(num_ranks: int) -> FileAccessRow:
    time_s = sum(LOAD_PARTS_S.values())
    return FileAccessRow(
        access="read",
        repetition=0,
        size_bytes=10**9,
        time_s=time_s,
        slowest_rank=0,
        parts_s=LOAD_PARTS_S,
        stall_s=time_s,
        parts_of_ranks=(LOAD_PARTS_S,) * num_ranks,
        operations=1000,
        cache="cold",
        evidence="from the device: 1.00 of the bytes",
        file_system="ext4",
    )
