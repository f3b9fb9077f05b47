"""Does a trial fail that was meant as RDMA and went another way, by what adapters counted? And is
what they can't say said?"""

import pytest
from tests.platforms.test_meant_transport import DIRECT, a_case, facts

from broadgauge.messages.adapters_used import AdaptersUsed, CountedFor, PortUse
from broadgauge.platforms.led.adapters_used import COUNTERS, findings_of_adapters
from broadgauge.platforms.meant_transport import FELL_BACK, transport_error
from broadgauge.specs.records.record import Severity

ROCE = a_case(transport="roce")


def port(
    sent: int | None, whose: CountedFor = CountedFor.POD, number: int = 0, **more: int
) -> PortUse:
    return PortUse(adapter=f"mlx5_{number}:1", counted_for=whose, tx_bytes=sent, **more)


def used(node: int, *ports: PortUse) -> AdaptersUsed:
    return AdaptersUsed(node=node, ports=ports)


def test_adapters_that_carried_the_trial_are_no_finding() -> None:
    assert findings_of_adapters(ROCE, [used(0, port(2**30)), used(1, port(2**30))], None) == ()


@pytest.mark.parametrize("whose", [CountedFor.POD, CountedFor.NODE])
def test_nothing_on_them_fails_the_trial_where_nccl_does_not_say_its_way(
    whose: CountedFor,
) -> None:
    """Also on a shared one: others can only add to it."""
    told = [used(node, port(0, whose, writes_count=0)) for node in (0, 1)]
    found, *_ = findings_of_adapters(ROCE, told, None)
    assert (found.rule, found.severity) == (FELL_BACK, Severity.ERROR)
    assert found.symptom == (
        f"network {ROCE.network_name} is meant as RDMA, and nothing left nodes 0, 1 by mlx5_0:1"
    )
    assert found.evidence[0] == f"node 0, mlx5_0:1: 0 B sent, counted for {whose}"
    error = transport_error(found)
    assert error is not None
    assert "nothing left nodes 0, 1" in error.message


@pytest.mark.parametrize("nccl", [facts("IB"), facts(None, DIRECT)])
def test_a_log_and_counters_that_contradict_each_other_fail_nothing(nccl: object) -> None:
    (found,) = findings_of_adapters(ROCE, [used(0, port(0))], nccl)  # type: ignore[arg-type]
    assert (found.rule, found.severity) == (COUNTERS, Severity.WARNING)
    assert "though NCCL's log says that it sent by RDMA" in found.symptom
    assert transport_error(found) is None


def test_what_is_not_known_is_said_and_fails_nothing() -> None:
    told = [used(0, port(None, CountedFor.NOBODY)), used(1, port(9, CountedFor.NODE))]
    (found,) = findings_of_adapters(ROCE, told, None)
    assert (found.rule, found.severity) == (COUNTERS, Severity.INFO)
    assert found.symptom.endswith(
        "node 0: mlx5_0:1 has no counters here: NCCL's log alone says its way"
    )
    assert found.evidence[0] == (
        "node 1: the counters of mlx5_0:1 are the node's: other pods' bytes are in them"
    )
    assert "node 0, mlx5_0:1: unknown sent, counted for nobody" in found.evidence


def test_an_adapter_that_carried_nothing_and_packets_that_were_lost_are_notes() -> None:
    busy = port(2**30, writes_count=7, lost_packets_count=12)
    (found,) = findings_of_adapters(ROCE, [used(0, busy, port(0, number=1))], None)
    assert found.severity is Severity.INFO
    assert "nothing left by mlx5_1:1: NCCL used the network's other adapters alone" in (
        found.symptom
    )
    assert found.evidence[0] == "node 0: mlx5_0:1 counted 12 packets that were lost or out of order"


def test_networks_that_ask_for_no_rdma_are_not_judged() -> None:
    told = [used(0, port(0))]
    for case in (a_case(transport="tcp"), a_case(), a_case(transport="efa")):
        assert findings_of_adapters(case, told, None) == ()
    assert findings_of_adapters(ROCE, [], None) == ()
