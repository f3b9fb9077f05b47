"""Proves doctor/host/limits.py and software.py: each rule, and what must not fire."""

from pathlib import Path

import pytest
from tests.agent.hardware import machines
from tests.agent.hardware.machines import CX7, Machine, switch_path
from tests.doctor.host.judging import findings, warned

from broadgauge.specs.records.record import Severity

IPC_LOCK = f"{1 << 14:016x}"


def node(root: Path, *, gpus: int = 1, **base: object) -> Machine:
    machine = Machine(root)
    machine.base(**base)  # type: ignore[arg-type]
    machine.driver()
    for index in range(gpus):
        machine.gpu(switch_path(0x10 + 0x10 * index, 0), index)
    machine.hca("mlx5_0", machine.pci(switch_path(0x10, 1), CX7))
    return machine


@pytest.mark.parametrize(
    ("memlock", "capabilities", "is_said"),
    [
        (("65536", "65536"), "0", True),
        (("8388608", "unlimited"), "0", True),
        (("65536", "65536"), IPC_LOCK, False),
        (("unlimited", "unlimited"), "0", False),
        (("137438953472", "137438953472"), "0", False),
    ],
)
def test_memory_that_may_be_locked(
    tmp_path: Path, memlock: tuple[str, str], capabilities: str, is_said: bool
) -> None:
    node(tmp_path, memlock=memlock, capabilities=capabilities)
    found = findings(tmp_path)
    assert ("host-memlock" in found) is is_said
    if is_said and memlock[1] == "unlimited":
        assert "ulimit -l unlimited" in (found["host-memlock"].fix or "")


def test_without_rdma_memlock_does_not_matter(tmp_path: Path) -> None:
    machines.laptop(tmp_path)
    assert "host-memlock" not in findings(tmp_path)


def test_a_fix_for_a_pod(tmp_path: Path) -> None:
    node(tmp_path, memlock=("65536", "65536"))
    found = findings(tmp_path, KUBERNETES_SERVICE_HOST="10.0.0.1")["host-memlock"]
    assert "IPC_LOCK" in (found.fix or "")


@pytest.mark.parametrize(
    ("shm", "gpus", "severity"),
    [
        ("size=65536k", 1, Severity.WARNING),
        ("size=65536k", 0, Severity.INFO),
        ("size=66000k", 1, None),
        ("inode64", 1, None),
    ],
)
def test_shared_memory(tmp_path: Path, shm: str, gpus: int, severity: Severity | None) -> None:
    node(tmp_path, gpus=gpus, shm=shm)
    found = findings(tmp_path).get("host-shm")
    assert (None if found is None else found.severity) is severity


def test_no_shared_memory_at_all(tmp_path: Path) -> None:
    machine = node(tmp_path)
    machine.file("/proc/self/mountinfo", "24 1 0:22 / / rw - overlay overlay rw\n")
    assert findings(tmp_path)["host-shm"].symptom == "there is no /dev/shm"


@pytest.mark.parametrize(
    ("gpus", "cpus", "quota", "is_said"),
    [
        (2, 64, "400000 100000", True),
        (2, 64, "800000 100000", False),
        (2, 4, "max 100000", True),
        (2, 8, "max 100000", False),
        (0, 1, "50000 100000", False),
    ],
)
def test_cores_for_gpus(tmp_path: Path, gpus: int, cpus: int, quota: str, is_said: bool) -> None:
    machine = node(tmp_path, gpus=gpus, cpus=cpus)
    machine.file("/sys/fs/cgroup/cpu.max", f"{quota}\n")
    assert ("host-few-cores" in warned(tmp_path)) is is_said


@pytest.mark.parametrize(
    ("numa", "switch", "is_said"), [("0-1", "1", True), ("0", "1", False), ("0-1", "0", False)]
)
def test_numa_balancing(tmp_path: Path, numa: str, switch: str, is_said: bool) -> None:
    node(tmp_path, numa=numa).file("/proc/sys/kernel/numa_balancing", f"{switch}\n")
    assert ("host-numa-balancing" in findings(tmp_path)) is is_said


def test_several_versions_of_nccl(tmp_path: Path) -> None:
    machine = node(tmp_path)
    for folder, version in (("a", "2.21.5"), ("b", "2.28.9"), ("c", "2.28.9")):
        machine.file(f"/opt/{folder}/libnccl.so.2", f"NCCL version {version}+cuda12.4")
    assert "host-several-nccl" in findings(tmp_path, LD_LIBRARY_PATH="/opt/a:/opt/b")
    assert "host-several-nccl" not in findings(tmp_path, LD_LIBRARY_PATH="/opt/b:/opt/c")


@pytest.mark.parametrize(("has_plugin", "is_said"), [(False, True), (True, False)])
def test_efa_needs_its_plugin(tmp_path: Path, has_plugin: bool, is_said: bool) -> None:
    machine = Machine(tmp_path)
    machine.base()
    machine.driver()
    machine.gpu(switch_path(0x10, 0), 0)
    device = machine.pci(switch_path(0x10, 1), ("0x1d0f", "0xefa2"))
    machine.hca("rdmap16s27", device, driver="efa", rate="100 Gb/sec (4X EDR)", layer="Unspecified")
    if has_plugin:
        machine.libraries("libnccl-net.so")
    assert ("host-efa-no-plugin" in warned(tmp_path)) is is_said
