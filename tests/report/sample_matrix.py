"""A run over the whole matrix, made up: paths, pairs, NICs, placements, hypotheses, published rows.

Four GPUs as one, two and four nodes. A step is compute plus the gradients' time over the busbw of
the way between the ranks; of the six pairs of nodes, 1 and 3 are joined at 40 % of the rate.
"""

import itertools
import random
from dataclasses import dataclass
from pathlib import Path

from broadgauge.advise.trial_findings import findings
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.case import Case
from broadgauge.specs.hypothesis import Hypothesis, PublishedFigure
from broadgauge.specs.networks.network import Network, NodePath, SlowPair
from broadgauge.specs.plan import Plan, PlannedLaunch, PlannedTrial
from broadgauge.specs.records.op_rows import ITERATION_TIMES as TIMES
from broadgauge.specs.records.op_rows import AnyOpRow, CollectiveRow, MessageRow, NcclTestsRow
from broadgauge.specs.records.record import (
    Environment,
    GpuFacts,
    LinkFacts,
    NicUse,
    NodeUse,
    PathFacts,
    Record,
    Status,
)
from broadgauge.specs.workloads.workload import (
    CollectivesWorkload,
    GptModel,
    TrainWorkload,
    Workload,
)

PATHS = tuple(NodePath(name=name, path=name) for name in ("nvlink", "pcie", "shm", "sockets"))
ETHERNET = Network(
    name="ethernet-25",
    rate_gbps=25,
    mtu_bytes=9000,
    slow_pairs=(SlowPair(nodes=(1, 3), rate_ratio=0.4),),
)
RAILS = Network(name="rails-4x10", rate_gbps=10, nics_per_node=4, mtu_bytes=9000)
BUSBW_GBYTE_PER_S = {
    "nvlink": 340.0,
    "pcie": 21.0,
    "shm": 9.4,
    "sockets": 3.1,
    "ethernet-25": 2.95,
    "rails-4x10": 4.6,
}
OPS = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "reduce",
    "send_recv",
)
SIZES = (2**14, 2**18, 2**22, 2**26)
MODEL = GptModel(layers=12, hidden=768, heads=12, seq_len=1024)
COMPUTE_S = 0.18
COLLECTIVES = CollectivesWorkload(kind="collectives", ops=OPS, sizes=SIZES)
NCCL_TESTS = CollectivesWorkload(
    kind="collectives", name="nccl-tests", ops=("all_reduce",), sizes=SIZES, engine="nccl-tests"
)
PAIRS = CollectivesWorkload(kind="collectives", name="pairs", sizes=(2**24,), pairwise=True)
DDP = TrainWorkload(kind="train", name="ddp", model=MODEL)
DDP_ACCUMULATED = TrainWorkload(kind="train", name="ddp-acc8", model=MODEL, accumulation=8)
FSDP = TrainWorkload(kind="train", name="fsdp", strategy="fsdp", model=MODEL)

HYPOTHESES = (
    Hypothesis(
        name="h1",
        statement="The way between the GPUs is not a significant factor for DDP",
        cases={"workload": "ddp", "shape": "4x1"},
        over={"network": "nvlink", "shape": "1x4"},
        at_most=1.1,
    ),
    Hypothesis(
        name="h2",
        statement="DDP scales near-linearly inside the node",
        metric="tokens_per_s",
        quantity="efficiency",
        cases={"workload": "ddp", "network": "nvlink"},
        at_least=0.9,
    ),
    Hypothesis(
        name="accumulation",
        statement="Synchronising every 8th micro-batch hides the network",
        quantity="value",
        metric="network_share_ratio",
        cases={"workload": "ddp-acc8", "nodes": 4},
        at_most=0.291,
    ),
    Hypothesis(
        name="rails",
        statement="Four NICs of 10 Gbit/s beat one of 25 Gbit/s",
        cases={"network": "rails-4x10", "workload": "fsdp"},
        over={"network": "ethernet"},
        at_most=1.0,
    ),
)
PUBLISHED = (
    PublishedFigure(
        label="GPT-2, 4 GPUs of one node, NVLink",
        metric="tokens_per_s",
        value=412_000,
        cases={"workload": "ddp", "network": "nvlink", "world_size": 4},
        source="An article, 2025-06-01, table 2",
        note="A100 80 GB, batch 16",
    ),
    PublishedFigure(
        label="GPT-2, 4 nodes, 25 Gbit/s Ethernet",
        metric="tokens_per_s",
        value=96_500,
        cases={"workload": "ddp", "network": "ethernet-25", "shape": "4x1"},
        source="An article, 2025-06-01, table 2",
    ),
    PublishedFigure(
        label="GPT-2, InfiniBand HDR",
        metric="tokens_per_s",
        value=398_000,
        cases={"network": "infiniband*"},
        source="An article, 2025-06-01, table 2",
        note="no such network here",
    ),
    PublishedFigure(
        label="PCIe over NVLink, all_reduce",
        metric="busbw_gbyte_per_s",
        value=0.052,
        cases={"workload": "collectives", "network": "pcie"},
        over={"network": "nvlink"},
        source="Another article, 2024-11-20, figure 3",
    ),
)


def make_case(workload: Workload, network: Network | NodePath | None, shape: str) -> Case:
    nodes, ranks = map(int, shape.split("x"))
    return Case(
        workload=workload,
        network=network.on_nodes(nodes) if isinstance(network, Network) else network,
        nodes=nodes,
        ranks_per_node=ranks,
        device="cuda",
        backend="nccl",
        environment={},
    )


CASES = (
    *(make_case(work, None, "1x1") for work in (DDP, FSDP)),
    *(make_case(work, path, "1x4") for path in PATHS for work in (COLLECTIVES, DDP)),
    make_case(NCCL_TESTS, PATHS[0], "1x4"),
    make_case(FSDP, PATHS[0], "1x4"),
    *(
        make_case(work, network, shape)
        for shape in ("2x2", "4x1")
        for network in (ETHERNET, RAILS)
        for work in (COLLECTIVES, DDP, DDP_ACCUMULATED, FSDP)
    ),
    make_case(PAIRS, ETHERNET, "4x1"),
    make_case(DDP, ETHERNET, "4x1").model_copy(update={"arm": "baseline"}),
)


def matrix_run(folder: Path, launches: int = 5) -> RunSummary:
    """Records, summarised. There are no series: `folder` stays empty."""
    dice = random.Random(11)
    records: list[Record] = []
    planned: list[PlannedLaunch] = []
    for block in range(launches):
        order = CASES[:: -1 if block % 2 else 1]
        for position, case in enumerate(order):
            launch_id = f"b{block}.l{position}"
            trial = PlannedTrial(trial_id=f"{launch_id}.t0", case_key=case.key, trial=0)
            planned.append(
                PlannedLaunch(launch_id=launch_id, block=block, trials=(trial,), expected_s=6)
            )
            record = Maker(case=case, dice=dice).record(planned[-1], position)
            records.append(record.model_copy(update={"findings": findings(case, record)}))
    plan = Plan(
        experiment_name="whole-matrix",
        description="Four GPUs \x1b[31mas one, two\x1b[0m and four nodes \ud83d",
        seed=0,
        cases=CASES,
        launches=tuple(planned),
        expected_s=240,
        hypotheses=HYPOTHESES,
        published=PUBLISHED,
    )
    return summarise_run(
        folder=folder,
        plan=plan,
        records=records,
        experiment_yaml="name: whole-matrix\n",
        environments={"77aa": ENVIRONMENT},
    )


ENVIRONMENT = Environment(
    broadgauge="0.1.0",
    platform="emulated",
    python="3.11.7",
    torch="2.11.0",
    nccl="2.28.9",
    kernel="6.1.0-18-amd64",
    cores=64,
    memory_bytes=512 * 2**30,
    gpus=(GpuFacts(name="NVIDIA H200", memory_bytes=150_000_000_000),) * 4,
)


@dataclass(frozen=True)
class Maker:
    """Makes the records of one case."""

    case: Case
    dice: random.Random

    def record(self, launch: PlannedLaunch, position: int) -> Record:
        case = self.case
        fields = {
            "record_id": launch.trials[0].trial_id,
            "case_key": case.key,
            "workload": case.workload.name,
            "network": case.network_name,
            "shape": case.shape,
            "launch_id": launch.launch_id,
            "block": launch.block,
            "trial": 0,
            "position": position,
            "started_unix_s": 1_795_000_000.0 + 60 * launch.block + position,
            "ended_unix_s": 1_795_000_001.0 + 60 * launch.block + position,
            "status": Status.OK,
            "environment": "77aa",
            "nodes": tuple(self._node(node) for node in range(case.nodes)),
        }
        if case.link is not None:
            fields["link"] = LinkFacts(ceiling_gbps=64.0, round_trip_s=4e-5)
        if case.path is not None:
            fields["path"] = PathFacts(used=case.path.path, channels_count=16)
        if isinstance(case.workload, TrainWorkload):
            return Record(**fields, metrics=self._training())
        if case.workload.pairwise:
            return Record(**fields, collectives=self._pairs())
        rows = self._collectives()
        return Record(**fields, metrics=self._of_collectives(rows), collectives=rows)

    @property
    def busbw_gbyte_per_s(self) -> float:
        return BUSBW_GBYTE_PER_S[self.case.plain_network_name] * self.dice.gauss(1, 0.01)

    def _node(self, node: int) -> NodeUse:
        nics: tuple[NicUse, ...] = ()
        total = 40e9
        if self.case.link is not None:
            count = self.case.link.num_nics
            # NCCL gives the first rail more on node 0: the imbalance to be seen.
            weights = [1.6 if (node, n, count) == (0, 0, 4) else 1.0 for n in range(count)]
            shares = [total * weight / sum(weights) for weight in weights]
            nics = tuple(
                NicUse(name=f"eth{n}", tx_bytes=round(share), rx_bytes=round(share))
                for n, share in enumerate(shares)
            )
        return NodeUse(
            node=node,
            elapsed_s=10,
            tx_bytes=round(total) if nics else None,
            rx_bytes=round(total) if nics else None,
            drops_count=0 if nics else None,
            nics=nics,
            retransmits_count=2 if nics else None,
            cores_count=16,
            cpu_user_s=30,
            cpu_system_s=20,
            cpu_softirq_s=8,
            cpu_busy_ratio=0.36,
        )

    def _training(self) -> dict[str, float | None]:
        case = self.case
        assert isinstance(case.workload, TrainWorkload)
        batches = case.workload.accumulation
        compute_s = COMPUTE_S * batches * self.dice.gauss(1, 0.006)
        cost_s = 0.0
        if case.world_size > 1:
            factor = 1.5 if case.workload.strategy == "fsdp" else 1.0
            cost_s = factor * 4 * MODEL.parameters * 1.5 / 1e9 / self.busbw_gbyte_per_s
        step_s = compute_s + cost_s
        tokens = case.world_size * batches * case.workload.batch_per_rank * MODEL.seq_len
        metrics: dict[str, float | None] = {
            "step_time_s": step_s,
            "tokens_per_s": tokens / step_s,
            "mfu_ratio": 0.41 * compute_s / step_s,
        }
        if case.world_size > 1:
            metrics |= {
                "step_without_communication_s": compute_s,
                "network_cost_s": cost_s,
                "network_share_ratio": cost_s / step_s,
            }
        if case.link is not None:
            rate = case.link.node_rate_gbps
            assert rate is not None
            metrics["wire_bytes"] = 0.93 * cost_s * rate * 1e9 / 8
        return metrics

    def _collectives(self) -> tuple[AnyOpRow, ...]:
        assert isinstance(self.case.workload, CollectivesWorkload)
        engine = self.case.workload.engine
        return tuple(self._row(op, size, engine) for op in self.case.workload.ops for size in SIZES)

    def _row(self, op: str, size: int, engine: str) -> AnyOpRow:
        faster = 1.03 if engine == "nccl-tests" else 1.0
        time_s = 3e-5 + size / (self.busbw_gbyte_per_s * faster * 1e9)
        rate = self.case.link.node_rate_gbps if self.case.link is not None else None
        kind = NcclTestsRow if engine == "nccl-tests" else CollectiveRow
        each: dict[str, float] = {} if engine == "nccl-tests" else dict.fromkeys(TIMES, time_s)
        return kind(
            op=op,
            dtype="float32",
            size_bytes=size,
            iterations=20,
            time_s=time_s,
            **each,
            algbw_gbyte_per_s=size / time_s / 1e9,
            busbw_gbyte_per_s=size / time_s / 1e9,
            wire_bytes=None if rate is None else size * 1.01,
            link_rate_gbps=None if rate is None else size * 8.08e-9 / time_s,
            is_correct=True,
        )

    def _of_collectives(self, rows: tuple[AnyOpRow, ...]) -> dict[str, float | None]:
        largest = next(r for r in rows if r.op == "all_reduce" and r.size_bytes == max(SIZES))
        rate = self.case.link.node_rate_gbps if self.case.link is not None else None
        link_rate = largest.link_rate_gbps
        return {
            "busbw_gbyte_per_s": largest.busbw_gbyte_per_s,
            "latency_s": rows[0].time_s,
            "line_share_ratio": None if rate is None or link_rate is None else link_rate / rate,
        }

    def _pairs(self) -> tuple[AnyOpRow, ...]:
        ways = itertools.permutations(range(self.case.nodes), 2)
        rows = [self._row("send_recv", 2**24, "torch") for _ in range(12)]
        found = []
        for row, (a, b) in zip(rows, ways, strict=True):
            time_s = row.time_s / (0.4 if {a, b} == {1, 3} else 1)
            times = dict.fromkeys(("time_s", *TIMES), time_s)
            rates = dict.fromkeys(
                ("algbw_gbyte_per_s", "busbw_gbyte_per_s"), row.size_bytes / time_s / 1e9
            )
            found.append(
                MessageRow(**(row.model_dump() | {"from_rank": a, "to_rank": b, **times, **rates}))
            )
        return tuple(found)
