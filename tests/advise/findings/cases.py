"""Runs of made-up cases, one metric each: a launch a block."""

from pathlib import Path

from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.case import Case
from broadgauge.specs.networks.network import Network
from broadgauge.specs.plan import Plan
from broadgauge.specs.records.record import Record, Status
from broadgauge.specs.workloads.workload import Workload


def a_case(
    workload: Workload, network: Network | None, *, ranks: int = 2, **changes: object
) -> Case:
    """A rank a node between nodes, all on one without a network."""
    settings = {"device": "cpu", "backend": "gloo", "environment": {}, **changes}
    return Case(
        workload=workload,
        network=network,
        nodes=1 if network is None else ranks,
        ranks_per_node=ranks if network is None else 1,
        **settings,
    )


def a_run(metric: str, *parts: tuple[Case, list[float]], **others: float) -> RunSummary:
    """Each case with the metric's value in each block, and these others in all."""
    records = [
        Record(
            record_id=f"b{block}.{case.key}",
            case_key=case.key,
            workload=case.workload.name,
            network=case.network_name,
            shape=case.shape,
            launch_id=f"b{block}.{case.key}",
            block=block,
            trial=0,
            position=position,
            started_unix_s=block,
            ended_unix_s=block + 1,
            status=Status.OK,
            metrics={metric: value, **others},
        )
        for position, (case, values) in enumerate(parts)
        for block, value in enumerate(values)
    ]
    plan = Plan(
        experiment_name="made-up",
        seed=0,
        cases=tuple(case for case, _ in parts),
        launches=(),
        expected_s=0,
    )
    return summarise_run(
        folder=Path("nowhere"),
        plan=plan,
        experiment_yaml="",
        records=records,
        environments={},
    )
