"""Is it told where ranks differ in what must agree, and only there?"""

from tests.doctor.log.conclusions.found import found, the
from tests.doctor.log.readings import a_reading, processes, set_everywhere

from broadgauge.doctor.log.facts import CommunicatorFacts, Place, ProcessFacts, Speaker
from broadgauge.doctor.log.reading import read_text
from broadgauge.specs.records.record import Severity


def test_one_rank_on_another_network() -> None:
    reading = a_reading()
    processes(reading)[3].network = "Socket"
    finding = the(reading, "networks-differ")
    assert finding.severity is Severity.ERROR
    assert finding.evidence == ("job.log:4: Socket: rank 3", "job.log:1: IB: ranks 0 to 2")


def test_one_rank_of_another_version() -> None:
    reading = a_reading()
    processes(reading)[2].version = "2.21.5"
    assert "2.21.5: rank 2" in the(reading, "nccl-versions-differ").evidence[0]


def test_another_job_in_the_same_log_is_no_difference() -> None:
    reading = a_reading()
    other = Speaker("node9", 1)
    reading.processes[other] = ProcessFacts(
        speaker=other, place=Place("old.log", 1), version="2.18.6", network="Socket"
    )
    assert found(reading, "nccl-versions-differ") == ()
    assert found(reading, "networks-differ") == ()


def test_interfaces_are_compared_by_name_and_not_by_address() -> None:
    reading = a_reading()
    for i, process in enumerate(processes(reading)):
        process.addresses = {"eth0": f"10.0.0.{i}"}
    assert found(reading, "interfaces-differ") == ()
    processes(reading)[0].bootstrap = "ens3"
    assert the(reading, "interfaces-differ").severity is Severity.INFO


def test_a_setting_that_some_ranks_lack() -> None:
    reading = a_reading()
    set_everywhere(reading, NCCL_DEBUG="INFO", NCCL_ALGO="Ring")
    del processes(reading)[1].variables["NCCL_ALGO"]
    finding = the(reading, "settings-differ")
    assert finding.symptom == "NCCL_ALGO is not the same on all ranks"
    assert finding.evidence[0] == "job.log:2: unset: rank 1"


def test_ranks_that_log_no_variables_say_nothing_of_them() -> None:
    reading = a_reading()
    processes(reading)[0].variables = {"NCCL_ALGO": "Ring"}
    assert found(reading, "settings-differ") == ()


def test_what_may_differ_from_host_to_host() -> None:
    reading = a_reading()
    for i, process in enumerate(processes(reading)):
        process.variables = {"NCCL_IB_HCA": f"mlx5_{i}", "NCCL_SOCKET_IFNAME": f"eth{i}"}
    assert found(reading, "settings-differ") == ()


def test_each_machine_may_have_its_own_topology_file() -> None:
    """A file's path tells nothing; that some have none does."""
    reading = a_reading()
    for i, process in enumerate(processes(reading)):
        process.variables = {"NCCL_DEBUG": "INFO", "NCCL_TOPO_FILE": f"/run/node{i}.xml"}
    assert found(reading, "settings-differ") == ()
    del processes(reading)[1].variables["NCCL_TOPO_FILE"]
    assert the(reading, "settings-differ").symptom.startswith("NCCL_TOPO_FILE is not the same")


def test_a_machine_that_allows_fewer_channels_than_the_others() -> None:
    reading = a_reading()
    for process in processes(reading):
        process.ring_channels = 16
    assert found(reading, "channels-differ") == ()
    processes(reading)[3].ring_channels = 4
    finding = the(reading, "channels-differ")
    assert finding.severity is Severity.WARNING
    assert finding.symptom.startswith("the machine of rank 3 allows 4 channels and that of others")
    assert finding.symptom.endswith("16: all use 4")


def test_searches_of_several_communicators_are_not_compared() -> None:
    reading = a_reading()
    reading.communicators["0x2"] = CommunicatorFacts(identity="0x2", place=Place("job.log", 9))
    for process, channels in zip(processes(reading), (16, 16, 16, 4), strict=True):
        process.ring_channels = channels
    assert found(reading, "channels-differ") == ()


def test_only_the_search_for_rings_counts() -> None:
    lines = "".join(
        f"node0:12:12 [0] NCCL INFO Pattern {pattern}, crossNic 0, nChannels {channels}, "
        "bw 24.000000/24.000000, type NVL/PIX, sameChannels 1\n"
        for pattern, channels in ((4, 8), (1, 16))
    )
    (process,) = read_text(lines).processes.values()
    assert process.ring_channels == 8
