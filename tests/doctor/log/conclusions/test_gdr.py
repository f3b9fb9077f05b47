"""Is GPUDirect RDMA on, off or unknown, and is a missing line never taken for off?"""

from tests.doctor.log.conclusions.found import found, the
from tests.doctor.log.readings import (
    a_reading,
    a_rule,
    on_sockets,
    processes,
    saw,
    set_everywhere,
    the_communicator,
)

from broadgauge.doctor.log.facts import LogReading, Way
from broadgauge.specs.records.record import Severity

ALL = ("gdr-off", "gdr-mixed", "gdr-too-far", "gdr-unknown")


def told(reading: LogReading) -> list[str]:
    return [rule for rule in ALL for _ in found(reading, rule)]


def without_channels(reading: LogReading) -> LogReading:
    communicator = the_communicator(reading)
    communicator.paths, communicator.lines = {}, {}
    return reading


def disabled(reading: LogReading, *ranks: int) -> None:
    for rank in ranks:
        process = processes(reading)[rank]
        process.gdr_by_adapter = dict.fromkeys(process.gdr_by_adapter, False)


def test_on_is_no_finding() -> None:
    assert told(a_reading()) == []
    assert told(on_sockets()) == []


def test_off_on_every_adapter_names_the_module_to_load() -> None:
    reading = without_channels(a_reading())
    disabled(reading, 0, 1, 2, 3)
    line = "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"
    rule = a_rule("gdr-of-adapter", "RDMA {state} for", tells="gdr_adapter")
    saw(reading, rule, line, state="Disabled")
    assert told(reading) == ["gdr-off"]
    finding = the(reading, "gdr-off")
    assert finding.severity is Severity.WARNING
    assert finding.symptom == "GPUDirect RDMA is off on ranks 0 to 3"
    assert finding.fix is not None
    assert "nvidia-peermem" in finding.fix
    assert finding.evidence == (f"job.log:40: {line}", "disabled for mlx5_0 and mlx5_1")
    assert found(reading, "gdr-of-adapter") == ()


def test_a_variable_that_switches_it_off_is_the_cause() -> None:
    reading = without_channels(a_reading())
    disabled(reading, 0, 1, 2, 3)
    set_everywhere(reading, NCCL_NET_GDR_LEVEL="LOC")
    assert the(reading, "gdr-off").cause == "NCCL_NET_GDR_LEVEL=LOC switches it off"


def test_one_node_without_it_among_others() -> None:
    reading = without_channels(a_reading())
    for process in processes(reading)[:2]:
        process.gdr_by_pair = {("0", "mlx5_0:1"): True}
    disabled(reading, 2, 3)
    assert told(reading) == ["gdr-mixed"]
    assert the(reading, "gdr-mixed").symptom == ("GPUDirect RDMA is off on node1 and on on node0")


def test_adapters_that_can_and_are_too_far() -> None:
    reading = without_channels(a_reading())
    for process in processes(reading):
        process.gdr_by_pair = {("0", "mlx5_0:1"): False}
    assert told(reading) == ["gdr-off"]
    cause = the(reading, "gdr-off").cause
    assert cause is not None
    assert "too far" in cause


def test_one_gpu_that_no_adapter_is_near_to() -> None:
    reading = without_channels(a_reading())
    for gpu, process in enumerate(processes(reading)):
        process.gdr_by_pair = {
            (str(gpu), "mlx5_0"): gpu != 3,
            (str(gpu), "mlx5_1"): False,
        }
    assert told(reading) == ["gdr-too-far"]
    assert the(reading, "gdr-too-far").symptom.endswith("to GPU 3 of node1")


def test_far_adapters_beside_a_near_one_are_usual() -> None:
    reading = without_channels(a_reading())
    for gpu, process in enumerate(processes(reading)):
        process.gdr_by_pair = {(str(gpu), f"mlx5_{i}"): i == gpu for i in range(4)}
    assert told(reading) == []


def test_channels_without_it_although_the_adapters_can() -> None:
    reading = a_reading(between=Way.NETWORK)
    assert told(reading) == ["gdr-off"]
    finding = the(reading, "gdr-off")
    assert finding.cause is not None
    assert "without GDRDMA" in finding.cause
    assert "via network" in finding.evidence[0]


def test_no_line_is_unknown_and_never_off() -> None:
    reading = without_channels(a_reading())
    for process in processes(reading):
        process.version = "2.30.7"
        process.gdr_by_adapter = {}
    assert told(reading) == ["gdr-unknown"]
    finding = the(reading, "gdr-unknown")
    assert finding.severity is Severity.INFO
    assert finding.cause is not None
    assert "this version prints no line" in finding.cause
    for process in processes(reading):
        process.version = "2.21.5"
    cause = the(reading, "gdr-unknown").cause
    assert cause == "the lines of subsystem NET are not in the log"
