"""Proves agent/hardware/: what is read of a machine, and what is unknown."""

import dataclasses
import json
import os
from pathlib import Path

import pytest
from tests.agent.hardware import machines
from tests.agent.hardware.machines import Machine

from broadgauge.agent.hardware.reading import read_machine_hardware
from broadgauge.messages.codec import decode, encode
from broadgauge.messages.hardware import HardwareFacts

BUILDERS = (
    *(machines.dgx, machines.roce, machines.vf_pod, machines.veth_pod),
    *(machines.h200_vm, machines.virtio_vm, machines.laptop),
)


def read(root: Path, **environ: str) -> HardwareFacts:
    return read_machine_hardware(root, environ)


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_facts_pass_through_json(tmp_path: Path, build: object) -> None:
    assert callable(build)
    build(tmp_path)
    facts = read(tmp_path, NCCL_DEBUG="INFO")
    assert decode(HardwareFacts, json.loads(json.dumps(encode(facts)))) == facts


def test_a_machine_without_files_is_unknown(tmp_path: Path) -> None:
    facts = read(tmp_path)
    assert (facts.nics, facts.hcas, facts.gpus, facts.nccl) == ((), (), (), ())
    assert facts.gpu_driver is None
    assert facts.limits.has_shm is None
    assert not facts.limits.is_memlock_known
    unknown = dataclasses.replace(facts.machine, iommu_words=())
    assert {getattr(unknown, field.name) for field in dataclasses.fields(unknown)} == {None, ()}


def test_a_node_of_eight_gpus(tmp_path: Path) -> None:
    machines.dgx(tmp_path)
    facts = read(tmp_path)
    assert [gpu.model for gpu in facts.gpus] == ["NVIDIA H100 80GB HBM3"] * 8
    assert [gpu.minor for gpu in facts.gpus] == list(range(8))
    assert {(p.link_mt_per_s, p.link_width) for p in (g.pci for g in facts.gpus)} == {(32000, 16)}
    assert [hca.ports[0].rate_gbps for hca in facts.hcas] == [400.0] * 8
    assert facts.hcas[0].ports[0].state == "ACTIVE"
    assert facts.hcas[0].ports[0].link_layer == "InfiniBand"
    assert facts.hcas[0].pci is not None
    assert facts.hcas[0].pci.vendor == "0x15b3"
    assert facts.gpu_driver is not None
    assert (facts.gpu_driver.version, facts.gpu_driver.is_open) == ("570.124.06", True)
    assert facts.gpu_driver.peer_memory == "nvidia_peermem"
    assert facts.machine.iommu_words == ("iommu=pt",)
    assert facts.machine.numa_nodes == 2
    assert facts.limits.is_memlock_known
    assert facts.limits.memlock_soft_bytes is None


def test_distances_are_named_as_nvidia_smi_names_them(tmp_path: Path) -> None:
    machines.dgx(tmp_path)
    facts = read(tmp_path)
    first = {each.device: each.distance for each in facts.distances if each.gpu == "0000:13:00.0"}
    assert first["mlx5_0"] == "PIX"
    assert {first[f"mlx5_{index}"] for index in (1, 2, 3)} == {"NODE"}
    assert {first[f"mlx5_{index}"] for index in (4, 5, 6, 7)} == {"SYS"}
    assert first["eno1"] == "NODE"


def test_a_virtual_function_in_a_pod(tmp_path: Path) -> None:
    machines.vf_pod(tmp_path)
    facts = read(tmp_path)
    by_name = {nic.name: nic for nic in facts.nics}
    assert (by_name["eth0"].kind, by_name["net1"].kind) == ("veth", "vf")
    assert by_name["eth0"].has_default_route
    assert by_name["net1"].addresses == ("192.168.5.7/24",)
    assert by_name["net1"].driver == "mlx5_core"
    assert facts.hcas[0].is_virtual_function is True
    assert facts.hcas[0].interfaces == ("net1",)
    assert facts.hcas[0].ports[0].roce_v2_ipv4_index == 3
    assert facts.hcas[0].pci is not None
    assert facts.hcas[0].pci.link_width is None
    assert facts.machine.container == "kubernetes"
    assert facts.limits.shm_size_bytes == 64 * 2**20
    assert facts.limits.memlock_soft_bytes == 8 * 2**20


def test_a_virtio_nic_has_no_speed(tmp_path: Path) -> None:
    machines.virtio_vm(tmp_path)
    (nic,) = read(tmp_path).nics
    assert (nic.kind, nic.speed_mbps, nic.vendor) == ("virtio", None, "0x1af4")
    assert nic.pci is not None
    assert nic.pci.numa_node is None


@pytest.mark.parametrize(
    ("devtype", "name", "kind"),
    [
        *(
            ("bridge", "br0", "bridge"),
            ("bond", "bond0", "bond"),
            ("vxlan", "vxlan.calico", "vxlan"),
        ),
        *(("geneve", "genev_sys", "geneve"), ("macvlan", "net1", "macvlan")),
        *(
            ("ipvlan", "net1", "ipvlan"),
            (None, "cali0123", "veth"),
            (None, "nodelocaldns", "virtual"),
        ),
    ],
)
def test_kinds_of_virtual_interfaces(
    tmp_path: Path, devtype: str | None, name: str, kind: str
) -> None:
    Machine(tmp_path).nic(name, devtype=devtype)
    assert [nic.kind for nic in read(tmp_path).nics] == [kind]


def test_the_loopback_is_no_nic(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.nic("lo", kind=772)
    machine.file("/sys/class/net/bonding_masters", "bond0\n")
    machine.nic("ib0", kind=32)
    assert [(nic.name, nic.kind) for nic in read(tmp_path).nics] == [("ib0", "ipoib")]


def test_a_gpu_of_another_container_is_not_usable(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.gpu(machines.switch_path(0x10, 0), 0)
    machine.gpu(machines.switch_path(0x20, 0), 1, is_usable=False)
    assert [gpu.is_usable for gpu in read(tmp_path).gpus] == [True, False]


@pytest.mark.parametrize(("control", "is_on"), [(0x1D, True), (0x00, False), (0x01, False)])
def test_access_control_needs_the_whole_configuration(
    tmp_path: Path, control: int, is_on: bool
) -> None:
    machine = machines.dgx(tmp_path, pairs=1)
    bridges = ("0000:12:00.0", "0000:12:01.0")
    assert read(tmp_path).distances[0].acs_bridges is None
    machine.acs(bridges[0], control)
    assert read(tmp_path).distances[0].acs_bridges is None
    machine.acs(bridges[1], 0)
    assert read(tmp_path).distances[0].acs_bridges == ((bridges[0],) if is_on else ())
    machine.acs(bridges[1], None)
    assert read(tmp_path).distances[0].acs_bridges is None


@pytest.mark.parametrize(
    ("files", "millicores", "memory_bytes"),
    [
        ({"cpu.max": "250000 100000", "memory.max": "1073741824"}, 2500, 2**30),
        ({"cpu.max": "max 100000", "memory.max": "max"}, None, None),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None, None),
        ({"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}, 4000, None),
        ({"memory/memory.limit_in_bytes": "9223372036854771712"}, None, None),
        ({"memory/memory.limit_in_bytes": "536870912"}, None, 2**29),
    ],
)
def test_limits_of_a_container(
    tmp_path: Path, files: dict[str, str], millicores: int | None, memory_bytes: int | None
) -> None:
    Machine(tmp_path).files("/sys/fs/cgroup", dict(files))
    limits = read(tmp_path).limits
    assert (limits.cpu_limit_millicores, limits.memory_limit_bytes) == (millicores, memory_bytes)


def test_the_tightest_group_above_counts(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.file("/proc/self/cgroup", "0::/system.slice/job.scope\n")
    machine.files("/sys/fs/cgroup/system.slice", {"cpu.max": "800000 100000"})
    machine.files("/sys/fs/cgroup/system.slice/job.scope", {"cpu.max": "max 100000"})
    assert read(tmp_path).limits.cpu_limit_millicores == 8000


def test_nccl_is_found_and_not_loaded(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.file("/opt/a/libnccl.so.2", b"\x7fELF" + b"\0" * 99 + b"NCCL version 2.21.5+cuda12.4\n")
    machine.file("/usr/lib/x86_64-linux-gnu/libnccl.so.2.28.9", "")
    (tmp_path / "usr/lib/x86_64-linux-gnu/libnccl.so.2").symlink_to("libnccl.so.2.28.9")
    machine.file("/usr/lib64/libnccl.so.2", "no version")
    facts = read(tmp_path, LD_LIBRARY_PATH="/opt/a:relative:/opt/b")
    told = [(each.path, each.version) for each in facts.nccl]
    assert told == [
        ("/opt/a/libnccl.so.2", "2.21.5"),
        ("/usr/lib/x86_64-linux-gnu/libnccl.so.2", "2.28.9"),
        ("/usr/lib64/libnccl.so.2", None),
    ]
    assert facts.nccl_version == "2.21.5"


def test_plugins_on_the_library_path(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.file("/opt/ofi/lib/libnccl-net-ofi.so", "")
    machine.file("/opt/ofi/lib/libnccl-tuner-ofi.so", "")
    facts = read(tmp_path, LD_LIBRARY_PATH="/opt/ofi/lib")
    assert [each.name for each in facts.network_plugins] == ["libnccl-net-ofi.so"]


def test_variables_count_in_the_order_in_which_nccl_reads_them(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.file("/etc/nccl.conf", "# site\nNCCL_DEBUG=WARN\nNCCL_IB_TC=106\nno variable\n")
    machine.file("/home/me/.nccl.conf", "NCCL_SOCKET_IFNAME==ens1\nNCCL_DEBUG=INFO\n")
    facts = read(tmp_path, HOME="/home/me", NCCL_IB_TC="41", PATH="/bin")
    assert facts.effective_variables() == {
        "NCCL_IB_TC": "41",
        "NCCL_SOCKET_IFNAME": "=ens1",
        "NCCL_DEBUG": "INFO",
    }
    assert [each.place for each in facts.variables if each.name == "NCCL_DEBUG"] == [
        "/home/me/.nccl.conf:2",
        "/etc/nccl.conf:2",
    ]


def test_device_files_that_do_not_open(tmp_path: Path) -> None:
    machine = machines.dgx(tmp_path, pairs=1)
    machine.file("/dev/infiniband/uverbs1/inside", "")
    rdma = read(tmp_path).rdma
    assert rdma.device_files == ("/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1")
    assert rdma.refused_files == {"/dev/infiniband/uverbs1": os.strerror(21)}


@pytest.mark.parametrize(
    ("path", "text", "environ", "container"),
    [
        ("/.dockerenv", "", {}, "docker"),
        ("/run/.containerenv", "", {}, "podman"),
        ("/proc/self/cgroup", "0::/kubepods.slice/pod1\n", {}, "kubernetes"),
        ("/proc/self/cgroup", "12:memory:/docker/0123\n", {}, "docker"),
        ("/proc/self/cgroup", "0::/\n", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ("/proc/self/cgroup", "0::/\n", {"container": "lxc"}, "container"),
        (
            "/proc/self/mountinfo",
            "9 1 0:22 / / rw,relatime - overlay overlay rw\n",
            {},
            "container",
        ),
        ("/proc/self/mountinfo", "9 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n", {}, None),
    ],
)
def test_signs_of_a_container(
    tmp_path: Path, path: str, text: str, environ: dict[str, str], container: str | None
) -> None:
    Machine(tmp_path).file(path, text)
    assert read(tmp_path, **environ).machine.container == container


def test_this_machine() -> None:
    facts = read_machine_hardware(Path("/"), os.environ)
    names = {path.name for path in Path("/sys/class/net").iterdir()}
    assert {nic.name for nic in facts.nics} <= names - {"lo"}
    assert facts.machine.user_id == os.getuid()
    assert facts.limits.cpus_allowed == len(os.sched_getaffinity(0))
    assert decode(HardwareFacts, json.loads(json.dumps(encode(facts)))) == facts


@pytest.mark.skipif(os.geteuid() != 0, reason="runs as an ordinary user already")
def test_this_machine_as_an_ordinary_user() -> None:
    """In a child of its own, since the user is given up for good."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            facts = read_machine_hardware(Path("/"), {})
            os.write(writing, str(facts.machine.user_id).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    assert (os.waitstatus_to_exitcode(status), told) == (0, "65534")
