"""Does a case fail that was meant to use RDMA and did not, and none of which nobody knows?"""

from typing import Any

import pytest
from tests.platforms.launches import make_case

from broadgauge.doctor.log.conclusions.why_sockets import WhySockets
from broadgauge.doctor.log.facts import Place
from broadgauge.platforms.meant_transport import (
    NO_GPUDIRECT,
    rules_asked_for,
    transport_error,
    transport_finding,
    transport_variables,
)
from broadgauge.platforms.paths import SOCKETS_ONLY
from broadgauge.specs.case import Case
from broadgauge.specs.networks.network import Network, NodePath
from broadgauge.specs.records.nccl import NcclUse, NcclWay
from broadgauge.specs.records.record import Confidence, ErrorKind, Severity

DIRECT = NcclWay(
    way="GDRDMA",
    num_pairs=2,
    line="logs/b0.l0.rank0.nccl.log:41: Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA",
)
STAGED = DIRECT.model_copy(update={"way": "network"})
SOCKETS = DIRECT.model_copy(
    update={"way": "sockets", "line": "f:7: Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0"}
)


def a_case(environment: dict[str, str] | None = None, **found: Any) -> Case:
    network = Network.model_validate({"name": "fabric", "found": {"interface": "ib0", **found}})
    return make_case(
        "emulated", network=network, device="cuda", backend="nccl", environment=environment or {}
    )


def facts(network: str | None, *ways: NcclWay, gpudirect: bool | None = None) -> NcclUse:
    return NcclUse(network=network, ways=ways, gpudirect=gpudirect)


@pytest.mark.parametrize(
    ("found", "nccl"),
    [
        ({}, facts("Socket", SOCKETS)),
        ({}, None),
        ({"transport": "roce"}, facts("IB", STAGED)),
        ({"transport": "infiniband"}, facts("IBext_v10", DIRECT)),
        ({"transport": "efa"}, facts("AWS Libfabric", DIRECT)),
        ({"transport": "roce"}, facts(None, DIRECT)),
        ({"transport": "roce", "gpudirect": True}, facts("IB", DIRECT)),
        ({"transport": "roce", "gpudirect": True}, facts("IB", DIRECT, STAGED)),
        ({"transport": "roce", "gpudirect": False}, facts("IB", STAGED)),
        ({"transport": "tcp"}, facts("Socket", SOCKETS)),
        ({"transport": "virtio"}, facts("Socket")),
    ],
)
def test_a_case_that_went_as_it_was_meant(found: dict[str, Any], nccl: NcclUse | None) -> None:
    assert transport_finding(a_case(**found), nccl) is None


@pytest.mark.parametrize(
    ("found", "nccl", "rule", "words"),
    [
        (
            {"transport": "roce"},
            facts("Socket", SOCKETS),
            "not-sent-by-rdma",
            "network fabric is meant as RoCE, and NCCL sent over TCP sockets",
        ),
        ({"transport": "efa"}, facts("Socket"), "not-sent-by-rdma", "meant as EFA"),
        ({"transport": "infiniband"}, facts(None, SOCKETS), "not-sent-by-rdma", "InfiniBand"),
        (
            {"transport": "roce", "gpudirect": True},
            facts("IB", STAGED),
            "no-gpudirect",
            "meant with GPUDirect, and NCCL copied through the host's memory",
        ),
        (
            {"transport": "roce", "gpudirect": True},
            facts("IB", gpudirect=False),
            "no-gpudirect",
            "copied through",
        ),
        (
            {"transport": "roce", "gpudirect": False},
            facts("IB", DIRECT),
            "unwanted-gpudirect",
            "meant without GPUDirect, and 2 pairs of ranks used it",
        ),
        (
            {"transport": "tcp"},
            facts("IB", DIRECT),
            "not-sent-by-tcp",
            "meant as TCP, and NCCL used the network `IB`",
        ),
    ],
)
def test_a_case_that_went_another_way_is_a_failed_case(
    found: dict[str, Any], nccl: NcclUse, rule: str, words: str
) -> None:
    finding = transport_finding(a_case(**found), nccl)
    assert finding is not None
    assert (finding.rule, finding.severity) == (rule, Severity.ERROR)
    assert words in finding.symptom
    assert finding.cause
    assert finding.fix
    error = transport_error(finding)
    assert error is not None
    assert error.kind is ErrorKind.REFUSED
    assert words in error.message
    assert error.last_lines == finding.evidence


def test_the_line_that_says_so_is_the_evidence() -> None:
    finding = transport_finding(a_case(transport="roce"), facts("Socket", SOCKETS))
    assert finding is not None
    assert finding.evidence == ("Using network Socket", SOCKETS.line)


def test_what_the_experiment_sets_is_the_cause() -> None:
    case = a_case(transport="roce", environment={"NCCL_IB_DISABLE": "1"})
    finding = transport_finding(case, facts("Socket"))
    assert finding is not None
    assert finding.cause == "the experiment sets NCCL_IB_DISABLE"


def test_the_doctors_reason_is_the_cause_where_a_line_tells_it() -> None:
    line = (Place("b0.l0.rank0.nccl.log", 9), "NET/IB : No device found.")
    why = WhySockets(cause="no port is up", fix="see", confidence=Confidence.LIKELY, lines=(line,))
    for known, cause in ((why, "no port is up"), (None, "NCCL found no adapter or plugin")):
        finding = transport_finding(a_case(transport="efa"), facts("Socket"), known)
        assert finding is not None
        assert finding.cause is not None
        assert finding.cause.startswith(cause)
        assert finding.confidence is Confidence.LIKELY
        assert "to measure TCP say `transport: tcp`" in (finding.fix or "")


def test_what_a_case_asks_for_is_no_warning() -> None:
    assert rules_asked_for(a_case()) == frozenset()
    assert rules_asked_for(a_case(transport="tcp")) == {"rdma-not-used"}
    assert "gdr-off" in rules_asked_for(a_case(transport="roce", gpudirect=False))
    path = make_case("local", network=NodePath(name="shm", path="shm"))
    assert "p2p-not-used" in rules_asked_for(path)


@pytest.mark.parametrize(
    ("found", "nccl"),
    [
        ({"transport": "roce"}, None),
        ({"transport": "roce"}, NcclUse()),
        ({"transport": "tcp"}, None),
        ({"transport": "roce", "gpudirect": True}, facts("IB")),
    ],
)
def test_what_nobody_knows_is_a_warning_and_no_failure(
    found: dict[str, Any], nccl: NcclUse | None
) -> None:
    finding = transport_finding(a_case(**found), nccl)
    assert finding is not None
    assert (finding.rule, finding.severity) == ("transport-unknown", Severity.WARNING)
    assert transport_error(finding) is None


@pytest.mark.parametrize(
    ("found", "variables"),
    [
        ({}, {}),
        ({"transport": "roce"}, {"NCCL_NET": "IB"}),
        ({"transport": "infiniband", "gpudirect": False}, {"NCCL_NET": "IB", **NO_GPUDIRECT}),
        ({"transport": "efa"}, {}),
        ({"transport": "efa", "gpudirect": False}, NO_GPUDIRECT),
        ({"transport": "sriov-tcp"}, SOCKETS_ONLY),
    ],
)
def test_what_nccl_is_told(found: dict[str, Any], variables: dict[str, str]) -> None:
    assert transport_variables(a_case(**found)) == variables


def test_one_node_and_an_emulated_network_mean_no_transport() -> None:
    for case in (make_case("local", backend="nccl"), make_case("emulated", backend="nccl")):
        assert transport_finding(case, facts("Socket")) is None
        assert transport_variables(case) == {}
