"""Are detours inside a node told, and only there?"""

import pytest
from tests.doctor.log.conclusions.found import found, the
from tests.doctor.log.readings import (
    a_reading,
    a_rule,
    one_node,
    processes,
    saw,
    set_everywhere,
    the_communicator,
)

from broadgauge.doctor.log.facts import Way
from broadgauge.specs.records.record import Confidence, Severity


def test_one_pair_over_the_hosts_memory_beside_others_by_p2p() -> None:
    reading = one_node()
    communicator = the_communicator(reading)
    communicator.paths[3, 4] = {Way.SHM: {0}}
    finding = the(reading, "p2p-not-used")
    assert finding.symptom == "ranks of one node talk over the host's memory: 3 → 4"
    assert finding.evidence == ("1 of 8 pairs inside nodes",)
    assert finding.confidence is Confidence.LIKELY


def test_no_pair_by_p2p_may_be_the_hardware() -> None:
    finding = the(a_reading(1, 8, inside=Way.SHM), "p2p-not-used")
    assert finding.confidence is Confidence.POSSIBLE
    assert finding.evidence[0] == "job.log:50: Channel 00/0 : 0[0] -> 1[0] via SHM"
    assert finding.symptom.endswith(": 0 → 1, 1 → 2, 2 → 3, 3 → 4 and 4 more")


@pytest.mark.parametrize(
    ("variables", "said"),
    [({"NCCL_P2P_DISABLE": "1"}, "NCCL_P2P_DISABLE=1"), ({"NCCL_P2P_LEVEL": "LOC"}, "LEVEL=LOC")],
)
def test_a_variable_that_forbids_p2p_is_the_cause(variables: dict[str, str], said: str) -> None:
    reading = a_reading(1, 8, inside=Way.SHM)
    set_everywhere(reading, **variables)
    cause = the(reading, "p2p-not-used").cause
    assert cause is not None
    assert said in cause


def test_the_drivers_refusal_is_the_cause() -> None:
    reading = a_reading(1, 8, inside=Way.SHM)
    line = "P2P is disabled between connected GPUs 0 and 1."
    saw(reading, a_rule("refused", "P2P is disabled between"), line)
    cause = the(reading, "p2p-not-used").cause
    assert cause is not None
    assert "ACS" in cause


def test_the_network_inside_a_node() -> None:
    finding = the(a_reading(1, 2, network="Socket", inside=Way.SOCKETS), "network-inside-node")
    assert finding.severity is Severity.WARNING


def test_ranks_that_a_host_id_tells_apart_are_two_nodes() -> None:
    reading = a_reading(1, 2, network="Socket", inside=Way.SOCKETS)
    for i, process in enumerate(processes(reading)):
        process.variables["NCCL_HOSTID"] = f"node{i}"
    assert found(reading, "network-inside-node") == ()


def test_between_nodes_the_network_is_the_way() -> None:
    assert found(a_reading(), "network-inside-node") == ()
    assert found(a_reading(), "p2p-not-used") == ()


def test_multicast_that_is_there_and_not_used() -> None:
    reading = one_node()
    for process in processes(reading):
        process.has_multicast = True
    assert found(reading, "nvls-not-used") == ()
    communicator = the_communicator(reading)
    communicator.has_nvls, communicator.num_nvls_channels = False, 0
    assert the(reading, "nvls-not-used").confidence is Confidence.POSSIBLE
    set_everywhere(reading, NCCL_NVLS_ENABLE="0")
    assert the(reading, "nvls-not-used").cause == "NCCL_NVLS_ENABLE=0 switches it off"


def test_two_gpus_use_no_multicast() -> None:
    reading = one_node(2)
    for process in processes(reading):
        process.has_multicast = True
    the_communicator(reading).has_nvls = False
    the_communicator(reading).num_nvls_channels = 0
    assert found(reading, "nvls-not-used") == ()


def test_shared_memory_that_is_switched_off_is_the_cause() -> None:
    reading = a_reading(1, 2, network="Socket", inside=Way.SOCKETS)
    set_everywhere(reading, NCCL_SHM_DISABLE="1")
    cause = the(reading, "network-inside-node").cause
    assert cause is not None
    assert cause.startswith("NCCL_SHM_DISABLE=1")
