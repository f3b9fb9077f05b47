"""Are variables of a log judged as those of a machine, once for all ranks that set them?"""

from tests.doctor.log.conclusions.found import found, the
from tests.doctor.log.readings import a_reading, processes, set_everywhere

from broadgauge.doctor.log.findings import log_findings
from broadgauge.specs.records.record import Severity

UNKNOWN = "host-variable-unknown"


def test_a_misspelt_name_is_told_once_with_who_set_it() -> None:
    reading = a_reading()
    set_everywhere(reading, NCCL_IB_HBA="mlx5")
    finding = the(reading, UNKNOWN)
    assert finding.symptom == "nobody known reads NCCL_IB_HBA"
    assert finding.evidence[-1] == "set on ranks 0 to 3"


def test_one_rank_that_sets_it_is_named() -> None:
    reading = a_reading()
    set_everywhere(reading, NCCL_DEBUG="INFO")
    processes(reading)[2].variables["NCCL_IB_HBA"] = "mlx5"
    assert the(reading, UNKNOWN).evidence[-1] == "set on rank 2"


def test_variables_that_do_no_harm_are_none() -> None:
    reading = a_reading()
    set_everywhere(reading, NCCL_DEBUG="INFO", NCCL_SOCKET_IFNAME="eth0")
    assert found(reading, UNKNOWN) == ()
    assert [f for f in log_findings(reading) if f.severity is not Severity.INFO] == []
