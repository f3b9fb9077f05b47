"""Is the network named with its reason, and RDMA that is off an error where it was meant?"""

import pytest
from tests.doctor.log.conclusions.found import found, the
from tests.doctor.log.readings import (
    a_reading,
    a_rule,
    on_sockets,
    one_node,
    processes,
    saw,
    set_everywhere,
)

from broadgauge.doctor.log.facts import Adapter, LogReading
from broadgauge.specs.records.record import Confidence, Severity

NO_DEVICE = "NET/IB : No device found."


def no_device(reading: LogReading) -> None:
    saw(reading, a_rule("ib-no-device", NO_DEVICE), NO_DEVICE)


def test_the_network_is_named_with_what_it_runs_over() -> None:
    finding = the(a_reading(), "network-chosen-why")
    assert finding.symptom == "ranks 0 to 3 chose the network `IB`"
    assert finding.evidence == (
        "adapters: mlx5_0:1 (RoCE, 400 Gbit/s) and mlx5_1:1 (RoCE, 400 Gbit/s)",
        "bootstrap over eth0",
    )
    assert finding.cause is not None
    assert "before sockets" in finding.cause


def test_a_plugin_is_the_reason_for_its_network() -> None:
    reading = a_reading(network="AWS Libfabric")
    for process in processes(reading):
        process.plugin = "libnccl-net.so"
    cause = the(reading, "network-chosen-why").cause
    assert cause is not None
    assert "libnccl-net.so" in cause


@pytest.mark.parametrize(
    ("variables", "said", "severity"),
    [
        ({"NCCL_IB_HCA": "mlx5", "NCCL_IB_DISABLE": "1"}, "NCCL_IB_DISABLE=1", Severity.ERROR),
        ({"NCCL_IB_HCA": "mlx5", "NCCL_NET": "Socket"}, "NCCL_NET=Socket", Severity.ERROR),
        ({"WITH_RDMA": "true"}, "no line says why", Severity.ERROR),
        ({"NCCL_NET": "IB"}, "no line says why", Severity.ERROR),
    ],
)
def test_rdma_that_was_meant_and_is_off(
    variables: dict[str, str], said: str, severity: Severity
) -> None:
    reading = on_sockets()
    set_everywhere(reading, **variables)
    finding = the(reading, "rdma-not-used")
    assert finding.severity is severity
    assert finding.cause is not None
    assert said in finding.cause


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (NO_DEVICE, "matches NCCL_IB_HCA=mlx5"),
        ("Failed to open libibverbs.so[.1]", "image lacks"),
        ("NET/IB : No IP interface found.", "no IP interface"),
        ("NET/IB : Unable to open device mlx5_0", "/dev/infiniband"),
    ],
)
def test_the_line_that_says_why(line: str, said: str) -> None:
    reading = on_sockets()
    set_everywhere(reading, NCCL_IB_HCA="mlx5")
    saw(reading, a_rule("why", line), line)
    finding = the(reading, "rdma-not-used")
    assert finding.cause is not None
    assert said in finding.cause
    assert f"job.log:40: {line}" in finding.evidence
    assert found(reading, "why") == (), "the line is told once, with what it means"


def test_a_plugin_that_was_asked_for_and_is_missing() -> None:
    reading = on_sockets()
    set_everywhere(reading, NCCL_NET="AWS Libfabric", NCCL_IB_HCA="efa")
    processes(reading)[0].missing_plugins = {"libnccl-net.so"}
    cause = the(reading, "rdma-not-used").cause
    assert cause == "the plugin `AWS Libfabric` that is asked for can't be loaded: libnccl-net.so"


def test_listed_adapters_that_a_variable_switches_off_are_a_warning() -> None:
    reading = on_sockets()
    set_everywhere(reading, NCCL_NET="Socket")
    for process in processes(reading):
        process.adapters = {"mlx5_0:1": Adapter("mlx5_0:1", "IB", 200_000)}
    finding = the(reading, "rdma-not-used")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.CERTAIN)


def test_sockets_where_nothing_else_was_meant_are_a_fact() -> None:
    reading = on_sockets()
    no_device(reading)
    assert found(reading, "rdma-not-used") == ()
    assert the(reading, "network-chosen-why").severity is Severity.INFO


def test_on_one_node_the_network_carries_nothing() -> None:
    reading = one_node()
    set_everywhere(reading, NCCL_IB_HCA="mlx5", NCCL_IB_DISABLE="1")
    assert found(reading, "rdma-not-used") == ()


def test_rdma_that_is_on_is_no_finding() -> None:
    reading = a_reading()
    set_everywhere(reading, NCCL_IB_HCA="mlx5")
    assert found(reading, "rdma-not-used") == ()


@pytest.mark.parametrize(
    ("adapter", "words", "severity"),
    [
        ("hfi1_0:1", "Omni-Path", Severity.INFO),
        ("rxe0:1", "software RoCE", Severity.WARNING),
        ("rdmap0s6:1", "EFA without its plugin", Severity.INFO),
    ],
)
def test_what_nccl_calls_ib_is_said_as_what_it_is(
    adapter: str, words: str, severity: Severity
) -> None:
    reading = a_reading()
    for process in processes(reading):
        process.adapters = {adapter: Adapter(adapter, "IB")}
    finding = the(reading, "network-other-hca")
    assert words in finding.symptom
    assert finding.severity is severity


def test_mlx5_is_what_nccl_says() -> None:
    assert found(a_reading(), "network-other-hca") == ()


def test_a_plugin_that_is_named_and_can_not_be_loaded() -> None:
    reading = on_sockets()
    set_everywhere(reading, NCCL_NET_PLUGIN="aws-ofi")
    for process in processes(reading):
        process.missing_plugins = {"aws-ofi libnccl-net-aws-ofi.so"}
    finding = the(reading, "plugin-missing")
    assert finding.severity is Severity.ERROR
    assert finding.cause is not None
    assert finding.cause.endswith("NCCL took its own network `Socket`")


def test_a_plugin_that_nobody_named_is_only_looked_for() -> None:
    reading = on_sockets()
    for process in processes(reading):
        process.missing_plugins = {"libnccl-net.so"}
    assert found(reading, "plugin-missing") == ()
    set_everywhere(reading, NCCL_NET_PLUGIN="none")
    assert found(reading, "plugin-missing") == ()
