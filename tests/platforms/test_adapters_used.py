"""Proves platforms/led/adapters_used.py: what contradicts the experiment fails its trial."""

from tests.platforms.test_meant_transport import a_case

from broadgauge.messages.rdma_use import AdaptersUsed, CountedFor, PortUse, RdmaUse
from broadgauge.platforms.led.adapters_used import COUNTERS, findings_of_adapters
from broadgauge.platforms.meant_transport import FELL_BACK, NOT_SOCKETS, transport_error
from broadgauge.specs.record import Severity


def told(node: int, *, problems: tuple[str, ...] = (), notes: tuple[str, ...] = ()) -> AdaptersUsed:
    port = PortUse(
        adapter="mlx5_0:1",
        counted_for=CountedFor.NODE,
        tx_bytes=2**20,
        rx_bytes=None,
        write_requests_count=None,
        errors={},
    )
    use = RdmaUse(network="fabric", adapters=(port,), problems=problems, notes=notes)
    return AdaptersUsed(node=node, use=use)


def test_nodes_that_tell_the_same_are_named_together() -> None:
    rows = [told(node, problems=("no RDMA write came in",)) for node in (0, 1)]
    (finding,) = findings_of_adapters(a_case(transport="roce"), rows)
    assert (finding.rule, finding.severity) == (FELL_BACK, Severity.ERROR)
    assert finding.symptom.endswith(": nodes 0, 1: no RDMA write came in")
    assert finding.evidence[0] == "node 0, mlx5_0:1: 1 MiB sent, counted for node"
    error = transport_error(finding)
    assert error is not None
    assert "no RDMA write came in" in error.message


def test_sockets_that_were_asked_for_and_not_taken() -> None:
    (finding,) = findings_of_adapters(a_case(transport="tcp"), [told(1, problems=("RDMA writes",))])
    assert finding.rule == NOT_SOCKETS


def test_what_is_not_known_is_said_and_fails_nothing() -> None:
    (finding,) = findings_of_adapters(
        a_case(transport="roce"), [told(0, notes=("they are the node's",))]
    )
    assert (finding.rule, finding.severity) == (COUNTERS, Severity.INFO)
    assert transport_error(finding) is None
    assert findings_of_adapters(a_case(transport="roce"), []) == ()
