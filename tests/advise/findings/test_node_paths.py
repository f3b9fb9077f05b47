"""Is a path that gives too little named, with what was expected and who says so?"""

import pytest
from tests.advise.test_trial_findings import COLLECTIVES, a_record, a_row, rules

from broadgauge.advise.trial_findings import findings
from broadgauge.specs.case import Case
from broadgauge.specs.networks.network import NodePath, PathKind
from broadgauge.specs.records.record import GpuUse, PathFacts, Record, Severity

MIB = 2**20
H200 = tuple(GpuUse(index=i, name="NVIDIA H200", samples_count=5) for i in (0, 1))


def case_on(path: PathKind | None, backend: str = "nccl", ranks: int = 2) -> Case:
    return Case(
        workload=COLLECTIVES,
        network=None if path is None else NodePath(name=path, path=path),
        nodes=1,
        ranks_per_node=ranks,
        device="cuda",
        backend=backend,
        environment={},
    )


def a_trial(used: str, busbw: float, size_bytes: int = 512 * MIB, **changes: object) -> Record:
    facts = {
        "collectives": (a_row(size_bytes=size_bytes, busbw_gbyte_per_s=busbw),),
        "path": PathFacts(used=used, channels_count=24, evidence=("Channel 00/0 via P2P",)),
        "gpus": H200,
    }
    return a_record(**(facts | changes))


def test_a_path_below_its_expectation_is_named_with_figure_and_source() -> None:
    (finding,) = findings(case_on("nvlink"), a_trial("nvlink", 120.0))
    assert (finding.rule, finding.severity) == ("path-expectation", Severity.WARNING)
    assert finding.symptom == (
        "nvlink carried 120 GB/s in an all_reduce of 512 MiB, below the 250 GB/s expected of it"
    )
    assert finding.evidence[0] == "2 x NVIDIA H200: 250 GB/s to 400 GB/s expected"
    assert finding.evidence[1].startswith("312 GB/s: measured here, two H200")
    assert finding.evidence[2] == "Channel 00/0 via P2P"
    assert finding.fix is not None


def test_paths_as_measured_are_as_expected() -> None:
    """Two H200s, 2026-11-21, all_reduce of 512 MiB."""
    for path, busbw in (("nvlink", 312.0), ("shm", 27.2), ("sockets", 3.1), ("sockets", 3.7)):
        assert rules(case_on(path), a_trial(path, busbw)) == []


def test_what_counts_is_the_path_used_also_where_none_is_named() -> None:
    assert rules(case_on(None), a_trial("shm", 27.2)) == []
    assert rules(case_on(None), a_trial("nvlink", 27.2)) == ["path-expectation"]


@pytest.mark.parametrize(
    "trial",
    [
        a_trial("nvlink", 20.0, size_bytes=8 * MIB),
        a_trial("nvlink", 20.0, gpus=()),
        a_trial("nvlink", 20.0, gpus=(GpuUse(index=0, name="Tesla K80", samples_count=1),)),
        a_trial("nvlink", 20.0, gpus=(H200[0], GpuUse(index=1, name="L4", samples_count=1))),
        a_trial("nvlink", 20.0, path=None),
        a_trial("nvlink", 20.0, collectives=(a_row("broadcast", size_bytes=512 * MIB),)),
        a_trial("pcie", 1.0),
    ],
)
def test_of_small_messages_and_unknown_hardware_nothing_is_expected(trial: Record) -> None:
    assert rules(case_on(None), trial) == []


def test_gloo_and_three_ranks_have_no_expectation() -> None:
    assert rules(case_on("sockets", backend="gloo"), a_trial("sockets", 0.5)) == []
    assert rules(case_on("shm", ranks=3), a_trial("shm", 0.5)) == []


def test_a_path_that_nobody_can_tell_is_said() -> None:
    trial = a_trial("unknown", 300.0)
    assert rules(case_on("nvlink"), trial) == ["path-unknown"]
    assert rules(case_on(None), trial) == []


@pytest.mark.parametrize(
    ("clock", "expected"), [(1970.0, []), (1882.0, []), (1800.0, ["gpu-throttled"])]
)
def test_a_gpu_at_its_full_clock_is_not_throttled_whatever_reason_is_named(
    clock: float, expected: list[str]
) -> None:
    gpu = GpuUse(
        index=0,
        name="NVIDIA H200",
        samples_count=20,
        sm_clock_mhz=clock,
        sm_clock_max_mhz=1980,
        is_throttled=True,
        throttled_ratio=0.6,
        throttle_reasons=("software power cap",),
    )
    record = a_record(gpus=(gpu,))
    assert rules(case_on(None), record) == expected
    for finding in findings(case_on(None), record):
        assert finding.evidence[0] == "software power cap"
        assert "mean SM clock 1800 of 1980 MHz" in finding.evidence
