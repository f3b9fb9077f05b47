"""A run as the quickstart would leave it, made up but consistent with physics.

A step is compute + wire time: gradient bytes x amplification over the rate reached. The rates are
those measured while planning (200 Mbit/s, 1 Gbit/s and an unshaped link of 2.8 Gbit/s by Gloo).
"""

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from broadgauge.advise.trial_findings import findings
from broadgauge.merging.metrics import FOUND, UNSHAPED
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.case import Case
from broadgauge.specs.hypothesis import Hypothesis, PublishedFigure
from broadgauge.specs.networks.network import Network, payload_rate_gbps
from broadgauge.specs.plan import Plan, PlannedLaunch, PlannedTrial
from broadgauge.specs.platforms import PlatformKind
from broadgauge.specs.records.op_rows import CollectiveRow
from broadgauge.specs.records.record import (
    Environment,
    ErrorKind,
    GpuFacts,
    GpuUse,
    LinkFacts,
    NodeUse,
    Phase,
    Record,
    Status,
    TrialError,
)
from broadgauge.specs.workloads.workload import (
    CollectivesWorkload,
    GptModel,
    TrainWorkload,
    Workload,
)

POD = Network(name="pod-like", rate_gbps=0.2, description="slow, as an overlay on a busy host")
VNIC = Network(name="vnic-like", rate_gbps=1.0)
REFERENCE = Network(name="reference")
GLOO_GBPS = 2.9
COMPUTE_S = 0.16
TRAIN = TrainWorkload(kind="train", model=GptModel(), steps=80)
COLLECTIVES = CollectivesWorkload(kind="collectives")
SIZES = COLLECTIVES.sizes_bytes()
FACTORS = {"all_reduce": 1.0, "all_gather": 0.5, "reduce_scatter": 0.5}
GLOO_AMPLIFICATION = {"all_reduce": 1.0, "all_gather": 1.0, "reduce_scatter": 2.0}
HOSTILE = "<script>alert('pod')</script>"
STARTED_UNIX_S = 1_790_000_000.0
TOKENS_PER_RANK = TRAIN.batch_per_rank * TRAIN.model.seq_len

YAML = f"""# resolved by broadgauge
name: quickstart
description: "three networks {HOSTILE}"
platform: emulated
networks:
  - {{name: pod-like, rate_gbps: 0.2}}
  - {{name: vnic-like, rate_gbps: 1.0}}
  - {{name: reference}}
"""

HYPOTHESES = (
    Hypothesis(
        name="pod-network",
        statement="The pod network is the bottleneck: it takes more than half of a step",
        metric="network_share_ratio",
        quantity="value",
        cases={"workload": "train", "network": "pod-like"},
        at_least=0.5,
    ),
    Hypothesis(
        name="vnic-is-enough",
        statement=f"A vNIC is as good as the host's own link {HOSTILE}",
        cases={"workload": "train", "network": "vnic-like"},
        over={"network": "reference"},
        at_most=1.05,
    ),
)
PUBLISHED = (
    PublishedFigure(
        label="GPT-2, vNIC over pod network",
        metric="tokens_per_s",
        value=4.1,
        cases={"workload": "train", "network": "vnic-like"},
        over={"network": "pod-like"},
        source="An article, 2025-03-01, table 1",
        note="8 GPUs there, two cores here",
    ),
)


@dataclass(frozen=True)
class Options:
    launches: int = 5
    has_failure: bool = True
    has_gpus: bool = False
    """NVML samples in each record; the figures stay those of CPUs."""
    ceiling_gbps: float = 23.0
    """Of one plain TCP stream; Gloo alone reaches less."""
    platform: PlatformKind = "emulated"
    networks: tuple[Network, ...] = (POD, VNIC, REFERENCE)
    unmeasured: Network | None = None
    """Of which nobody knows what streams carry: a firewall is in the way."""

    @property
    def cases(self) -> tuple[Case, ...]:
        """A training on one node, and both workloads on two nodes on each network."""
        return (
            make_case(TRAIN, None, 1),
            *(make_case(COLLECTIVES, network, 2) for network in self.networks),
            *(make_case(TRAIN, network, 2) for network in self.networks),
        )


def make_case(workload: Workload, network: Network | None, nodes: int) -> Case:
    return Case(
        workload=workload,
        network=network,
        nodes=nodes,
        ranks_per_node=1,
        device="cpu",
        backend="gloo",
        environment={"OMP_NUM_THREADS": "1"},
    )


CASES = Options().cases


def sample_run(folder: Path, options: Options | None = None) -> RunSummary:
    """Records and series in `folder`, summarised."""
    options = options or Options()
    dice = random.Random(7)
    (folder / "series").mkdir(parents=True, exist_ok=True)
    records, launches = [], []
    cases = options.cases
    for block in range(options.launches):
        order = cases[block % len(cases) :] + cases[: block % len(cases)]
        for position, case in enumerate(order):
            launch_id = f"b{block}.{position}"
            trial = PlannedTrial(trial_id=f"{launch_id}.t0", case_key=case.key, trial=0)
            launches.append(
                PlannedLaunch(launch_id=launch_id, block=block, trials=(trial,), expected_s=6)
            )
            fails = (
                options.has_failure
                and block == 2
                and case.network is VNIC
                and isinstance(case.workload, TrainWorkload)
            )
            maker = Maker(folder=folder, dice=dice, options=options)
            record = maker.record(case, launches[-1], position, fails=fails)
            records.append(record.model_copy(update={"findings": findings(case, record)}))
    plan = Plan(
        experiment_name="quickstart",
        seed=0,
        cases=cases,
        launches=tuple(launches),
        expected_s=240,
        hypotheses=HYPOTHESES if options.platform == "emulated" else (),
        published=PUBLISHED if options.platform == "emulated" else (),
        notes=("2 cores for 2 nodes of 1 core",) if options.platform == "emulated" else (),
    )
    return summarise_run(
        folder=folder,
        plan=plan,
        records=records,
        experiment_yaml=YAML if options.platform == "emulated" else "",
        environments={"9f2c": _environment(options)},
    )


def _environment(options: Options) -> Environment:
    gpus = (GpuFacts(name="NVIDIA H200", memory_bytes=150_000_000_000),) * 2
    return Environment(
        broadgauge="0.1.0",
        platform=options.platform,
        python="3.11.7",
        torch="2.11.0+cpu",
        kernel="6.1.0-18-amd64",
        distribution="Debian GNU/Linux 12",
        cpu="AMD EPYC 9654",
        cores=2,
        memory_bytes=8 * 2**30,
        gpus=gpus if options.has_gpus else (),
        nics=("eth0",),
        git_commit="2a3d75b+",
        variables={"OMP_NUM_THREADS": "1"},
    )


@dataclass(frozen=True)
class Maker:
    """Makes the record of one trial."""

    folder: Path
    dice: random.Random
    options: Options

    def record(self, case: Case, launch: PlannedLaunch, position: int, *, fails: bool) -> Record:
        started = STARTED_UNIX_S + 60 * launch.block + 8 * position
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
            "started_unix_s": started,
            "ended_unix_s": started + 7.5,
            "environment": "9f2c",
        }
        if fails:
            return Record(**fields, status=Status.FAILED, error=FAILURE)
        if case.network is not None and case.network != self.options.unmeasured:
            round_trip_s = 45e-6 * self.dice.gauss(1, 0.05)
            ceiling_gbps = self.options.ceiling_gbps * self.dice.gauss(1, 0.02)
            fields["link"] = LinkFacts(ceiling_gbps=ceiling_gbps, round_trip_s=round_trip_s)
        if self.options.has_gpus:
            fields["gpus"] = tuple(_gpu(index, self.dice) for index in range(2))
        if isinstance(case.workload, TrainWorkload):
            return _train(self.folder, case, fields, self.dice)
        return _collectives(case, fields, self.dice)


FAILURE = TrialError(
    kind=ErrorKind.CRASHED,
    message="rank 1 ended with exit code 1",
    phase=Phase.MEASURE,
    rank=1,
    last_lines=(
        "Traceback (most recent call last):",
        '  File "worker.py", line 88, in run',
        f"RuntimeError: Connection closed by peer [10.0.0.2]:29500 {HOSTILE}",
    ),
)


def _gpu(index: int, dice: random.Random) -> GpuUse:
    return GpuUse(
        index=index,
        name="NVIDIA H200",
        samples_count=70,
        sm_clock_mhz=1900 + dice.gauss(0, 10),
        sm_clock_min_mhz=1785,
        power_watts=512 + dice.gauss(0, 9),
        temperature_celsius=61,
        is_throttled=False,
    )


def _wire_rate_gbps(network: Network) -> float:
    """What the collective gets on the wire: 96 % of a shaped line, else what the host carries."""
    return GLOO_GBPS if network.rate_gbps is None else 0.965 * network.rate_gbps


def _node(node: int, case: Case, elapsed_s: float, wire_bytes: float, compute_s: float) -> NodeUse:
    moving_s = wire_bytes * 2 / 1e9 * 1.1
    system, softirq, user = moving_s * 0.55, moving_s * 0.25, compute_s + moving_s * 0.2
    return NodeUse(
        node=node,
        elapsed_s=elapsed_s,
        tx_bytes=None if case.network is None else round(wire_bytes),
        rx_bytes=None if case.network is None else round(wire_bytes),
        drops_count=None if case.network is None else 0,
        retransmits_count=None if case.network is None else 3 * node,
        cores_count=1,
        cpu_user_s=user,
        cpu_system_s=system,
        cpu_softirq_s=softirq,
        cpu_busy_ratio=min(1.0, (user + system + softirq) / elapsed_s),
    )


def _train(folder: Path, case: Case, fields: dict, dice: random.Random) -> Record:
    steps = TRAIN.steps
    wire_bytes = 0.0
    cost_s = 0.0
    launch_factor = dice.gauss(1, 0.008)
    if case.network is not None:
        payload = 4 * TRAIN.model.parameters
        wire_bytes = payload / payload_rate_gbps(1.0, case.network.mtu_bytes)
        cost_s = wire_bytes * 8e-9 / _wire_rate_gbps(case.network) * 0.97
    off = [COMPUTE_S * launch_factor * _jitter(dice) for _ in range(steps)]
    on = [COMPUTE_S * launch_factor * _jitter(dice) + cost_s * _jitter(dice) for _ in range(steps)]
    losses = [2.2 + 3.3 * 0.96**step + dice.gauss(0, 0.03) for step in range(steps)]
    step_s, off_s = sum(on) / steps, sum(off) / steps
    series = {"step_time_s": on, "step_without_communication_s": off, "loss": losses}
    paths = {}
    for name, values in series.items():
        paths[name] = f"series/{fields['record_id']}.{name}.npy"
        np.save(folder / paths[name], np.asarray(values))
    rate_gbps = wire_bytes * 8e-9 / step_s if wire_bytes else None
    elapsed = steps * (step_s + off_s)
    nodes = tuple(
        _node(node, case, elapsed, wire_bytes * steps, steps * (2 * off_s) * 0.97)
        for node in range(case.nodes)
    )
    has_line = case.network is not None and case.network.rate_gbps is not None
    metrics = {
        "step_time_s": step_s,
        "step_without_communication_s": off_s,
        "network_cost_s": step_s - off_s,
        "network_share_ratio": (step_s - off_s) / step_s,
        "tokens_per_s": TOKENS_PER_RANK * case.world_size / step_s,
        "samples_per_s": TRAIN.batch_per_rank * case.world_size / step_s,
        "mfu_ratio": None,
        "loss": sum(losses[-8:]) / 8,
        "link_rate_gbps": rate_gbps,
        "line_share_ratio": rate_gbps / case.network.rate_gbps if has_line else None,
        "wire_bytes": wire_bytes or None,
        "amplification_ratio": 1.045 if wire_bytes else None,
        "cpu_busy_ratio": max(node.cpu_busy_ratio for node in nodes),
        "cpu_s_per_gbyte": None if not wire_bytes else 2.1,
        "retransmits_count": 3.0 if wire_bytes else None,
        "drops_count": 0.0 if wire_bytes else None,
        "peak_memory_bytes": 612e6,
    }
    missing = {"mfu_ratio": "the peak of a CPU is not known"}
    if not wire_bytes:
        names = [name for name, value in metrics.items() if value is None and name != "mfu_ratio"]
        missing |= dict.fromkeys(names, "one node: no link")
    elif not has_line:
        missing["line_share_ratio"] = why_no_share(case.network)
    return Record(
        **fields, status=Status.OK, metrics=metrics, missing=missing, nodes=nodes, series=paths
    )


def why_no_share(network: Network) -> str:
    """As broadgauge/merging/metrics.py says it."""
    return UNSHAPED if network.face is None else FOUND


def _jitter(dice: random.Random) -> float:
    return 1 + abs(dice.gauss(0, 0.02)) + (0.25 if dice.random() < 0.02 else 0)


def _collectives(case: Case, fields: dict, dice: random.Random) -> Record:
    assert case.network is not None
    rows = [
        _row(case.network, op, size, dice)
        for op in ("all_reduce", "all_gather", "reduce_scatter")
        for size in SIZES
    ]
    largest = next(r for r in rows if r.op == "all_reduce" and r.size_bytes == max(SIZES))
    total = sum(row.wire_bytes * row.iterations for row in rows)
    elapsed = sum(row.time_s * row.iterations for row in rows) * 1.05
    nodes = tuple(_node(node, case, elapsed, total, 0.05 * elapsed) for node in range(2))
    rate = case.network.rate_gbps
    metrics = {
        "busbw_gbyte_per_s": largest.busbw_gbyte_per_s,
        "algbw_gbyte_per_s": largest.algbw_gbyte_per_s,
        "latency_s": next(r.time_median_s for r in rows if r.op == "all_reduce"),
        "link_rate_gbps": largest.link_rate_gbps,
        "line_share_ratio": None if rate is None else largest.link_rate_gbps / rate,
        "wire_bytes": largest.wire_bytes,
        "amplification_ratio": largest.amplification_ratio,
        "cpu_busy_ratio": max(node.cpu_busy_ratio for node in nodes),
        "cpu_s_per_gbyte": 2.2,
        "retransmits_count": 3.0,
        "drops_count": 0.0,
    }
    missing = {} if rate is not None else {"line_share_ratio": why_no_share(case.network)}
    return Record(
        **fields,
        status=Status.OK,
        metrics=metrics,
        missing=missing,
        collectives=tuple(rows),
        nodes=nodes,
    )


def _row(network: Network, op: str, size: int, dice: random.Random) -> CollectiveRow:
    """2 nodes: the ring sends 1 S a node for all_reduce and S/2 for the others."""
    ring_bytes = size * FACTORS[op]
    wire = ring_bytes * GLOO_AMPLIFICATION[op] / payload_rate_gbps(1.0, network.mtu_bytes)
    time_s = (180e-6 + wire * 8e-9 / _wire_rate_gbps(network)) * dice.gauss(1, 0.01)
    return CollectiveRow(
        op=op,
        dtype="float32",
        size_bytes=size,
        iterations=max(5, min(100, round(0.5 / time_s))),
        time_s=time_s,
        time_min_s=time_s * 0.97,
        time_median_s=time_s * 0.995,
        time_max_s=time_s * 1.09,
        algbw_gbyte_per_s=size / time_s / 1e9,
        busbw_gbyte_per_s=ring_bytes / time_s / 1e9,
        wire_bytes=wire,
        amplification_ratio=wire / ring_bytes,
        link_rate_gbps=wire * 8e-9 / time_s,
        is_correct=True,
    )
