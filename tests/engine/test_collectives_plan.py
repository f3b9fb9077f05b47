"""Do plans of collectives fit their records, refuse what can't be, and have an honest estimate?"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.advise.test_trial_findings import a_node, a_record
from tests.engine.making import COLLECTIVES, a_plan

from broadgauge.engine.expected_time import trial_s
from broadgauge.engine.kinds.collectives import MOST_COLLECTIVE_ROWS
from broadgauge.engine.transfers import transfer_s
from broadgauge.results.folder.record_line import record_line
from broadgauge.specs.case import Case
from broadgauge.specs.errors import ExperimentError
from broadgauge.specs.networks.network import Network
from broadgauge.specs.records.op_rows import MessageRow
from broadgauge.specs.records.record import MAX_RECORD_BYTES
from broadgauge.specs.workloads.workload import CollectiveOp, CollectivesWorkload

PAIRS: dict[str, Any] = {"kind": "collectives", "pairwise": True, "sizes": ["1 MiB"]}


def pairwise_case(nodes: int, rate_gbps: float | None = 1.0, **changes: Any) -> Case:
    workload = CollectivesWorkload.model_validate({**PAIRS, **changes})
    return Case(
        workload=workload,
        network=Network(name="eth", rate_gbps=rate_gbps),
        nodes=nodes,
        ranks_per_node=1,
        device="cpu",
        backend="gloo",
        environment={},
    )


@pytest.mark.parametrize(
    ("shapes", "sizes", "rows"),
    [(["8x1"], 3, 168), (["2x1", "8x1"], 3, 168), (["1x13"], 2, 312), (["4x1"], 14, 168)],
)
def test_pairs_count_by_the_largest_shape(shapes: list[str], sizes: int, rows: int) -> None:
    listed = [2**20 + 4 * place for place in range(sizes)]
    with pytest.raises(ExperimentError, match=f"{rows} measurements in one trial .pairs of"):
        a_plan(workloads=[{**PAIRS, "sizes": listed}], cluster={"shapes": shapes})
    a_plan(workloads=[{**PAIRS, "sizes": listed[:1]}], cluster={"shapes": shapes[-1:]})


def test_ranks_of_a_node_do_not_count_as_ends_of_several_nodes() -> None:
    plan = a_plan(workloads=[PAIRS], cluster={"shapes": ["4x8"]})
    assert len(plan.cases) == 2


def test_the_most_rows_fit_in_a_record() -> None:
    """Digits beyond the 7th may go, rows may not."""
    long = 0.012345678901234567
    seconds = dict.fromkeys(("time_s", "time_min_s", "time_median_s", "time_max_s"), long)
    row = MessageRow(
        op="send_recv",
        dtype="bfloat16",
        size_bytes=2**30,
        iterations=100_000,
        **seconds,
        algbw_gbyte_per_s=long,
        busbw_gbyte_per_s=long,
        wire_bytes=1_234_567_890.1234567,
        amplification_ratio=1 + long,
        link_rate_gbps=long,
        is_correct=True,
        from_rank=100,
        to_rank=101,
    )
    record = a_record(collectives=(row,) * MOST_COLLECTIVE_ROWS, nodes=(a_node(),) * 13)
    line, kept = record_line(record)
    assert len(line) <= MAX_RECORD_BYTES
    assert len(kept.collectives) == MOST_COLLECTIVE_ROWS
    assert len(kept.nodes) == 13


def test_cuda_graphs_need_gpus() -> None:
    graphs = {**COLLECTIVES, "cuda_graphs": True}
    with pytest.raises(ExperimentError, match=r"workloads\.0\.cuda_graphs: CUDA graphs hold work"):
        a_plan(workloads=[graphs], cluster={"shapes": ["2x1"], "device": "cpu"})
    plan = a_plan(gpus=2, workloads=[graphs], cluster={"shapes": ["2x1"]})
    assert {case.backend for case in plan.cases} == {"nccl"}


def test_nccl_tests_needs_gpus() -> None:
    both = [{**COLLECTIVES, "name": name, "engine": name} for name in ("torch", "nccl-tests")]
    with pytest.raises(ExperimentError, match=r"engine: nccl-tests measures NCCL on GPUs"):
        a_plan(workloads=both, cluster={"shapes": ["2x1"], "device": "cpu"})
    plan = a_plan(gpus=2, workloads=both, cluster={"shapes": ["2x1"]})
    engines = {case.workload.name: case for case in plan.cases}
    assert set(engines) == {"torch", "nccl-tests"}
    assert trial_s(engines["nccl-tests"]) > 2 * trial_s(engines["torch"])


@given(st.integers(2, 8))
def test_a_pairwise_trial_takes_its_budget_for_each_pair(nodes: int) -> None:
    one, two = (
        trial_s(pairwise_case(nodes, budget_s=budget_s, max_iterations=100_000))
        for budget_s in (1.0, 2.0)
    )
    assert two - one == pytest.approx(nodes * (nodes - 1))


@pytest.mark.parametrize(
    ("op", "times"),
    [
        ("all_reduce", 1.5),
        ("all_gather", 0.75),
        ("reduce_scatter", 1.5),
        ("all_to_all", 0.75),
        ("broadcast", 2.0),
        ("reduce", 1.5),
        ("send_recv", 1.0),
    ],
)
def test_transfers_take_what_gloo_sends_at_the_payload_rate(op: CollectiveOp, times: float) -> None:
    case = pairwise_case(4, rate_gbps=1.0)
    payload_s = 8e6 / (case.link.payload_rate_gbps * 1e9)
    assert transfer_s(case, op, 1_000_000) == pytest.approx(times * payload_s)
