"""Proves doctor/host/variables.py and what it is made of: spelling, releases, values, devices."""

from pathlib import Path

import pytest
from tests.agent.hardware import machines
from tests.agent.hardware.machines import Machine

from broadgauge.doctor.host.reading import read_hardware
from broadgauge.doctor.host.variable_devices import read_filter
from broadgauge.doctor.host.variable_evidence import whole_number
from broadgauge.doctor.host.variables import variable_findings
from broadgauge.messages.hardware import HardwareFacts
from broadgauge.specs.records.record import Finding, Severity


def judged(
    variables: dict[str, str], version: str | None = "2.28.9", facts: HardwareFacts | None = None
) -> list[Finding]:
    return list(variable_findings(variables, version=version, facts=facts))


def rules(
    variables: dict[str, str], version: str | None = "2.28.9", facts: HardwareFacts | None = None
) -> list[str]:
    return [finding.rule for finding in judged(variables, version, facts)]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NCCL_IB_HBA", "NCCL_IB_HCA"),
        ("NCCL_SOCKET_IFNAMES", "NCCL_SOCKET_IFNAME"),
        ("NCCL_DEBUG_SUBSYSTEM", "NCCL_DEBUG_SUBSYS"),
        ("NCCL_IB_GID_IDX", "NCCL_IB_GID_INDEX"),
        ("NCCL_NSOCKS_PER_THREAD", "NCCL_NSOCKS_PERTHREAD"),
        ("TORCH_NCCL_BLOCKING_WAITS", "TORCH_NCCL_BLOCKING_WAIT"),
    ],
)
def test_a_misspelt_name_has_the_nearest_known_one(name: str, meant: str) -> None:
    (found,) = judged({name: "1"})
    assert found.rule == "host-variable-unknown"
    assert found.severity is Severity.WARNING
    assert found.fix == f"did you mean `{meant}`?"
    assert found.evidence == (f"{name}=1",)


def test_a_name_like_no_other_has_no_guess() -> None:
    (found,) = judged({"NCCL_ZZZZZZZZZZZZZZZZZZZZ": "1"})
    assert "did you mean" not in (found.fix or "")


@pytest.mark.parametrize(
    "name",
    [
        *("NCCL_IB_HCA", "NCCL_TESTS_DEVICE", "NCCL_FASTRAK_IFNAME", "NCCL_GPUDIRECTTCPX_CTRL_DEV"),
        *("NCCL_TUNER_CONFIG_PATH", "OFI_NCCL_PROTOCOL", "TORCH_NCCL_TRACE_BUFFER_SIZE"),
        *("NCCL_VERSION", "NCCL_UCX_TLS", "PATH", "MY_NCCL_IB_HBA"),
    ],
)
def test_known_names_and_those_of_others(name: str) -> None:
    assert rules({name: "1"}) == []


def test_a_newer_nccl_may_know_more() -> None:
    (found,) = judged({"NCCL_BRAND_NEW": "1"}, version="2.99.1")
    assert found.severity is Severity.INFO


@pytest.mark.parametrize(
    ("name", "version", "words"),
    [
        ("NCCL_RAS_ENABLE", "2.21.5", "does not read NCCL_RAS_ENABLE yet"),
        ("NCCL_CONF_FILE", "2.18.3", "yet"),
        ("NCCL_TREE_THRESHOLD", "2.28.9", "any more"),
        ("NCCL_IB_CUDA_SUPPORT", "2.18.3", "any more"),
    ],
)
def test_names_of_other_releases(name: str, version: str, words: str) -> None:
    (found,) = judged({name: "0"}, version)
    assert found.rule == "host-variable-version"
    assert words in found.symptom


@pytest.mark.parametrize(
    ("name", "version"),
    [("NCCL_RAS_ENABLE", "2.24.3"), ("NCCL_RAS_ENABLE", None), ("NCCL_IB_HCA", "2.31.0")],
)
def test_names_that_a_release_reads_or_that_is_unknown(name: str, version: str | None) -> None:
    assert rules({name: "1"}, version) == []


def test_old_names_of_torch() -> None:
    (found,) = judged({"NCCL_ASYNC_ERROR_HANDLING": "1"})
    assert (found.rule, found.fix) == ("host-variable-old-name", "TORCH_NCCL_ASYNC_ERROR_HANDLING")


@pytest.mark.parametrize(
    ("name", "value", "word"),
    [
        ("NCCL_DEBUG", "inof", "INFO"),
        ("NCCL_IB_DISABLE", "yes", "takes this value for 0"),
        ("NCCL_BUFFSIZE", "4M", "takes this value for 4"),
        ("NCCL_NET_GDR_LEVEL", "phb", "PHB"),
        ("NCCL_P2P_LEVEL", "NODE", "nvidia-smi"),
        ("NCCL_SOCKET_FAMILY", "IPV4", "AF_INET"),
        ("NCCL_ALGO", "Rign", "RING"),
        ("NCCL_PROTO", "LL,LL12", "LL12"),
        ("NCCL_DEBUG_SUBSYS", "INIT,NETS", "NET"),
        ("NCCL_SOCKET_NTHREADS", "32", "16"),
    ],
)
def test_values_that_can_not_be(name: str, value: str, word: str) -> None:
    found = [each for each in judged({name: value}) if each.rule == "host-variable-value"]
    assert len(found) == 1
    assert word in f"{found[0].symptom} {found[0].fix}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("NCCL_DEBUG", "info"), ("NCCL_DEBUG", ""), ("NCCL_IB_DISABLE", "0")),
        *(("NCCL_IB_TIMEOUT", "0x16"), ("NCCL_NET_GDR_LEVEL", "SYS"), ("NCCL_NET_GDR_LEVEL", "5")),
        *(("NCCL_DEBUG_SUBSYS", "^INIT,net"), ("NCCL_IB_GID_INDEX", "-1"), ("NCCL_NET", "IB")),
        *(("NCCL_SOCKET_NTHREADS", "16"), ("NCCL_HOSTID", "any text"), ("NCCL_P2P_LEVEL", "NVL")),
    ],
)
def test_values_that_can_be(name: str, value: str) -> None:
    assert rules({name: value}) == []


@pytest.mark.parametrize("value", ["Ring", "^LL128", "ring,tree;allreduce:nvls", "PAT"])
def test_fixed_algorithms_are_a_note(value: str) -> None:
    name = "NCCL_PROTO" if "LL" in value else "NCCL_ALGO"
    (found,) = judged({name: value})
    assert (found.rule, found.severity) == ("host-variable-trap", Severity.INFO)


@pytest.mark.parametrize(("threads", "sockets", "count"), [("8", "16", 1), ("8", "8", 0)])
def test_sockets_in_all(threads: str, sockets: str, count: int) -> None:
    variables = {"NCCL_SOCKET_NTHREADS": threads, "NCCL_NSOCKS_PERTHREAD": sockets}
    assert rules(variables) == ["host-variable-value"] * count


def test_more_channels_at_least_than_at_most() -> None:
    variables = {"NCCL_MIN_NCHANNELS": "8", "NCCL_MAX_NCHANNELS": "4"}
    assert "host-variable-value" in rules(variables)


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        *(("ens9", "host-variable-interface"), ("=ens0", "host-variable-interface")),
        *(("^ens,lo", "host-variable-interface"), ("eno1", "host-variable-interface")),
        *(("^docker", "host-variable-loopback"), ("lo", "host-variable-loopback")),
        *(("ens", None), ("=ens0np0", None), ("^docker,lo", None), ("eth,ens1", None)),
    ],
)
def test_interfaces_that_are_here(tmp_path: Path, value: str, rule: str | None) -> None:
    machine = machines.roce(tmp_path)
    machine.nic("eno1", state="down")
    found = rules({"NCCL_SOCKET_IFNAME": value}, facts=read_hardware(tmp_path, {}))
    assert found == ([rule] if rule else [])


@pytest.mark.parametrize(
    ("value", "is_said"),
    [
        *(("mlx5", False), ("=mlx5_0", False), ("=mlx5_0:1,mlx5_1:1", False), ("^mlx5_1", False)),
        *(("mlx5_0:2", True), ("=mlx5", True), ("^mlx5", True), ("ibp", True)),
        *(("=mlx5_0::0:1", False), ("=mlx5_0:1:0:1", False)),
    ],
)
def test_adapters_that_are_here(tmp_path: Path, value: str, is_said: bool) -> None:
    machines.dgx(tmp_path, pairs=2)
    found = rules({"NCCL_IB_HCA": value}, facts=read_hardware(tmp_path, {}))
    assert found == (["host-variable-adapter"] if is_said else [])


@pytest.mark.parametrize(
    ("index", "severity"),
    [
        *(("3", None), ("1", None), ("-1", None)),
        *(("0", Severity.WARNING), ("2", Severity.WARNING), ("7", Severity.ERROR)),
    ],
)
def test_gid_indices(tmp_path: Path, index: str, severity: Severity | None) -> None:
    machines.roce(tmp_path, pairs=1)
    found = judged({"NCCL_IB_GID_INDEX": index}, facts=read_hardware(tmp_path, {}))
    assert [each.severity for each in found] == ([severity] if severity else [])
    assert all("3 here" in (each.fix or "") for each in found)


def test_a_gid_index_on_infiniband_is_not_judged(tmp_path: Path) -> None:
    machines.dgx(tmp_path, pairs=1)
    assert rules({"NCCL_IB_GID_INDEX": "7"}, facts=read_hardware(tmp_path, {})) == []


def test_networks_that_are_not_here(tmp_path: Path) -> None:
    facts = read_hardware(machines.veth_pod(tmp_path).root, {})
    assert rules({"NCCL_NET": "IB"}, facts=facts) == ["host-variable-network"]
    assert rules({"NCCL_NET": "Socket"}, facts=facts) == []
    assert rules({"NCCL_NET_PLUGIN": "ofi"}, facts=facts) == ["host-variable-plugin"]
    assert rules({"NCCL_NET_PLUGIN": "none"}, facts=facts) == []


def test_a_plugin_that_is_here(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.libraries("libnccl-net-ofi.so")
    assert rules({"NCCL_NET_PLUGIN": "ofi"}, facts=read_hardware(tmp_path, {})) == []


@pytest.mark.parametrize(
    ("name", "value", "on_dgx", "on_vm"),
    [
        ("NCCL_P2P_DISABLE", "1", 1, 0),
        ("NCCL_P2P_DISABLE", "0", 0, 0),
        ("NCCL_SHM_DISABLE", "1", 1, 0),
        ("NCCL_IB_DISABLE", "1", 1, 0),
        ("NCCL_NET", "Socket", 1, 0),
        ("NCCL_NET_GDR_LEVEL", "LOC", 1, 0),
        ("NCCL_MAX_NCHANNELS", "1", 1, 1),
        ("NCCL_MIN_NCHANNELS", "8", 1, 1),
        ("NCCL_NVLS_ENABLE", "0", 1, 0),
        ("TORCH_NCCL_BLOCKING_WAIT", "1", 1, 1),
        ("NCCL_TOPO_FILE", "/etc/topo.xml", 1, 1),
        ("NCCL_IGNORE_NET_MISMATCH", "1", 1, 1),
        ("NCCL_IGNORE_NET_MISMATCH", "0", 0, 0),
    ],
)
def test_traps_where_they_cost_something(
    tmp_path: Path, name: str, value: str, on_dgx: int, on_vm: int
) -> None:
    dgx = read_hardware(machines.dgx(tmp_path / "dgx").root, {})
    vm = read_hardware(machines.virtio_vm(tmp_path / "vm").root, {})
    counts = [rules({name: value}, facts=facts).count("host-variable-trap") for facts in (dgx, vm)]
    assert counts == [on_dgx, on_vm]


def test_the_place_of_a_variable_is_told(tmp_path: Path) -> None:
    machine = machines.dgx(tmp_path, pairs=1)
    machine.file("/etc/nccl.conf", "\nNCCL_IB_DISABLE=1\n")
    facts = read_hardware(tmp_path, {})
    (found,) = judged(facts.effective_variables(), facts=facts)
    assert found.evidence == ("NCCL_IB_DISABLE=1 (/etc/nccl.conf:2)",)


def test_a_filter_of_names() -> None:
    named = read_filter("=mlx5_0:1,mlx5_1")
    assert named.takes("mlx5_0", 1)
    assert not named.takes("mlx5_0", 2)
    assert named.takes("mlx5_1", 2)
    assert not named.takes("mlx5_10", 1)
    assert read_filter("^mlx5_1").takes("mlx5_0")
    assert not read_filter("^mlx5_1").takes("mlx5_10")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("16", 16), ("-1", -1), ("0x10", 16), ("010", 8), ("0", 0), (" 7", 7), ("+7", 7)),
        *(("yes", None), ("", None), ("1_000", None), ("4M", None), ("--1", None), ("0x", None)),
    ],
)
def test_whole_numbers_as_c_reads_them(text: str, number: int | None) -> None:
    assert whole_number(text) == number
