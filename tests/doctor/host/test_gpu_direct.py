"""Proves doctor/host/gpu_direct.py and pcie_links.py: each rule, and what must not fire."""

from pathlib import Path

import pytest
from tests.agent.hardware import machines
from tests.agent.hardware.machines import CLOSED_DRIVER, CX7, Machine, switch_path
from tests.doctor.host.judging import findings, warned

from broadgauge.specs.records.record import Severity


def node(root: Path, driver: str, *, kernel: str = "5.15.0", peermem: bool = False) -> Machine:
    """One GPU and one adapter below a switch."""
    machine = Machine(root)
    machine.base(kernel=kernel)
    machine.driver(driver, peermem=peermem)
    machine.gpu(switch_path(0x10, 0), 0)
    machine.hca("mlx5_0", machine.pci(switch_path(0x10, 1), CX7))
    return machine


@pytest.mark.parametrize(
    ("driver", "kernel", "peermem", "severity"),
    [
        (CLOSED_DRIVER, "5.15.0", False, Severity.WARNING),
        (machines.OPEN_DRIVER, "5.4.0-150-generic", False, Severity.WARNING),
        (machines.OPEN_DRIVER, "unknown", False, Severity.INFO),
        (machines.OPEN_DRIVER, "5.15.0", False, None),
        (CLOSED_DRIVER, "5.15.0", True, None),
    ],
)
def test_gpudirect_needs_peermem_or_dma_buf(
    tmp_path: Path, driver: str, kernel: str, peermem: bool, severity: Severity | None
) -> None:
    node(tmp_path, driver, kernel=kernel, peermem=peermem)
    found = findings(tmp_path).get("host-no-gpudirect")
    assert (None if found is None else found.severity) is severity


@pytest.mark.parametrize(
    ("version", "has_ofed", "is_said"),
    [
        ("2.21.5", False, True),
        ("2.22.3", False, True),
        ("2.23.4", False, False),
        ("2.21.5", True, False),
    ],
)
def test_old_nccl_looks_elsewhere_for_peermem(
    tmp_path: Path, version: str, has_ofed: bool, is_said: bool
) -> None:
    machine = node(tmp_path, CLOSED_DRIVER, peermem=True)
    machine.file(f"/usr/lib64/libnccl.so.{version}", "")
    (tmp_path / "usr/lib64/libnccl.so.2").symlink_to(f"libnccl.so.{version}")
    if has_ofed:
        machine.file("/sys/kernel/mm/memory_peers/nv_mem/version", "2.0\n")
    assert ("host-peermem-unseen" in warned(tmp_path)) is is_said


@pytest.mark.parametrize(
    ("path", "numa", "rule"),
    [
        (switch_path(0x90, 1), 1, "host-gpu-nic-far"),
        (switch_path(0x90, 1), 0, "host-gpu-nic-behind-cpu"),
        (("pci0000:10", "0000:10:03.0", "0000:15:00.0"), 0, "host-gpu-nic-behind-cpu"),
        (switch_path(0x10, 1), 0, None),
        (switch_path(0x90, 1), -1, None),
    ],
)
def test_far_adapters(tmp_path: Path, path: tuple[str, ...], numa: int, rule: str | None) -> None:
    machine = Machine(tmp_path)
    machine.base()
    machine.driver()
    machine.gpu(switch_path(0x10, 0), 0)
    machine.hca("mlx5_0", machine.pci(path, CX7, numa=numa))
    found = findings(tmp_path)
    assert set(found) == ({rule} if rule else set())
    if rule == "host-gpu-nic-far":
        assert found[rule].severity is Severity.WARNING
        assert found[rule].evidence[1] == "0000:13:00.0 to mlx5_0: SYS"


def test_two_switches_below_one_port_are_near_enough(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.base()
    machine.driver()
    machine.gpu(switch_path(0x10, 0), 0)
    below = (*switch_path(0x10, 1)[:-1], "0000:20:00.0", "0000:21:00.0", "0000:22:00.0")
    machine.hca("mlx5_0", machine.pci(below, CX7))
    assert findings(tmp_path) == {}


@pytest.mark.parametrize(("control", "rules"), [(0x1D, {"host-acs"}), (0x00, set()), (None, set())])
def test_access_control(tmp_path: Path, control: int | None, rules: set[str]) -> None:
    machine = machines.dgx(tmp_path, pairs=1)
    machine.acs("0000:12:00.0", control)
    machine.acs("0000:12:01.0", 0)
    assert warned(tmp_path) == rules


@pytest.mark.parametrize(
    ("kind", "rules"),
    [("DMA-FQ", {"host-iommu"}), ("DMA", {"host-iommu"}), ("identity", set()), (None, set())],
)
def test_translated_addresses(tmp_path: Path, kind: str | None, rules: set[str]) -> None:
    machine = Machine(tmp_path)
    machine.base()
    machine.driver()
    machine.gpu(switch_path(0x10, 0), 0, iommu=kind)
    machine.hca("mlx5_0", machine.pci(switch_path(0x10, 1), CX7))
    assert warned(tmp_path) == rules


def trained(root: Path, *, gpu: tuple[str, int], nic: tuple[str, int], is_vm: bool = False) -> None:
    machine = Machine(root)
    machine.base(is_vm=is_vm)
    machine.driver()
    machine.gpu(switch_path(0x10, 0), 0, link=(gpu[0], "32.0 GT/s PCIe"), width=(gpu[1], 16))
    device = machine.pci(
        switch_path(0x10, 1), CX7, link=(nic[0], "32.0 GT/s PCIe"), width=(nic[1], 16)
    )
    machine.hca("mlx5_0", device)


FULL = ("32.0 GT/s PCIe", 16)


@pytest.mark.parametrize(
    ("gpu", "nic", "rule", "severity"),
    [
        (FULL, ("16.0 GT/s PCIe", 16), "host-pcie-speed", Severity.WARNING),
        (FULL, ("32.0 GT/s PCIe", 8), "host-pcie-width", Severity.WARNING),
        (("2.5 GT/s PCIe", 16), FULL, "host-pcie-speed", Severity.INFO),
        (("32.0 GT/s PCIe", 4), FULL, "host-pcie-width", Severity.WARNING),
        (FULL, ("Unknown", 0), None, None),
    ],
)
def test_links_trained_below_their_maximum(
    tmp_path: Path,
    gpu: tuple[str, int],
    nic: tuple[str, int],
    rule: str | None,
    severity: Severity | None,
) -> None:
    trained(tmp_path, gpu=gpu, nic=nic)
    found = findings(tmp_path)
    assert {name: each.severity for name, each in found.items()} == (
        {rule: severity} if rule else {}
    )


def test_a_link_in_a_vm_is_its_hypervisors_word(tmp_path: Path) -> None:
    trained(tmp_path, gpu=FULL, nic=("16.0 GT/s PCIe", 8), is_vm=True)
    assert warned(tmp_path) == set()
