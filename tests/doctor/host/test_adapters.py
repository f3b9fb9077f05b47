"""Proves doctor/host/adapters.py and port_errors.py: each rule, and what must not fire."""

from pathlib import Path

import pytest
from tests.agent.hardware import machines
from tests.agent.hardware.machines import CX7, LINK_GID, switch_path
from tests.doctor.host.judging import findings, warned

from broadgauge.specs.records.record import Severity

PORT = "sys/class/infiniband/mlx5_1/ports/1"


def write(root: Path, name: str, text: str) -> None:
    (root / PORT / name).write_text(f"{text}\n")


def test_adapters_without_device_files(tmp_path: Path) -> None:
    machine = machines.dgx(tmp_path, pairs=1)
    for file in machine.hca_files():
        file.unlink()
    found = findings(tmp_path)["host-rdma-no-device"]
    assert found.severity is Severity.WARNING
    assert found.evidence[0] == "/dev/infiniband: no uverbs file"


def test_device_files_that_do_not_open(tmp_path: Path) -> None:
    machine = machines.dgx(tmp_path, pairs=1)
    for file in machine.hca_files():
        file.unlink()
        file.mkdir()
    assert findings(tmp_path)["host-rdma-no-device"].evidence[0] == (
        "/dev/infiniband/uverbs0: Is a directory"
    )


def test_one_file_that_opens_is_enough(tmp_path: Path) -> None:
    machine = machines.dgx(tmp_path, pairs=2)
    machine.hca_files()[0].unlink()
    assert findings(tmp_path) == {}


def test_adapters_without_libibverbs(tmp_path: Path) -> None:
    machines.dgx(tmp_path, pairs=1)
    (tmp_path / "usr/lib/x86_64-linux-gnu/libibverbs.so.1").unlink()
    assert "host-no-libibverbs" in warned(tmp_path)
    assert "host-no-libibverbs" not in findings(tmp_path, NCCL_IBVERBS_LIB="/opt/libibverbs.so")


def test_without_adapters_libibverbs_is_not_missed(tmp_path: Path) -> None:
    machines.veth_pod(tmp_path)
    (tmp_path / "usr/lib/x86_64-linux-gnu/libibverbs.so.1").unlink()
    assert "host-no-libibverbs" not in findings(tmp_path)


@pytest.mark.parametrize(
    ("state", "physical", "severity", "words"),
    [
        ("1: DOWN", "2: Polling", Severity.WARNING, "cable"),
        ("2: INIT", "5: LinkUp", Severity.WARNING, "subnet manager"),
        ("1: DOWN", "3: Disabled", Severity.INFO, "cable"),
    ],
)
def test_ports_that_are_not_active(
    tmp_path: Path, state: str, physical: str, severity: Severity, words: str
) -> None:
    machines.dgx(tmp_path, pairs=2)
    write(tmp_path, "state", state)
    write(tmp_path, "phys_state", physical)
    found = findings(tmp_path)["host-port-not-active"]
    assert found.severity is severity
    assert words in (found.cause or "")


def test_an_unused_port_of_another_board_is_a_note(tmp_path: Path) -> None:
    machine = machines.dgx(tmp_path, pairs=1)
    device = machine.pci(("pci0000:e0", "0000:e0:01.0"), CX7)
    machine.hca("mlx5_9", device, state="1: DOWN", physical="2: Polling", board="MT_0000000223")
    assert findings(tmp_path)["host-port-not-active"].severity is Severity.INFO


def test_a_port_that_came_up_slower(tmp_path: Path) -> None:
    machines.dgx(tmp_path, pairs=2)
    write(tmp_path, "rate", "200 Gb/sec (2X NDR)")
    found = findings(tmp_path)["host-port-rate"]
    assert found.symptom == "mlx5_1:1 runs at 200 Gbit/s, mlx5_0 of the same board at 400"


def test_a_slower_board_is_no_slower_port(tmp_path: Path) -> None:
    machine = machines.dgx(tmp_path, pairs=2)
    device = machine.pci(("pci0000:e0", "0000:e0:01.0"), CX7)
    machine.hca("mlx5_9", device, rate="100 Gb/sec (4X EDR)", board="MT_0000000223")
    assert findings(tmp_path) == {}


def test_infiniband_beside_roce(tmp_path: Path) -> None:
    machine = machines.dgx(tmp_path, pairs=2)
    device = machine.pci(switch_path(0x80, 1), CX7)
    machine.hca("mlx5_9", device, layer="Ethernet", gids=machines.roce_gids("10.3.0.1"))
    found = findings(tmp_path)["host-mixed-link-layers"]
    assert found.severity is Severity.WARNING
    assert (found.fix or "").endswith("NCCL_IB_HCA==mlx5_0,mlx5_1")
    assert "host-mixed-link-layers" not in findings(tmp_path, NCCL_IB_HCA="=mlx5_0,mlx5_1")


def test_a_roce_port_without_an_address(tmp_path: Path) -> None:
    machines.roce(tmp_path)
    for index in (2, 3):
        write(tmp_path, f"gids/{index}", machines.NO_GID)
    found = findings(tmp_path)["host-no-roce-v2-gid"]
    assert found.symptom.startswith("mlx5_1:1 has no GID")
    assert LINK_GID.startswith("fe80")


def test_gids_of_another_network_namespace(tmp_path: Path) -> None:
    machines.roce(tmp_path)
    for index in range(4):
        (tmp_path / PORT / f"gid_attrs/types/{index}").unlink()
    assert "4 of another network namespace" in findings(tmp_path)["host-no-roce-v2-gid"].evidence[0]


def test_a_table_that_can_not_be_read_is_unknown(tmp_path: Path) -> None:
    machines.roce(tmp_path)
    for file in (tmp_path / PORT / "gids").iterdir():
        file.unlink()
    assert findings(tmp_path) == {}


@pytest.mark.parametrize(
    ("counter", "count", "rule", "severity"),
    [
        ("counters/symbol_error", 5000, "host-port-bit-errors", Severity.WARNING),
        ("counters/symbol_error", 3, "host-port-bit-errors", Severity.INFO),
        ("counters/link_downed", 40, "host-port-link-flaps", Severity.WARNING),
        ("counters/link_downed", 1, "host-port-link-flaps", Severity.INFO),
        ("hw_counters/out_of_sequence", 99999, "host-port-retransmits", Severity.WARNING),
        ("hw_counters/local_ack_timeout_err", 2, "host-port-retransmits", Severity.INFO),
        ("hw_counters/np_cnp_sent", 10**9, "host-port-congestion", Severity.INFO),
    ],
)
def test_what_ports_have_counted(
    tmp_path: Path, counter: str, count: int, rule: str, severity: Severity
) -> None:
    machines.roce(tmp_path)
    write(tmp_path, counter, str(count))
    found = findings(tmp_path)
    assert found[rule].severity is severity
    assert set(found) == {rule}
    name = counter.rpartition("/")[2]
    assert found[rule].evidence == (f"/sys/class/infiniband/mlx5_1/ports/1: {name} {count}",)
