"""Which small run measures this machine's paths, and what of it belongs in the system file?"""

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from broadgauge.platforms.paths import paths_between_gpus
from broadgauge.predict.kinds import training_of
from broadgauge.probes.calibration.shapes import choice
from broadgauge.results.folder.series import read_series
from broadgauge.results.model import STEP_OFF_SERIES, STEP_SERIES, CaseSummary, RunSummary
from broadgauge.specs.case import Device
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.machines.cluster import Cluster
from broadgauge.specs.machines.machine import MachineFacts
from broadgauge.specs.machines.system import CollectiveTime, PathTimes, Timing, TrainedStep
from broadgauge.specs.networks.network import Network, NodePath
from broadgauge.specs.records.op_rows import CollectiveRow
from broadgauge.specs.records.record import Record
from broadgauge.specs.workloads.workload import CollectivesWorkload, TrainWorkload

BETWEEN_NODES, SHAPED = "between-nodes", "between-nodes-shaped"
SHAPED_GBPS: dict[Device, float] = {"cpu": 1.0, "cuda": 25.0}
"""A rate that the host can carry and that all but the shortest messages feel: what of the host's
own time is hidden behind the wire's?"""
GPU_SIZES = ("8 KiB", "64 KiB", "512 KiB", "2 MiB", "8 MiB", "32 MiB", "128 MiB", "512 MiB")
CPU_SIZES = ("1 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB", "8 MiB", "16 MiB")


def calibration_experiment(machine: MachineFacts, device: Device) -> Experiment | None:
    """All-reduce, all-gather and reduce-scatter by size on each path, and between nodes a short
    training. None: one rank has no path."""
    ranks = len(machine.gpus) // 2 * 2 if device == "cuda" else min(2, len(machine.cores))
    if ranks < 2:
        return None
    networks: list[Network | NodePath] = []
    kinds = paths_between_gpus(machine) if device == "cuda" else ("sockets",)
    if device == "cuda" or not machine.can_emulate:
        networks += [NodePath(name=kind, path=kind) for kind in kinds]
    shapes = [f"1x{ranks}"] if networks else []
    if machine.can_emulate:
        mtu_bytes = 9000 if device == "cuda" else 1500
        rate_gbps = SHAPED_GBPS[device]
        networks.append(Network(name=SHAPED, mtu_bytes=mtu_bytes, rate_gbps=rate_gbps))
        networks.append(Network(name=BETWEEN_NODES, mtu_bytes=mtu_bytes))
        shapes.append(f"2x{ranks // 2}")
    return Experiment(
        name="calibration",
        description="Collectives by size on each path, and a short training",
        platform="emulated" if machine.can_emulate else "local",
        cluster=Cluster(shapes=tuple(shapes), device=device),
        networks=tuple(networks),
        workloads=(_collectives(device), *_trainings(device, networks[-1].name)),
        launches=1,
    )


def _collectives(device: Device) -> CollectivesWorkload:
    return CollectivesWorkload.model_validate(
        {
            "kind": "collectives",
            "sizes": GPU_SIZES if device == "cuda" else CPU_SIZES,
            "budget_s": "100 ms",
            "min_iterations": 5,
            "check": False,
        }
    )


def _trainings(device: Device, network: str) -> Iterator[TrainWorkload]:
    """DDP and FSDP of a model that is also measured on one rank alone."""
    training = choice(device).trainings[1]
    for strategy in ("ddp", "fsdp"):
        yield TrainWorkload.model_validate(
            {
                "kind": "train",
                "name": strategy,
                "strategy": strategy,
                "networks": (network,),
                "model": model_data(asdict(training.model)),
                "dtype": training.dtype,
                "batch_per_rank": training.batch,
                "steps": 16,
                "warm_up_steps": 3,
                "block_steps": 4,
            }
        )


def model_data(shape: Mapping[str, Any]) -> dict[str, Any]:
    """What ranks were told of a GPT's shape, in the words of a file."""
    return {"tied_head" if key == "is_head_tied" else key: size for key, size in shape.items()}


def paths_of(summary: RunSummary) -> tuple[PathTimes, ...]:
    """The collectives of each path that could be measured."""
    found = (_path(case) for case in summary.cases if case.collectives)
    return tuple(path for path in found if path is not None)


def _path(summary: CaseSummary) -> PathTimes | None:
    case, record = summary.case, summary.good[-1]
    if case.network is None:
        return None
    link = case.link
    return PathTimes(
        name=case.network.name,
        path=case.network.path if isinstance(case.network, NodePath) else "emulated",
        backend=case.backend,
        nodes=case.nodes,
        ranks_per_node=case.ranks_per_node,
        mtu_bytes=None if link is None else link.mtu_bytes,
        rate_gbps=None if link is None else link.rate_gbps,
        round_trip_s=record.link.round_trip_s if record.link else None,
        ceiling_gbps=record.link.ceiling_gbps if record.link else None,
        collectives=tuple(_collective_times(record)),
    )


def _collective_times(record: Record) -> Iterator[CollectiveTime]:
    """Medians; the range of iterations stands for their quartiles, which a record has not."""
    for row in record.collectives:
        if not isinstance(row, CollectiveRow):
            continue
        timing = Timing(
            median_s=row.typical_s,
            low_s=row.time_min_s,
            high_s=row.time_max_s,
            repetitions=row.iterations,
        )
        yield CollectiveTime.model_validate(
            {"op": row.op, "size_bytes": row.size_bytes, "time": timing}
        )


def trained_of(summary: RunSummary) -> tuple[TrainedStep, ...]:
    """The short trainings over a path, with and without communication. On several GPUs of one node
    they run without one, too: nothing is predicted from those."""
    found = []
    for each in summary.cases:
        workload, network = training_of(each.case.workload), each.case.network
        if workload is None or network is None or not each.good:
            continue
        timing = _steps(summary, each.good[-1], STEP_SERIES)
        without = _steps(summary, each.good[-1], STEP_OFF_SERIES)
        if timing is None or without is None:
            continue
        found.append(
            TrainedStep(
                path=network.name,
                strategy=workload.strategy,
                model=workload.model,
                dtype=workload.dtype,
                batch=workload.batch_per_rank,
                time=timing,
                without_communication=without,
            )
        )
    return tuple(found)


def _steps(summary: RunSummary, record: Record, name: str) -> Timing | None:
    values = read_series(summary.folder, record, name)
    if values is None or len(values) < 2:
        return None
    low_s, median_s, high_s = statistics.quantiles(values.tolist(), n=4, method="inclusive")
    return Timing(median_s=median_s, low_s=low_s, high_s=high_s, repetitions=len(values))
