"""Does each rule speak when it should, and only then?"""

from pathlib import Path

import pytest

from broadgauge.advise.case_verdict import verdict
from broadgauge.advise.trial_findings import findings
from broadgauge.advise.verdicts.link_use import host_limit, link_use_of
from broadgauge.advise.verdicts.verdict import Bound
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.results.summary import summarise_case
from broadgauge.specs.case import Case
from broadgauge.specs.networks.found import Found
from broadgauge.specs.networks.network import Network
from broadgauge.specs.plan import Plan
from broadgauge.specs.records.op_rows import AnyOpRow, CollectiveRow, MessageRow
from broadgauge.specs.records.record import (
    GpuUse,
    LinkFacts,
    NodeUse,
    Record,
    Severity,
    Status,
)
from broadgauge.specs.workloads.workload import CollectivesWorkload, TrainWorkload, Workload

SLOW = Network(name="slow", rate_gbps=1.0)
TRAIN = TrainWorkload(kind="train")
COLLECTIVES = CollectivesWorkload(kind="collectives")


def a_case(workload: Workload = TRAIN, network: Network | None = SLOW, device: str = "cpu") -> Case:
    return Case(
        workload=workload,
        network=network,
        nodes=1 if network is None else 2,
        ranks_per_node=1,
        device=device,
        backend="nccl" if device == "cuda" else "gloo",
        environment={},
    )


def a_node(**changes: float | None) -> NodeUse:
    facts = {
        "node": 0,
        "elapsed_s": 10.0,
        "tx_bytes": 1_000_000_000,
        "rx_bytes": 1_000_000_000,
        "drops_count": 0,
        "retransmits_count": 0,
        "cores_count": 1,
        "cpu_user_s": 4.0,
        "cpu_system_s": 1.0,
        "cpu_softirq_s": 0.5,
        "cpu_busy_ratio": 0.55,
    }
    return NodeUse(**(facts | changes))


def a_row(op: str = "all_reduce", **changes: object) -> AnyOpRow:
    facts = {
        "op": op,
        "dtype": "float32",
        "size_bytes": 2**23,
        "iterations": 5,
        "time_s": 0.07,
        "time_min_s": 0.07,
        "time_median_s": 0.07,
        "time_max_s": 0.07,
        "algbw_gbyte_per_s": 0.12,
        "busbw_gbyte_per_s": 0.12,
        "amplification_ratio": 1.05,
        "is_correct": True,
    }
    kind = MessageRow if "from_rank" in changes else CollectiveRow
    return kind(**(facts | changes))


def a_record(**changes: object) -> Record:
    facts = {
        "record_id": "b0.l0.t0",
        "case_key": "0",
        "workload": "train",
        "network": "slow",
        "shape": "2x1",
        "launch_id": "b0.l0",
        "block": 0,
        "trial": 0,
        "position": 0,
        "started_unix_s": 1.0,
        "ended_unix_s": 2.0,
        "status": Status.OK,
        "link": LinkFacts(ceiling_gbps=20.0, round_trip_s=5e-5),
        "nodes": (a_node(), a_node(node=1)),
    }
    return Record(**(facts | changes))


def rules(case: Case, record: Record, **more: object) -> list[str]:
    return [finding.rule for finding in findings(case, record, **more)]


def test_a_quiet_trial_has_no_findings() -> None:
    assert rules(a_case(), a_record()) == []


def test_a_failed_trial_is_not_judged() -> None:
    record = a_record(status=Status.FAILED, collectives=(a_row(is_correct=False),))
    assert rules(a_case(), record) == []


@pytest.mark.parametrize(("ceiling_gbps", "is_found"), [(1.99, True), (2.0, False)])
def test_a_ceiling_below_twice_the_rate(ceiling_gbps: float, is_found: bool) -> None:
    link = LinkFacts(ceiling_gbps=ceiling_gbps, round_trip_s=5e-5)
    assert ("host-ceiling" in rules(a_case(), a_record(link=link))) is is_found
    unshaped = a_case(network=Network(name="reference"))
    assert rules(unshaped, a_record(link=link)) == []


def test_busy_cores_mean_something_else_where_the_training_computes_on_them() -> None:
    computing = a_record(nodes=(a_node(cpu_user_s=9.0, cpu_busy_ratio=0.99),))
    assert rules(a_case(), computing) == []
    assert rules(a_case(device="cuda"), computing) == ["host-cpu"]
    assert rules(a_case(COLLECTIVES), computing) == ["host-cpu"]
    assert rules(a_case(network=None, device="cuda"), computing) == []
    full = {"collectives": (a_row(),), "metrics": {"line_share_ratio": 0.96}}
    assert rules(a_case(COLLECTIVES), computing.model_copy(update=full)) == []
    in_kernel = a_record(nodes=(a_node(cpu_system_s=4.0, cpu_softirq_s=1.5),))
    assert rules(a_case(), in_kernel) == ["host-cpu"]


@pytest.mark.parametrize(("eight_gbps", "is_full"), [(None, False), (24.0, True), (40.0, False)])
def test_a_found_network_is_as_full_as_its_verdict_says(
    eight_gbps: float | None, is_full: bool
) -> None:
    """20 of what the faster of one and eight plain streams carried, in the same launch."""
    case = a_case(COLLECTIVES, network=Network(name="f", found=Found(interface="ens5")))
    one_gbps = 26.0 if eight_gbps is None else 12.0
    record = a_record(
        link=LinkFacts(ceiling_gbps=one_gbps, eight_streams_gbps=eight_gbps),
        nodes=(a_node(cpu_user_s=9.0, cpu_busy_ratio=0.99),),
        collectives=(a_row(),),
        metrics={"link_rate_gbps": 20.0},
    )
    assert ("host-cpu" in rules(case, record)) is not is_full
    summary = summarise_case(case, (record.model_copy(update={"case_key": case.key}),))
    assert (verdict(summary, a_run(summary)).bound is Bound.HOST) is not is_full


@pytest.mark.parametrize(("cost_s", "is_full"), [(1.2, True), (2.0, False)])
def test_a_training_that_fills_its_line_has_cores_that_keep_up(
    cost_s: float, is_full: bool
) -> None:
    """As its verdict says: 125 MB a step take 1 s at 1 Gbit/s."""
    case = a_case()
    busy = a_node(cpu_system_s=4.0, cpu_softirq_s=1.5)
    metrics = {"wire_bytes": 125e6, "network_cost_s": cost_s, "network_share_ratio": 0.6}
    records = [
        a_record(
            record_id=f"b{block}.l0.t0",
            launch_id=f"b{block}.l0",
            block=block,
            case_key=case.key,
            nodes=(busy,),
            metrics=metrics,
        )
        for block in range(3)
    ]
    summary = summarise_case(case, tuple(records))
    judged = verdict(summary, a_run(summary))
    assert judged.bound is (Bound.NETWORK if is_full else Bound.HOST)
    assert ("host-cpu" in rules(case, records[0])) is not is_full


def test_a_busy_node_blames_the_network_stack_alone_only_where_no_other_program_ran() -> None:
    causes = {}
    for foreign in (None, 0.05, 0.3):
        busy = a_node(cpu_busy_ratio=0.99, foreign_busy_ratio=foreign)
        found = findings(a_case(COLLECTIVES), a_record(nodes=(busy,)))
        causes[foreign] = found[0].cause or ""
    assert "another program" not in causes[0.05]
    assert "another program" in causes[None]
    assert "another program" in causes[0.3]


def test_other_programs_on_a_nodes_cores_are_found() -> None:
    node = a_node(node=1, foreign_busy_ratio=0.25, ranks_cpu_s=2.5)
    (finding,) = findings(a_case(network=None), a_record(nodes=(a_node(), node)))
    assert (finding.rule, finding.severity) == ("foreign-load", Severity.WARNING)
    assert finding.symptom == "other programs used 25 % of node 1's cores"
    assert "2.50 CPU seconds" in finding.evidence[0]


@pytest.mark.parametrize(
    ("elapsed_s", "ratio", "is_found"),
    [
        (10.0, None, False),
        (10.0, 0.1, False),
        (10.0, 0.11, True),
        (0.19, 1.0, False),  # too short to say
        (0.2, 0.55, True),
        (0.5, 0.15, False),  # less than ten samples of the kernel's
    ],
)
def test_a_little_of_other_programs_or_of_time_is_passed_over(
    elapsed_s: float, ratio: float | None, is_found: bool
) -> None:
    node = a_node(elapsed_s=elapsed_s, foreign_busy_ratio=ratio, cpu_system_s=0, cpu_softirq_s=0)
    assert rules(a_case(), a_record(nodes=(node,))) == ["foreign-load"] * is_found


@pytest.mark.parametrize(
    ("elapsed_s", "ratio", "is_found"),
    [(10.0, None, False), (10.0, 0.05, False), (10.0, 0.06, True), (0.19, 1.0, False)],
)
def test_cores_that_the_hypervisor_took_are_found(
    elapsed_s: float, ratio: float | None, is_found: bool
) -> None:
    node = a_node(elapsed_s=elapsed_s, stolen_ratio=ratio, cpu_system_s=0, cpu_softirq_s=0)
    found = findings(a_case(), a_record(nodes=(node,)))
    assert [finding.rule for finding in found] == ["stolen-cores"] * is_found
    if is_found:
        assert found[0].symptom == "the hypervisor took 6 % of node 0's cores"
        assert "0.60 CPU seconds" in found[0].evidence[0]


def test_a_node_without_time_or_cores_is_not_divided_by() -> None:
    for none in ({"cores_count": 0}, {"elapsed_s": 0.0}):
        assert "host-saturated" not in rules(a_case(), a_record(nodes=(a_node(**none),)))


def test_segments_sent_again_count_from_one_in_a_hundred() -> None:
    segments = 1_000_000_000 / 1500
    few = a_record(nodes=(a_node(retransmits_count=round(segments * 0.009)),))
    many = a_record(nodes=(a_node(retransmits_count=round(segments * 0.011)),))
    assert rules(a_case(), few) == []
    assert rules(a_case(), many) == ["retransmits"]
    assert rules(a_case(), a_record(nodes=(a_node(drops_count=10_000),))) == ["drops"]


def test_throttled_gpus_are_named() -> None:
    gpu = GpuUse(
        index=3,
        name="H200",
        samples_count=20,
        is_throttled=True,
        throttled_ratio=0.25,
        throttle_reasons=("sw_power",),
    )
    (finding,) = findings(a_case(device="cuda"), a_record(gpus=(gpu,)))
    assert finding.symptom == "GPU 3 ran below its clock"
    assert finding.evidence == ("sw_power", "25 % of 20 samples")


def test_a_touch_of_the_power_limit_is_no_throttling() -> None:
    gpu = GpuUse(index=3, name="H200", samples_count=20, is_throttled=True, throttled_ratio=0.2)
    assert rules(a_case(device="cuda"), a_record(gpus=(gpu,))) == []


def test_amplification_is_of_the_largest_message_of_each_op() -> None:
    record = a_record(
        collectives=(
            a_row("reduce_scatter", amplification_ratio=2.09),
            a_row("all_reduce", size_bytes=1024, amplification_ratio=9.0),
            a_row("all_reduce"),
        )
    )
    (finding,) = findings(a_case(COLLECTIVES), record)
    assert finding.symptom == "reduce_scatter sends more than the ring algorithm would"
    assert finding.severity is Severity.INFO


def test_a_link_that_large_messages_do_not_fill() -> None:
    half = {"metrics": {"line_share_ratio": 0.5}}
    assert rules(a_case(COLLECTIVES), a_record(collectives=(a_row(),), **half)) == [
        "link-not-filled"
    ]
    small = a_row(size_bytes=1024)
    assert rules(a_case(COLLECTIVES), a_record(collectives=(small,), **half)) == []


def test_a_wrong_result_is_an_error() -> None:
    (finding,) = findings(a_case(COLLECTIVES), a_record(collectives=(a_row(is_correct=False),)))
    assert finding.severity is Severity.ERROR


def test_drift_is_looked_for_where_the_series_is_given() -> None:
    drifting = [1.0 + 0.002 * step for step in range(200)]
    steady = [1.0 + 0.01 * (step % 7) for step in range(200)]
    assert rules(a_case(), a_record(), series={"step_time_s": drifting}) == ["drift"]
    assert rules(a_case(), a_record(), series={"step_time_s": steady, "loss": drifting}) == []


PLANTED = Network(name="lossy", rate_gbps=1.0, delay_s=0.01, loss_ratio=0.02)


@pytest.mark.parametrize("field", ["retransmits_count", "drops_count"])
@pytest.mark.parametrize(
    ("lost_ratio", "severity"), [(0.02, Severity.INFO), (0.04, Severity.INFO), (0.2, "warning")]
)
def test_loss_that_was_asked_for_is_no_overflowing_queue(
    field: str, lost_ratio: float, severity: str
) -> None:
    lost = a_node(**{field: round(lost_ratio * 1_000_000_000 / 1500)})
    (finding,) = findings(a_case(network=PLANTED), a_record(nodes=(lost,)))
    assert finding.severity == severity
    assert finding.cause is not None
    assert "`loss_ratio` loses 2 % of the packets" in finding.cause
    assert ("overflows" in finding.cause) is (severity == "warning")


@pytest.mark.parametrize(("out", "into"), [(10.0, 1.0), (1.0, 10.0)])
@pytest.mark.parametrize(("ceiling_gbps", "is_low"), [(1.9, True), (3.0, False)])
def test_finding_and_verdict_hold_the_ceiling_against_the_same_direction(
    out: float, into: float, ceiling_gbps: float, is_low: bool
) -> None:
    case = a_case(network=Network(name="uneven", rate_gbps=out, receive_rate_gbps=into))
    facts = LinkFacts(ceiling_gbps=ceiling_gbps, round_trip_s=5e-5)
    record = a_record(link=facts, case_key=case.key)
    summary = summarise_case(case, (record,))
    link = link_use_of(summary, a_run(summary), None)
    assert (rules(case, record) == ["host-ceiling"]) is is_low
    assert (host_limit(link) is not None) is is_low


def a_run(summary: CaseSummary) -> RunSummary:
    """With nothing but this case."""
    plan = Plan(experiment_name="x", seed=0, cases=(summary.case,), launches=(), expected_s=1.0)
    return RunSummary(
        folder=Path(),
        plan=plan,
        experiment_yaml="",
        records=summary.records,
        cases=(summary,),
        environments={},
        notes=(),
    )
