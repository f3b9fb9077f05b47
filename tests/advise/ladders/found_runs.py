"""Run folders of jobs on networks that were found, whose truth is known: what each carries."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.advise.ladders.ladder_runs import COMPUTE_S, in_turns
from tests.engine.making import TRAIN, a_machine, an_experiment, devices_of

from broadgauge.engine.plan import make_plan
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.specs.case import Case
from broadgauge.specs.records.nccl import NcclUse
from broadgauge.specs.records.op_rows import CollectiveRow
from broadgauge.specs.records.record import (
    Environment,
    GpuFacts,
    LinkFacts,
    NodeUse,
    Record,
    Status,
)
from broadgauge.specs.text.writing import dump_experiment
from broadgauge.specs.workloads.collectives import CollectiveOp

SIZE_BYTES = 64 * 2**20
RATE: dict[str, Any] = {"kind": "collectives", "name": "rate", "ops": ["all_reduce"]}
NETWORKS: Mapping[str, dict[str, Any]] = {
    "pod": {"interface": "eth0", "transport": "tcp"},
    "vnic": {"interface": "eth1", "transport": "tcp"},
    "sriov": {"interface": "eth2", "transport": "sriov-tcp"},
    "fabric": {"interface": "eth3", "transport": "roce"},
}
CARRIED_GBPS: Mapping[str, float] = {"pod": 0.2, "vnic": 0.8, "sriov": 3.2, "fabric": 12.8}
LATENCY_S = 0.0001
"""Of a collective, whatever its size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What is true in the run."""

    step_s: Callable[[float], float] = in_turns
    """Of a training, where a byte takes so long."""
    slower: Mapping[str, float] = field(default_factory=dict)
    """By network: how many times longer a step is there than its rate would make it."""
    off_step_s: float = COMPUTE_S
    rate_spread: float = 0.01
    """Of what a network carries, between launches."""
    carried_gbps: Mapping[str, float] = field(default_factory=lambda: CARRIED_GBPS)
    streams_gbps: Mapping[str, float] = field(default_factory=dict)
    """By network: what plain TCP streams carry; else as much as the collective."""
    nccl_network: str | None = None
    """As NCCL's log names it, on networks that ask for no transport."""


def found_run(
    parent: Path,
    truth: Truth | None = None,
    *,
    names: Sequence[str] = tuple(NETWORKS),
    sizes_bytes: Sequence[int] = (SIZE_BYTES,),
    own: Mapping[str, dict[str, Any]] | None = None,
    op: str = "all_reduce",
    launches: int = 5,
    num_gpus: int = 1,
    says_transport: bool = True,
) -> Path:
    """The folder of a run on hosts with these networks. Beside the training is a workload of
    collectives for each of `sizes_bytes`, in this order. `own`: more keys of networks, by name."""
    truth = truth or Truth()
    rate = [RATE | {"name": f"rate-{size}", "ops": [op], "sizes": [size]} for size in sizes_bytes]
    kept = ("interface", "transport") if says_transport else ("interface",)
    experiment = an_experiment(
        platform="hosts",
        hosts=["node0", "node1"],
        workloads=[TRAIN, *rate],
        networks=[
            {"name": name, "found": {key: NETWORKS[name][key] for key in kept}}
            | (own or {}).get(name, {})
            for name in names
        ],
        cluster={"shapes": ["2x1"]},
        launches=launches,
    )
    plan = make_plan(experiment, devices_of(a_machine(gpus=num_gpus)))
    chance = random.Random(3)
    with RunFolder.create(
        parent, plan=plan, experiment_yaml=dump_experiment(experiment), started_unix_s=1.79e9
    ) as folder:
        environment = folder.add_environment(_environment(num_gpus))
        for launch in plan.launches:
            for position, trial in enumerate(launch.trials):
                record = _record(plan.case(trial.case_key), truth, chance).model_copy(
                    update={
                        "record_id": trial.trial_id,
                        "launch_id": launch.launch_id,
                        "block": launch.block,
                        "position": position,
                        "environment": environment,
                    }
                )
                folder.append(record, {})
    return folder.path


def _environment(num_gpus: int) -> Environment:
    return Environment(
        broadgauge="0.1.0",
        platform="hosts",
        kernel="6.1.0",
        gpus=(GpuFacts(name="NVIDIA H200", memory_bytes=150_000_000_000),) * num_gpus,
    )


def _record(case: Case, truth: Truth, chance: random.Random) -> Record:
    name = case.plain_network_name
    gbps = truth.carried_gbps[name]
    nccl = None if truth.nccl_network is None else NcclUse(network=truth.nccl_network)
    common: dict[str, Any] = {
        "record_id": "",
        "case_key": case.key,
        "workload": case.workload.name,
        "network": case.network_name,
        "shape": case.shape,
        "launch_id": "",
        "block": 0,
        "trial": 0,
        "position": 0,
        "started_unix_s": 1.79e9,
        "ended_unix_s": 1.79e9 + 5,
        "status": Status.OK,
        "nodes": tuple(_node(node) for node in range(2)),
        "nccl": nccl,
        "link": LinkFacts(ceiling_gbps=truth.streams_gbps.get(name, gbps)),
    }
    if case.workload.kind == "collectives":
        (size_bytes,) = case.workload.sizes  # type: ignore[misc]
        carried = gbps * chance.gauss(1, truth.rate_spread)
        return Record(**common, collectives=(_row(case.workload.ops[0], size_bytes, carried),))
    step_s = truth.step_s(8e-9 / gbps) * truth.slower.get(name, 1.0) * chance.gauss(1, 0.005)
    off_s = truth.off_step_s * chance.gauss(1, 0.005)
    metrics = {
        "step_time_s": step_s,
        "step_without_communication_s": off_s,
        "network_cost_s": step_s - off_s,
    }
    return Record(**common, metrics=metrics)


def _row(op: CollectiveOp, size_bytes: int, carried_gbps: float) -> CollectiveRow:
    """Of two nodes the ring sends each as many bytes as the message has."""
    time_s = LATENCY_S + size_bytes * 8e-9 / carried_gbps
    return CollectiveRow(
        op=op,
        dtype="float32",
        size_bytes=size_bytes,
        iterations=10,
        time_s=time_s,
        time_min_s=time_s,
        time_median_s=time_s,
        time_max_s=time_s,
        algbw_gbyte_per_s=size_bytes / time_s / 1e9,
        busbw_gbyte_per_s=size_bytes / time_s / 1e9,
        is_correct=True,
    )


def _node(node: int) -> NodeUse:
    return NodeUse(
        node=node,
        elapsed_s=5.0,
        cores_count=8,
        cpu_user_s=2.0,
        cpu_system_s=0.3,
        cpu_softirq_s=0.1,
        cpu_busy_ratio=0.06,
    )
