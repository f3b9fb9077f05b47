"""Proves doctor/host/nics.py: each rule with a case and what must not fire."""

from pathlib import Path

import pytest
from tests.agent.hardware import machines
from tests.agent.hardware.machines import Machine
from tests.doctor.host.judging import findings, warned

from broadgauge.specs.records.record import Confidence, Severity

TUNED = {"NCCL_SOCKET_NTHREADS": "4", "NCCL_MIN_NCHANNELS": "4"}


def test_a_veth_is_taken_for_ten_gigabits(tmp_path: Path) -> None:
    machines.veth_pod(tmp_path)
    found = findings(tmp_path)["host-nic-speed"]
    assert found.severity is Severity.WARNING
    assert found.confidence is Confidence.CERTAIN
    assert found.evidence == ("/sys/class/net/eth0/speed: 10000 (veth, driver unknown)",)
    for name in ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD", "NCCL_MIN_NCHANNELS", "speed="):
        assert name in (found.fix or "")


def test_virtio_beside_gpus_is_taken_for_ten_gigabits(tmp_path: Path) -> None:
    machines.h200_vm(tmp_path)
    assert warned(tmp_path) == {"host-nic-speed"}


def test_what_was_done_is_not_advised(tmp_path: Path) -> None:
    machines.veth_pod(tmp_path)
    assert "host-nic-speed" not in findings(tmp_path, **TUNED)
    assert "host-nic-speed" in findings(tmp_path, NCCL_MIN_NCHANNELS="4")


def test_a_veth_beside_rdma_starts_the_job_only(tmp_path: Path) -> None:
    machines.vf_pod(tmp_path)
    assert "host-nic-speed" not in findings(tmp_path)


@pytest.mark.parametrize(
    ("vendor", "speed", "is_said"),
    [
        ("0x1d0f", None, False),
        ("0x1ae0", None, False),
        ("0x15b3", 100000, False),
        ("0x8086", None, True),
    ],
)
def test_nics_that_tell_or_that_nccl_knows(
    tmp_path: Path, vendor: str, speed: int | None, is_said: bool
) -> None:
    machine = machines.veth_pod(tmp_path, gpus=1)
    machine.nic("eth0x", address="10.9.0.1/24")
    (tmp_path / "sys/class/net/eth0").unlink()
    (tmp_path / "sys/class/net/eth0x").unlink()
    device = machine.pci(("pci0000:00", "0000:00:05.0"), (vendor, "0x0001"), kind="0x020000")
    machine.nic("ens5", device=device, speed=speed, mtu=9001, address="10.0.0.5/20")
    assert ("host-nic-speed" in findings(tmp_path)) is is_said


@pytest.mark.parametrize(("mtu", "is_said"), [(1500, True), (4200, False), (9000, False)])
def test_small_packets_on_a_fast_nic(tmp_path: Path, mtu: int, is_said: bool) -> None:
    machines.roce(tmp_path, mtu=mtu)
    assert ("host-nic-mtu" in warned(tmp_path)) is is_said


def test_small_packets_on_a_slow_nic_or_beside_rdma_are_usual(tmp_path: Path) -> None:
    machine = machines.dgx(tmp_path, pairs=1)
    device = machine.pci(("pci0000:d0", "0000:d0:01.0"), machines.CX7, kind="0x020000")
    machine.nic("ens9", device=device, speed=100000, mtu=1500, address="10.7.0.1/24")
    assert warned(tmp_path) == set()


def test_mtus_that_differ(tmp_path: Path) -> None:
    machines.roce(tmp_path)
    (tmp_path / "sys/class/net/ens1np0/mtu").write_text("4200\n")
    found = findings(tmp_path)["host-nic-mtu-differs"]
    assert found.evidence == (
        "/sys/class/net/ens0np0/mtu: 9000",
        "/sys/class/net/ens1np0/mtu: 4200",
    )


def test_two_nics_in_one_subnet(tmp_path: Path) -> None:
    machine = machines.roce(tmp_path, pairs=1)
    machine.nic("ens7", speed=400000, mtu=9000, address="10.2.0.6/24")
    found = findings(tmp_path)["host-nics-one-subnet"]
    assert found.symptom == "ens0np0 and ens7 are in one subnet, 10.2.0.0/24"


def test_members_of_a_bond_share_its_subnet(tmp_path: Path) -> None:
    machine = machines.roce(tmp_path, pairs=1)
    machine.nic("ens7", speed=400000, mtu=9000, address="10.2.0.6/24")
    machine.link("/sys/class/net/ens7/master", "/sys/devices/virtual/net/bond0")
    assert "host-nics-one-subnet" not in findings(tmp_path)


@pytest.mark.parametrize(
    ("counters", "is_said"),
    [
        ({"rx_dropped": 1_000_000}, True),
        ({"rx_crc_errors": 500_000}, True),
        ({"rx_dropped": 100_000}, False),
        ({"rx_dropped": 50, "rx_packets": 100, "tx_packets": 0}, False),
    ],
)
def test_dropped_packets(tmp_path: Path, counters: dict[str, int], is_said: bool) -> None:
    machine = Machine(tmp_path)
    machine.nic("eth0", speed=25000, mtu=9000, address="10.0.0.5/24", counters=counters)
    assert ("host-nic-drops" in warned(tmp_path)) is is_said
