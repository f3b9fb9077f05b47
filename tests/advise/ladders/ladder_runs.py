"""Run folders of ladders whose truth is known: compute, bytes, overlap, and what counters saw."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.engine.making import COMMAND, TRAIN, a_machine, an_experiment, devices_of

from broadgauge.engine.plan import make_plan
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.specs.case import Case
from broadgauge.specs.records.record import (
    Environment,
    GpuFacts,
    LinkFacts,
    NodeUse,
    Record,
    Status,
)
from broadgauge.specs.text.writing import dump_experiment

RATES_GBPS = (0.1, 0.2, 0.4, 0.8, 1.6)
COMPUTE_S = 0.05
STEP_BYTES = 2e6
WIRE_RATIO = 1514 / 1448
STEPS = 32
COMMAND_WITH_STEPS: dict[str, Any] = COMMAND | {
    "metrics": [
        {"name": "images_per_s", "json_key": "rate", "lower_is_better": False},
        {"name": "step_time_s", "json_key": "seconds", "skip_first": 2},
    ]
}


def in_turns(byte_s: float) -> float:
    """Seconds of a step where a byte takes so long."""
    return COMPUTE_S + STEP_BYTES * byte_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """What is true in the run."""

    step_s: Callable[[float], float] = in_turns
    off_step_s: float = COMPUTE_S
    counted_bytes: float = STEP_BYTES
    lines_left_out: Mapping[str, int] = field(default_factory=dict)
    """Of a command, by metric: so many steps have no line of it."""
    counted_steps: int = STEPS - 12
    """Of a command: over how many of its steps the nodes' counters are."""
    ceiling_gbps: float = 20.0
    spread: float = 0.005


def ladder_run(
    parent: Path,
    planted: Planted | None = None,
    *,
    workloads: Sequence[dict[str, Any]] = (TRAIN,),
    rates_gbps: Sequence[float] = RATES_GBPS,
    launches: int = 4,
    has_reference: bool = True,
    num_gpus: int = 0,
) -> Path:
    """The folder of a run with these rates, and an unshaped network beside them."""
    planted = planted or Planted()
    networks: list[dict[str, Any]] = [
        {"name": f"rate-{rate:g}", "rate_gbps": rate} for rate in rates_gbps
    ]
    networks += [{"name": "reference"}] if has_reference else []
    experiment = an_experiment(
        workloads=list(workloads),
        networks=networks,
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
                case = plan.case(trial.case_key)
                record = _record(case, planted, chance).model_copy(
                    update={
                        "record_id": trial.trial_id,
                        "launch_id": launch.launch_id,
                        "block": launch.block,
                        "position": position,
                        "environment": environment,
                    }
                )
                folder.append(record, _series(case, record, planted))
    return folder.path


def _series(case: Case, record: Record, planted: Planted) -> dict[str, list[float]]:
    """As many samples as steps, without those that are left out."""
    if case.workload.kind != "command":
        return {"step_time_s": [record.metrics["step_time_s"]] * STEPS}
    return {
        metric.name: [record.metrics[metric.name]]
        * (STEPS - metric.skip_first - planted.lines_left_out.get(metric.name, 0))
        for metric in case.workload.metrics
    }


def _environment(num_gpus: int) -> Environment:
    return Environment(
        broadgauge="0.1.0",
        platform="emulated",
        python="3.11.7",
        kernel="6.1.0",
        cpu="Toy CPU",
        cores=2,
        memory_bytes=8 * 2**30,
        gpus=(GpuFacts(name="NVIDIA H200", memory_bytes=150_000_000_000),) * num_gpus,
    )


def _record(case: Case, planted: Planted, chance: random.Random) -> Record:
    assert case.link is not None
    payload_gbps = case.link.payload_rate_gbps
    byte_s = 8e-9 / (planted.ceiling_gbps if payload_gbps is None else payload_gbps)
    step_s = planted.step_s(byte_s) * chance.gauss(1, planted.spread)
    wire_bytes = planted.counted_bytes * WIRE_RATIO
    is_command = case.workload.kind == "command"
    counted_steps = planted.counted_steps if is_command else STEPS
    if is_command:
        metrics = {metric.name: step_s for metric in case.workload.metrics}
        metrics = {name: (32 / s if name.endswith("per_s") else s) for name, s in metrics.items()}
        metrics["wire_bytes"] = wire_bytes
    else:
        off_s = planted.off_step_s * chance.gauss(1, planted.spread)
        metrics = {
            "step_time_s": step_s,
            "step_without_communication_s": off_s,
            "network_cost_s": step_s - off_s,
            "wire_bytes": wire_bytes,
        }
    return Record(
        record_id="",
        case_key=case.key,
        workload=case.workload.name,
        network=case.network_name,
        shape=case.shape,
        launch_id="",
        block=0,
        trial=0,
        position=0,
        started_unix_s=1.79e9,
        ended_unix_s=1.79e9 + 5,
        status=Status.OK,
        metrics=metrics,
        nodes=tuple(_node(node, round(wire_bytes * counted_steps)) for node in range(2)),
        link=LinkFacts(ceiling_gbps=planted.ceiling_gbps),
    )


def _node(node: int, wire_bytes: int) -> NodeUse:
    return NodeUse(
        node=node,
        elapsed_s=5.0,
        tx_bytes=wire_bytes // (1 + node),
        rx_bytes=wire_bytes // (2 - node),
        cores_count=1,
        cpu_user_s=2.0,
        cpu_system_s=0.3,
        cpu_softirq_s=0.1,
        cpu_busy_ratio=0.48,
    )
