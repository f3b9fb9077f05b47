"""Proves what stands beside traces: the probe's busbw at a size, the step without network."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.sample_run import Options, sample_run

from broadgauge.results.measured_beside import (
    CommunicationOff,
    ProbedPath,
    communication_off,
    probed_path,
    reference_path,
)
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.workload import TrainWorkload

PATH = ProbedPath(
    source="run: case", num_ranks=4, curves={"all_reduce": ((1 << 10, 1.0), (1 << 20, 16.0))}
)


@pytest.mark.parametrize(
    ("op", "size", "ranks", "wanted"),
    [
        ("all_reduce", 1 << 10, 4, 1.0),
        ("all_reduce", 1 << 15, 4, 4.0),  # half-way on both logarithms
        ("all_reduce", 1 << 20, 4, 16.0),
        ("all_reduce", 1 << 29, 4, 16.0),
        ("all_reduce", 1 << 9, 4, None),
        ("all_reduce", 1 << 15, 2, None),
        ("all_reduce", 1 << 15, None, None),
        ("all_reduce", None, 4, None),
        ("all_gather", 1 << 15, 4, None),
    ],
)
def test_a_size_between_two_is_on_the_line(
    op: str, size: int | None, ranks: int | None, wanted: float | None
) -> None:
    assert PATH.busbw_gbyte_per_s(op, size, ranks) == (
        None if wanted is None else pytest.approx(wanted)
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    return sample_run(tmp_path_factory.mktemp("run"), Options(has_failure=False))


def of(run: RunSummary, network: str, *, trains: bool) -> CaseSummary:
    return next(
        each
        for each in run.cases
        if each.case.plain_network_name == network
        and isinstance(each.case.workload, TrainWorkload) is trains
    )


def test_the_own_runs_collectives_are_of_the_same_network(run: RunSummary) -> None:
    probe = probed_path(run, of(run, "pod-like", trains=True).case)
    assert probe is not None
    rows = of(run, "pod-like", trains=False).collectives
    largest = max((row for row in rows if row.op == "all_reduce"), key=lambda row: row.size_bytes)
    busbw = probe.busbw_gbyte_per_s("all_reduce", largest.size_bytes, 2)
    assert busbw == largest.busbw_gbyte_per_s.value
    assert "pod-like" in probe.source


def test_other_variables_are_another_path(run: RunSummary) -> None:
    case = of(run, "pod-like", trains=True).case
    other = case.model_copy(update={"environment": {"NCCL_NSOCKS_PERTHREAD": "4"}})
    assert probed_path(run, other) is None
    path, missing = reference_path(run, other)
    assert path is not None
    assert missing is None


def test_one_node_has_no_probe(run: RunSummary) -> None:
    case = of(run, "one node", trains=True).case
    assert probed_path(run, case) is None
    path, missing = reference_path(run, case)
    assert path is None
    assert missing is not None
    assert "no collectives of 1 ranks on one node" in missing


def test_traces_of_no_case_are_of_the_only_network(run: RunSummary, tmp_path: Path) -> None:
    path, missing = reference_path(run, None)
    assert path is None
    assert missing is not None
    assert "3 networks" in missing
    one = replace(run, cases=(of(run, "vnic-like", trains=False),))
    path, missing = reference_path(one, None)
    assert path is not None
    assert missing is None
    none = replace(run, cases=(of(run, "vnic-like", trains=True),))
    assert reference_path(none, None)[0] is None


def test_the_cost_is_that_of_the_trial(run: RunSummary) -> None:
    record = of(run, "pod-like", trains=True).good[0]
    off = communication_off(record)
    assert off is not None
    assert off.network_cost_s == pytest.approx(record.metrics["network_cost_s"])
    assert CommunicationOff(step_time_s=1, step_without_communication_s=3).network_cost_s == -2
    assert communication_off(of(run, "pod-like", trains=False).good[0]) is None
