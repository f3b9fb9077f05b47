"""Does the cause of a store that is out of reach fit what else the log says?"""

import pytest

from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.reading import read_text
from broadgauge.specs.records.record import Severity

TIMED_OUT = "[E socket.cpp:957] [c10d] The client socket has timed out after 60s while trying to connect to ({host}, 29500).\n"  # noqa: E501
LOST = "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed.\n"  # noqa: E501
NOT_REACHED = "[W socket.cpp:663] [c10d] The client socket has failed to connect to [{address}]:29500 (errno: {why}).\n"  # noqa: E501
NCCL = "node1:1:1 [0] NCCL INFO cudaDriverVersion 12040\n"


def test_torchruns_rendezvous_asks_for_the_endpoints_own_name() -> None:
    (found,) = log_findings(read_text(TIMED_OUT.format(host="node01") + LOST))
    assert "is_host" in str(found.fix)


def test_without_a_rendezvous_it_is_rank_0() -> None:
    (found,) = log_findings(read_text(TIMED_OUT.format(host="node01")))
    assert "rank 0" in str(found.cause)
    assert "is_host" not in str(found.fix)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.1.1", "localhost"])
def test_a_loopback_address_is_each_nodes_own(host: str) -> None:
    (found,) = log_findings(read_text(TIMED_OUT.format(host=host) + LOST))
    assert "loopback" in str(found.cause)


@pytest.mark.parametrize(
    ("why", "word"),
    [("113 - No route to host", "firewall"), ("110 - Connection timed out", "security group")],
)
def test_the_error_number_names_the_cause_of_the_time_out(why: str, word: str) -> None:
    log = NOT_REACHED.format(address="node01", why=why) + TIMED_OUT.format(host="node01")
    (found,) = log_findings(read_text(log))
    assert found.severity is Severity.ERROR
    assert word in str(found.cause)


@pytest.mark.parametrize("why", ["111 - Connection refused", "101 - Network is unreachable"])
def test_what_was_out_of_reach_at_first_is_a_note_once_nccl_began(why: str) -> None:
    tries = "".join(NOT_REACHED.format(address=a, why=why) for a in ("node01", "::ffff:10.0.0.5"))
    (before,) = log_findings(read_text(tries))
    assert before.severity is Severity.WARNING
    after = log_findings(read_text(tries + NCCL))
    assert {f.severity for f in after} == {Severity.INFO}
    assert [f.rule for f in after].count(before.rule) == 1
