"""A run on two hosts over RoCE and its twins, made up: what NCCL did, and a case that fell back."""

from pathlib import Path
from typing import Any

from broadgauge.platforms.meant_transport import transport_error, transport_finding
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.case import Case
from broadgauge.specs.networks.network import Network
from broadgauge.specs.plan import Plan, PlannedLaunch, PlannedTrial
from broadgauge.specs.records.nccl import NcclUse, NcclWay
from broadgauge.specs.records.record import (
    Confidence,
    Environment,
    Finding,
    Record,
    Severity,
    Status,
)
from broadgauge.specs.workloads.workload import CollectivesWorkload

ROCE, ROCE_TOO, NO_GDR, TCP = (
    Network.model_validate({"name": name, "found": {"interface": "eth2", **found}})
    for name, found in (
        ("roce", {"transport": "roce", "gpudirect": True, "nominal_gbps": 400}),
        ("roce-again", {"transport": "roce"}),
        ("roce-no-gdr", {"transport": "roce", "gpudirect": False}),
        ("tcp", {"transport": "tcp"}),
    )
)
LINE = "logs/b0.l0.rank0.nccl.log:212: Channel 00/16 : 7[7] -> 8[0] [send] via NET/{}"
NO_ADAPTER = Finding(
    rule="no-adapter",
    severity=Severity.WARNING,
    symptom="NCCL found no RDMA adapter on 2 of 2 hosts",
    evidence=("logs/b0.l1.rank0.nccl.log:9: NET/IB : No device found.",),
    cause="the container has no /dev/infiniband, or the adapter's port is down",
    fix="give the container the device, and look at `ibstat`",
    confidence=Confidence.LIKELY,
)


def ring(num_ranks: int, ranks_per_node: int, between: str) -> tuple[NcclWay, ...]:
    """Two rings, one each way round; `between` nodes, P2P inside."""
    pairs = {(a, (a + step) % num_ranks) for a in range(num_ranks) for step in (1, -1)}
    pairs = {(a, b % num_ranks) for a, b in pairs}
    out = {(a, b) for a, b in pairs if a // ranks_per_node != b // ranks_per_node}
    lines = {"GDRDMA": "IB/0/GDRDMA", "network": "IB/0", "sockets": "Socket/0"}
    inside = tuple(sorted(pairs - out))
    return (
        NcclWay(
            way=between,
            num_pairs=len(out),
            pairs=tuple(sorted(out)),
            num_channels=16,
            line=LINE.format(lines[between]),
        ),
        *(NcclWay(way="P2P", num_pairs=len(inside), pairs=inside, num_channels=16),)[: len(inside)],
    )


def use(network: str, between: str, ranks_per_node: int, **changes: Any) -> NcclUse:
    num_ranks = 2 * ranks_per_node
    facts: dict[str, Any] = {
        "version": "2.28.9",
        "network": network,
        "interfaces": ("eth2",),
        "adapters": ("mlx5_0:1/RoCE", "mlx5_1:1/RoCE"),
        "num_channels": 16,
        "num_ranks": num_ranks,
        "num_nodes": 2,
        "gpudirect": {"GDRDMA": True, "network": False, "sockets": None}[between],
        "ways": ring(num_ranks, ranks_per_node, between),
        "init_s": 1.83,
    }
    return NcclUse(**facts | changes)


def make_case(network: Network, ranks_per_node: int) -> Case:
    return Case(
        workload=CollectivesWorkload(kind="collectives"),
        network=network,
        nodes=2,
        ranks_per_node=ranks_per_node,
        device="cuda",
        backend="nccl",
        environment={},
    )


def a_record(case: Case, block: int, nccl: NcclUse | None) -> Record:
    finding = transport_finding(case, nccl)
    error = transport_error(finding)
    findings = () if finding is None else (finding,)
    return Record(
        record_id=f"b{block}.l{CASES.index(case)}.t0",
        case_key=case.key,
        workload=case.workload.name,
        network=case.network_name,
        shape=case.shape,
        launch_id=f"b{block}.l{CASES.index(case)}",
        block=block,
        trial=0,
        position=CASES.index(case),
        started_unix_s=1_795_000_000.0,
        ended_unix_s=1_795_000_009.0,
        status=Status.OK if error is None else Status.FAILED,
        error=error,
        environment="77aa",
        metrics={"busbw_gbyte_per_s": 46.0 + block},
        nccl=nccl,
        findings=(NO_ADAPTER, *findings) if error is not None else findings,
    )


CASES = (
    make_case(ROCE, 8),
    make_case(ROCE_TOO, 8),
    make_case(NO_GDR, 2),
    make_case(TCP, 2),
    make_case(ROCE, 2),
)
USES = (
    use("IB", "GDRDMA", 8),
    use("IB", "GDRDMA", 8),
    use("IB", "network", 2),
    use("Socket", "sockets", 2, adapters=(), num_channels=2),
    use("Socket", "sockets", 2, adapters=(), num_channels=2),
)


def nccl_run(folder: Path, uses: tuple[NcclUse | None, ...] = USES) -> RunSummary:
    """Five cases; the last was meant to use RoCE and went over sockets."""
    records = [
        a_record(case, block, nccl)
        for block in range(3)
        for case, nccl in zip(CASES, uses, strict=True)
    ]
    launches = tuple(
        PlannedLaunch(
            launch_id=record.launch_id,
            block=record.block,
            trials=(PlannedTrial(trial_id=record.record_id, case_key=record.case_key, trial=0),),
            expected_s=9,
        )
        for record in records
    )
    plan = Plan(
        experiment_name="roce-and-its-twins",
        description="",
        seed=0,
        cases=CASES,
        launches=launches,
        expected_s=100,
    )
    environment = Environment(
        broadgauge="0.1.0",
        platform="hosts",
        python="3.11.7",
        kernel="6.1.0",
        cores=64,
        memory_bytes=2**39,
    )
    return summarise_run(
        folder=folder,
        plan=plan,
        records=records,
        experiment_yaml="name: roce-and-its-twins\n",
        environments={"77aa": environment},
    )
