"""Is it told where NCCL's nodes are not the hosts?"""

from tests.doctor.log.conclusions.found import found, the
from tests.doctor.log.readings import a_reading, one_node, set_everywhere, the_communicator

from broadgauge.doctor.log.facts import Way
from broadgauge.specs.records.record import Severity


def test_more_nodes_than_hosts_are_containers_of_one_host() -> None:
    reading = one_node(2)
    the_communicator(reading).num_nodes = 2
    finding = the(reading, "nodes-more-than-hosts")
    assert finding.symptom == "NCCL takes node0 for 2 nodes"
    assert finding.severity is Severity.WARNING


def test_a_host_id_is_meant() -> None:
    reading = one_node(2)
    the_communicator(reading).num_nodes = 2
    set_everywhere(reading, NCCL_HOSTID="a")
    assert the(reading, "nodes-more-than-hosts").severity is Severity.INFO


def test_the_log_of_one_host_of_many_says_nothing() -> None:
    reading = a_reading()
    communicator = the_communicator(reading)
    for rank in (2, 3):
        del communicator.members[rank]
    assert found(reading, "nodes-more-than-hosts") == ()


def test_fewer_nodes_than_hosts() -> None:
    reading = a_reading()
    the_communicator(reading).num_nodes = 1
    assert the(reading, "nodes-fewer-than-hosts").severity is Severity.WARNING


def test_hosts_that_nvlink_joins_are_one_node() -> None:
    reading = a_reading(between=Way.P2P)
    the_communicator(reading).num_nodes = 1
    assert the(reading, "nodes-fewer-than-hosts").severity is Severity.INFO


def test_gpus_that_reach_each_other_by_the_network_alone_are_nodes() -> None:
    reading = one_node(2)
    the_communicator(reading).num_nodes = 2
    set_everywhere(reading, NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1")
    finding = the(reading, "nodes-more-than-hosts")
    assert finding.severity is Severity.INFO
    assert finding.cause is not None
    assert finding.cause.startswith("NCCL_P2P_DISABLE=1 and NCCL_SHM_DISABLE=1")
