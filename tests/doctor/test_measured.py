"""Is a measured busbw judged by what it should be, and only where it says something?"""

from tests.doctor.log.readings import a_reading, on_sockets, processes

from broadgauge.doctor.expectation import expect
from broadgauge.doctor.log.facts import Adapter, ListedRank, LogReading, Measured, Place, Way
from broadgauge.doctor.measured import judge_measured, measured_findings
from broadgauge.doctor.situation import Situation, situation_of
from broadgauge.specs.records.record import Confidence, Finding, Severity

ROCE = expect(Situation(num_nodes=2, num_ranks=16, transport="roce", nic_gbps=400, num_nics=1))


def findings_of(reading: LogReading, *, busbw: float | None = None) -> tuple[Finding, ...]:
    expected = expect(situation_of(reading))
    return measured_findings(reading, expected, measured_gbyte_per_s=busbw)


def meant_rdma() -> LogReading:
    reading = on_sockets()
    for process in processes(reading):
        process.adapters = {"mlx5_0:1": Adapter("mlx5_0:1", "RoCE", 400_000)}
    return reading


def test_sockets_instead_of_roce() -> None:
    (finding,) = findings_of(meant_rdma(), busbw=3.4)
    assert finding.symptom == (
        "400 Gbit/s RoCE with GPUDirect RDMA: 46 to 48 GB/s a NIC; measured: 3.4 GB/s: "
        "TCP sockets are used instead"
    )
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.LIKELY)
    assert any("roce-perf-k8s.md" in line for line in finding.evidence)


def test_gpudirect_that_is_off() -> None:
    (finding,) = findings_of(a_reading(between=Way.NETWORK), busbw=10.0)
    assert finding.cause is not None
    assert finding.cause.startswith("GPUDirect RDMA is off")


def test_a_normal_number() -> None:
    finding = judge_measured(ROCE, 46.8)
    assert (finding.rule, finding.severity) == ("busbw-as-expected", Severity.INFO)


def test_too_little_without_a_reason_is_only_possible() -> None:
    finding = judge_measured(ROCE, 20.0, size_bytes=2**33)
    assert (finding.rule, finding.severity) == ("busbw-below-expected", Severity.WARNING)
    assert finding.confidence is Confidence.POSSIBLE


def test_small_messages_and_averages_are_not_judged_below() -> None:
    assert judge_measured(ROCE, 20.0, size_bytes=2**26).rule == "busbw-small-message"
    assert judge_measured(ROCE, 20.0, is_average=True).rule == "busbw-average"
    assert judge_measured(ROCE, 47.0, is_average=True).rule == "busbw-as-expected"


def test_more_than_a_ring_can_is_a_fact() -> None:
    assert judge_measured(ROCE, 90.0).rule == "busbw-above-expected"


def test_unknown_is_said_with_what_is_missing() -> None:
    finding = judge_measured(expect(Situation(num_nodes=1, num_ranks=8, inside="nvlink")), 400.0)
    assert finding.symptom == "400 GB/s busbw: unknown: the log does not name the GPU"
    assert finding.fix == "needed: the GPU's name"


def row(size_bytes: int | None, busbw: float, op: str | None = None) -> Measured:
    return Measured(Place("job.log", 90), "a row", busbw, size_bytes, op)


def test_the_largest_message_in_the_log_counts() -> None:
    reading = a_reading()
    reading.measured = [row(2**30, 20.0), row(2**33, 46.5), row(None, 9.0), row(2**20, 1.0)]
    (finding,) = findings_of(reading)
    assert finding.rule == "busbw-as-expected"
    assert finding.evidence[0] == "job.log:90: a row"


def test_an_average_alone_is_told_for_what_it_is() -> None:
    reading = a_reading()
    reading.measured = [row(None, 9.0)]
    (finding,) = findings_of(reading)
    assert finding.rule == "busbw-average"


def test_other_operations_are_not_judged_by_an_all_reduce() -> None:
    reading = a_reading()
    reading.measured = [row(2**33, 3.0, op="all_to_all")]
    assert findings_of(reading) == ()


def test_wrong_values_are_an_error_and_their_rows_are_not_judged() -> None:
    reading = a_reading()
    reading.measured = [row(2**32, 46.5), row(2**33, 3.0)._replace(num_wrong=60)]
    wrong, judged = findings_of(reading)
    assert (wrong.rule, wrong.severity) == ("nccl-tests-wrong", Severity.ERROR)
    assert wrong.symptom == "wrong data arrived: nccl-tests counts 60 wrong values at 8 GiB"
    assert judged.rule == "busbw-as-expected"
    reading.measured = [row(2**33, 3.0)._replace(num_wrong=60), row(None, 46.5)]
    (wrong,) = findings_of(reading)


def test_of_several_operations_that_a_row_fits_it_is_said_which() -> None:
    reading = a_reading()
    reading.measured = [row(2**33, 3.0)._replace(ops=("all_gather", "all_to_all"))]
    (finding,) = findings_of(reading)
    assert finding.symptom == (
        "3 GB/s busbw: unknown: of all_gather or all_to_all, the log does not say which"
    )


def of_a_table(busbw: float, gpu: str = "NVIDIA H200") -> LogReading:
    reading = LogReading(listed_ranks={rank: ListedRank("vm", gpu) for rank in range(8)})
    reading.measured = [Measured(Place("a.log", 9), "a row", busbw, 2**34, "all_reduce")]
    return reading


def test_a_bare_table_names_host_gpus_and_ranks_and_so_what_is_normal() -> None:
    (finding,) = findings_of(of_a_table(480.0))
    assert finding.symptom.startswith("480 GB/s busbw is normal: 8 NVIDIA H200 over nvlink")


def test_too_little_of_a_bare_table_is_a_note_since_nothing_says_nvlink() -> None:
    (finding,) = findings_of(of_a_table(40.0))
    assert finding.severity is Severity.INFO
    assert finding.symptom.endswith("measured: 40 GB/s, if NVLink joins these GPUs")


def test_boards_without_nvlink_are_not_judged_by_it() -> None:
    (finding,) = findings_of(of_a_table(20.0, "NVIDIA L40S"))
    assert finding.rule == "busbw-unknown"
