"""What is NCCL told, and what does it say it made of it?"""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.platforms.launches import make_case

from broadgauge.doctor.log.reading import read_text
from broadgauge.platforms.nccl_log import (
    NcclFacts,
    mismatch,
    nccl_facts,
    nccl_facts_of_rank,
    speed_note,
)
from broadgauge.platforms.nccl_topology import numa_node_of, topology_xml

LOG = """\
gpu1:42:42 [0] NCCL INFO NCCL_TOPO_FILE set by environment to /run/x.xml
gpu1:42:42 [0] NCCL INFO NET/Socket : Using [0]eth0:10.80.0.1<0>
gpu1:42:42 [0] NCCL INFO Initialized NET plugin Socket
gpu1:42:42 [0] NCCL INFO Using network Socket
gpu1:42:42 [0] NCCL INFO comm 0x5581 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0

gpu1:42:42 [0] /b/src/misc/socket.cc:1 NCCL WARN something
gpu1:42:42 [0] NCCL INFO CPU/0-0 (1/2/-1)
gpu1:42:42 [0] NCCL INFO + PCI[5000.0] - NIC/0-0
gpu1:42:42 [0] NCCL INFO                 + NET[3.1] - NET/0-0 (0/0/0/3.125000)
"""


def facts_of(text: str) -> NcclFacts:
    return nccl_facts(read_text(text))


def test_the_topology_names_the_nic_and_its_speed_in_megabits() -> None:
    root = ElementTree.fromstring(topology_xml(("eth0",), 25.0, 1))
    assert (root.tag, root.get("version")) == ("system", "1")
    [cpu] = root
    assert cpu.get("numaid") == "1"
    assert cpu.get("arch")
    net = root.find("./cpu/nic/net")
    assert net is not None
    assert (net.get("name"), net.get("speed")) == ("eth0", "25000")


def test_a_device_that_is_not_there_has_no_numa_node() -> None:
    assert numa_node_of("00000000:FF:1F.7") == -1


def test_nccls_own_words() -> None:
    facts = facts_of(LOG)
    assert facts == NcclFacts(
        network="Socket", num_ranks=2, num_nodes=2, seen_gbps=pytest.approx(25.0)
    )
    assert mismatch(make_case("emulated"), facts) is None


def test_no_words_are_unknown_and_no_mismatch() -> None:
    facts = facts_of("nothing of NCCL's")
    assert facts == NcclFacts()
    assert mismatch(make_case("emulated"), facts) is None


def test_one_node_where_two_were_meant() -> None:
    case = make_case("emulated")
    facts = NcclFacts(network="Socket", num_ranks=2, num_nodes=1)
    assert mismatch(case, facts) == "2 nodes were expected, and NCCL saw 1"
    mine = make_case("emulated", environment={"NCCL_HOSTID": "one"})
    assert mismatch(mine, facts) is None


def test_another_network_than_sockets() -> None:
    facts = NcclFacts(network="IB", num_ranks=2, num_nodes=2)
    assert mismatch(make_case("emulated"), facts) == (
        "TCP sockets were expected, and NCCL used the network `IB`"
    )
    assert mismatch(make_case("emulated", environment={"NCCL_NET": "IB"}), facts) is None


def test_a_small_communicator_says_nothing_of_the_whole_job() -> None:
    case = make_case("emulated", ranks_per_node=2)
    assert mismatch(case, NcclFacts(num_ranks=2, num_nodes=1)) is None


def test_the_log_of_a_rank_is_found(tmp_path: Path) -> None:
    (tmp_path / "b0.0.rank1.nccl.log").write_text(LOG)
    stem = str(tmp_path / "b0.0")
    assert nccl_facts_of_rank(stem, 1).network == "Socket"
    assert nccl_facts_of_rank(stem, 0) == NcclFacts()


def test_what_nccl_believes_is_a_note() -> None:
    case = make_case("emulated")
    note = speed_note(case, NcclFacts(seen_gbps=25.0), 25.0)
    assert note == "NCCL takes slow for 25 Gbit/s, told 25 Gbit/s"
    assert speed_note(case, NcclFacts(), 25.0) is None
