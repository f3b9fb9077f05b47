"""Are virtual interfaces that starve a job told from those that do not?"""

import pytest
from tests.doctor.log.conclusions.found import found, the
from tests.doctor.log.readings import (
    a_reading,
    on_sockets,
    one_node,
    processes,
    the_communicator,
)

from broadgauge.doctor.log.facts import LogReading
from broadgauge.specs.records.record import Confidence, Severity


def trapped(channels: int = 2) -> LogReading:
    """Pods whose veth NCCL takes for 10 Gbit/s."""
    reading = on_sockets()
    the_communicator(reading).num_channels = channels
    for process in processes(reading):
        process.default_speed_interfaces = {"eth0"}
    return reading


def test_few_streams_over_an_interface_of_unknown_speed() -> None:
    finding = the(trapped(), "socket-streams-few")
    assert finding.symptom == (
        "NCCL takes eth0 for 10 Gbit/s and opens 2 TCP streams between two nodes"
    )
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.LIKELY)
    assert finding.fix is not None
    assert "issue 450" in finding.fix
    assert "measure again" in finding.fix


def test_many_streams_are_enough() -> None:
    assert found(trapped(channels=8), "socket-streams-few") == ()
    reading = trapped()
    for process in processes(reading):
        process.socket_threads, process.sockets_per_thread = 4, 4
    assert found(reading, "socket-streams-few") == ()


def test_an_interface_whose_speed_is_known_is_no_trap() -> None:
    reading = trapped()
    for process in processes(reading):
        process.default_speed_interfaces = {"docker0"}
        process.seen_gbps = 25.0
    assert found(reading, "socket-streams-few") == ()


def test_ten_gigabit_may_be_what_the_nic_has() -> None:
    reading = trapped()
    for process in processes(reading):
        process.default_speed_interfaces, process.seen_gbps = set(), 10.0
    finding = the(reading, "socket-streams-few")
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.POSSIBLE)


def test_where_the_number_of_channels_is_unknown_it_is_only_possible() -> None:
    reading = trapped()
    the_communicator(reading).num_channels = None
    assert the(reading, "socket-streams-few").confidence is Confidence.POSSIBLE


def test_on_one_node_sockets_carry_nothing() -> None:
    reading = one_node()
    the_communicator(reading).num_channels = 2
    for process in processes(reading):
        process.interfaces, process.default_speed_interfaces = ("eth0",), {"eth0"}
    assert found(reading, "socket-streams-few") == ()


@pytest.mark.parametrize(
    "interface",
    ["docker0", "lo", "virbr0", "cni0", "br-1a2b3c", "eth1 169.254.3.4", "eth2 172.17.0.2"],
)
def test_an_interface_of_one_host_is_an_error_where_it_is_the_only_one(interface: str) -> None:
    reading = on_sockets()
    name, _, address = interface.partition(" ")
    for process in processes(reading):
        process.bootstrap, process.interfaces = None, (name,)
        process.addresses = {name: address}
    finding = the(reading, "interface-of-one-host")
    assert finding.severity is Severity.ERROR
    assert finding.evidence == (f"ranks 0 to 3: {interface}",)


@pytest.mark.parametrize(
    "interface", ["eth0 172.18.0.2", "bond0", "flannel.1", "ib0", "loop", "net1", "brick0"]
)
def test_an_interface_that_leads_out_is_none(interface: str) -> None:
    reading = on_sockets()
    name, _, address = interface.partition(" ")
    for process in processes(reading):
        process.bootstrap, process.interfaces = name, (name,)
        process.addresses = {name: address}
    assert found(reading, "interface-of-one-host") == ()


def test_beside_others_it_is_a_warning() -> None:
    reading = on_sockets()
    processes(reading)[0].interfaces = ("eth0", "cni0")
    finding = the(reading, "interface-of-one-host")
    assert finding.severity is Severity.WARNING
    assert finding.symptom == "NCCL uses cni0 beside others, which leads to no other host"


def test_with_rdma_only_the_bootstrap_counts() -> None:
    reading = a_reading()
    for process in processes(reading):
        process.interfaces = ("docker0",)
    assert found(reading, "interface-of-one-host") == ()
    for process in processes(reading):
        process.bootstrap = "docker0"
    assert the(reading, "interface-of-one-host").severity is Severity.ERROR


def test_nodes_that_are_told_apart_on_one_host_may_use_loopback() -> None:
    reading = on_sockets()
    processes_on_one_host = {s._replace(host="node0"): p for s, p in reading.processes.items()}
    reading.processes = processes_on_one_host
    for process in processes(reading):
        process.bootstrap = process.interfaces[0]
        process.interfaces = ("lo",)
    assert found(reading, "interface-of-one-host") == ()
