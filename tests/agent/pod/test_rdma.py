"""Proves agent/pod/rdma_ready.py and resolve.py: RDMA that was asked for and isn't there is
refused, by what is missing."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.agent.hardware import machines
from tests.agent.hardware.machines import CX7, Machine
from tests.agent.pod import pods
from tests.agent.pod.pods import VF, asked, found, vfs, why

from broadgauge.agent.pod.rdma_plugins import LIBFABRIC
from broadgauge.agent.pod.resolve import BY_VERBS
from broadgauge.platforms.meant_transport import NO_GPUDIRECT


def test_infiniband_has_no_gid_index_and_finds_the_others_by_the_pod_network(
    tmp_path: Path,
) -> None:
    pods.ib_pod(tmp_path)
    infos = [pods.device_info(f"0000:{0x14 + 0x10 * n:02x}:00.0") for n in range(2)]
    entries = [{"name": f"default/ib-{n}", "dns": {}, **info} for n, info in enumerate(infos)]
    wanted = asked("infiniband", "default/ib-0", "default/ib-1")
    resolved = found(tmp_path, wanted, pods.status(*entries))
    assert resolved.problems == ()
    assert resolved.variables == {
        "NCCL_SOCKET_IFNAME": "=eth0",
        "GLOO_SOCKET_IFNAME": "eth0",
        "NCCL_NET": "IB",
        "NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1",
    }
    assert "the network's NICs have no IP address" in why(resolved, "NCCL_SOCKET_IFNAME")
    assert [pair.adapter for pair in resolved.pairs] == ["mlx5_0:1", "mlx5_1:1"]


def test_infiniband_of_a_device_plugin_without_an_attachment(tmp_path: Path) -> None:
    """The pod network is the only one, and the container was given the ports' files."""
    pods.ib_pod(tmp_path)
    wanted = asked("infiniband", num_nics=2)
    resolved = found(tmp_path, wanted)
    assert resolved.problems == ()
    assert resolved.variables == {
        "NCCL_SOCKET_IFNAME": "=eth0",
        "GLOO_SOCKET_IFNAME": "eth0",
        "NCCL_NET": "IB",
        "NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1",
    }
    one = found(tmp_path, asked("infiniband"))
    assert one.adapters == ("mlx5_0:1",)
    assert one.notes == ("as many ports as NICs are asked for are used; left out: mlx5_1:1",)
    many = found(tmp_path, asked("infiniband", num_nics=4))
    assert many.problems == (
        "`infiniband` is asked for, by 4 adapters, and this container was given 2 active ports of "
        "InfiniBand: mlx5_0:1, mlx5_1:1; adapters here: mlx5_0:1 InfiniBand ACTIVE, mlx5_1:1 "
        "InfiniBand ACTIVE",
    )


def test_ports_of_which_the_container_has_no_file_are_not_taken(tmp_path: Path) -> None:
    machine = pods.ib_pod(tmp_path)
    machine.hca_files()[0].parent.joinpath("uverbs0").unlink()
    resolved = found(tmp_path, asked("infiniband"))
    assert resolved.adapters == ("mlx5_1:1",)
    machine.hca_files()[0].unlink()
    (problem, *_) = found(tmp_path, asked("infiniband")).problems
    assert "was given 0 active ports of InfiniBand: none" in problem


def test_the_ports_nearest_to_the_gpus_are_taken(tmp_path: Path) -> None:
    machine = machines.dgx(tmp_path)
    for index in range(8):
        pods.verbs_file(machine, f"mlx5_{index}", index)
    for index in range(8):
        if index not in (2, 5):
            (tmp_path / f"dev/nvidia{index}").unlink()
    wanted = asked("infiniband", num_nics=2)
    resolved = found(tmp_path, wanted)
    assert resolved.adapters == ("mlx5_2:1", "mlx5_5:1")
    assert {pair.distance for pair in resolved.pairs} == {"PIX"}


def test_efa_devices_are_no_interfaces(tmp_path: Path) -> None:
    machine = pods.pod(tmp_path)
    device = machine.pci(machines.switch_path(0x40, 1), ("0x1d0f", "0xefa1"), kind="0x020000")
    machine.hca("rdmap0", device, driver="efa", layer="Unspecified")
    assert found(tmp_path, asked("efa", num_nics=4)).problems == ()


def test_rdma_device_of_the_status(tmp_path: Path) -> None:
    pods.ib_pod(tmp_path)
    own = pods.device_info("0000:99:00.0", **{"rdma-device": "mlx5_1"})
    annotations = pods.status({"name": "default/ib", "dns": {}, **own})
    resolved = found(tmp_path, asked("infiniband", "default/ib"), annotations)
    assert resolved.adapters == ("mlx5_1:1",)


Change = Callable[[Machine, Path], None]


def port_down(machine: Machine, root: Path) -> None:
    (root / "sys/class/infiniband/mlx5_10/ports/1/state").write_text("1: DOWN\n")


def no_address_in_table(machine: Machine, root: Path) -> None:
    gids = root / "sys/class/infiniband/mlx5_10/ports/1/gids"
    for index in (2, 3):
        (gids / str(index)).write_text(f"{machines.NO_GID}\n")


def no_device_file(machine: Machine, root: Path) -> None:
    for file in machine.hca_files():
        file.unlink()


def no_device_file_nor_class(machine: Machine, root: Path) -> None:
    no_device_file(machine, root)
    (root / "sys/class/infiniband_verbs/uverbs0/ibdev").unlink()


def small_memlock(machine: Machine, root: Path) -> None:
    machine.base(kernel="5.14.0-427", memlock=("8388608", "8388608"))


def interface_down(machine: Machine, root: Path) -> None:
    (root / "sys/class/net/net1/operstate").write_text("down\n")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (port_down, "mlx5_10:1 is DOWN"),
        (
            no_address_in_table,
            "no GID of RoCE v2 with the NIC's address (10.1.0.5): its table has 0 IB/RoCE v1 IPv6,",
        ),
        (no_device_file, "mlx5_10: /dev/infiniband/uverbs0 is not in this container"),
        (no_device_file_nor_class, "no file /dev/infiniband/uverbs* opens"),
        (small_memlock, "may lock 8 MiB of memory, too little for RDMA"),
        (interface_down, "net1 is down"),
    ],
)
def test_rdma_that_is_not_there_is_refused(tmp_path: Path, change: Change, says: str) -> None:
    machine = pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    assert found(tmp_path, asked("roce", VF), vfs(1)).problems == ()
    change(machine, tmp_path)
    problems = found(tmp_path, asked("roce", VF), vfs(1)).problems
    assert len(problems) == 1
    assert says in problems[0]


def test_a_library_that_was_not_found_is_said_and_stops_nothing(tmp_path: Path) -> None:
    """The loader may know it elsewhere."""
    machine = pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    (tmp_path / "usr/lib/x86_64-linux-gnu/libibverbs.so.1").unlink()
    resolved = found(tmp_path, asked("roce", VF), vfs(1))
    assert resolved.problems == ()
    assert resolved.notes[0].startswith("libibverbs.so.1 was not found in this image")
    machine.file("/etc/ld.so.cache", b"\0libibverbs.so.1\0/opt/x/libibverbs.so.1\0")
    assert found(tmp_path, asked("roce", VF), vfs(1)).notes == ()


def test_memory_that_is_too_small_is_said_with_what_helps(tmp_path: Path) -> None:
    """IPC_LOCK alone would not: another user's process than root's does not get it."""
    machine = pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    small_memlock(machine, tmp_path)
    (problem,) = found(tmp_path, asked("roce", VF), vfs(1)).problems
    assert "CRI-O's `default_ulimits` by a MachineConfig" in problem
    assert "`kubernetes.run_as_user: 0`" in problem


def test_memory_that_may_be_locked_needs_no_limit(tmp_path: Path) -> None:
    machine = pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    machine.base(memlock=("65536", "65536"), capabilities="0000000000004000")
    assert found(tmp_path, asked("roce", VF), vfs(1)).problems == ()


@pytest.mark.parametrize("transport", BY_VERBS)
def test_rdma_of_a_pod_without_adapters_is_refused(tmp_path: Path, transport: str) -> None:
    pods.pod(tmp_path)
    layer = {"roce": "Ethernet", "infiniband": "InfiniBand"}[transport]
    assert found(tmp_path, asked(transport)).problems == (
        f"`{transport}` is asked for, by 1 adapters, and this container was given 0 active ports "
        f"of {layer}: none; no RDMA adapter is in this pod",
    )
    machine = pods.pod(tmp_path / "two")
    machine.nic("net1", is_pair=True, address="10.1.0.5/24")
    assert found(tmp_path / "two", asked(transport, VF), vfs(1)).problems == (
        f"`{transport}` is asked for, and no RDMA adapter belongs to net1 (10.1.0.5; the status "
        "of default/sriov-1 names it); no RDMA adapter is in this pod",
    )


def test_as_nccl_chooses_within_the_network(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24", "10.2.0.5/24"])
    resolved = found(tmp_path, asked(None, VF), vfs(1, 2))
    assert "NCCL_NET" not in resolved.variables
    assert resolved.variables["NCCL_IB_HCA"] == "=mlx5_10:1"


def test_as_nccl_chooses_where_the_adapter_can_not_be_used(tmp_path: Path) -> None:
    machine = pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    no_device_file(machine, tmp_path)
    resolved = found(tmp_path, asked(None, VF), vfs(1))
    assert resolved.problems == ()
    assert resolved.variables["NCCL_NET"] == "Socket"
    assert any("uverbs0 is not in this container" in note for note in resolved.notes)


@pytest.mark.parametrize(
    ("transport", "layer", "says"),
    [("infiniband", "Ethernet", "needs InfiniBand"), ("roce", "InfiniBand", "needs Ethernet")],
)
def test_the_other_kind_of_rdma_is_refused(
    tmp_path: Path, transport: str, layer: str, says: str
) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    (tmp_path / "sys/class/infiniband/mlx5_10/ports/1/link_layer").write_text(f"{layer}\n")
    problems = found(tmp_path, asked(transport, VF), vfs(1)).problems
    assert any(says in problem for problem in problems)


def test_efa_without_an_adapter_is_refused(tmp_path: Path) -> None:
    machine = pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    assert "driver efa" in found(tmp_path, asked("efa")).problems[0]
    device = machine.pci(machines.switch_path(0x40, 1), ("0x1d0f", "0xefa1"), kind="0x020000")
    machine.hca("rdmap0", device, driver="efa", layer="Unspecified")
    resolved = found(tmp_path, asked("efa", gpudirect=False))
    assert resolved.problems == ()
    assert resolved.variables["NCCL_NET_GDR_LEVEL"] == "LOC"
    assert "NCCL_IB_HCA" not in resolved.variables
    assert any("libnccl-net" in note for note in resolved.notes)


def efa_pod(root: Path) -> Machine:
    """With one adapter."""
    machine = pods.pod(root)
    device = machine.pci(machines.switch_path(0x40, 1), ("0x1d0f", "0xefa1"), kind="0x020000")
    machine.hca("rdmap0", device, driver="efa", layer="Unspecified")
    pods.verbs_file(machine, "rdmap0", 0)
    return machine


def test_efa_whose_file_does_not_open_is_refused(tmp_path: Path) -> None:
    machine = efa_pod(tmp_path)
    assert found(tmp_path, asked("efa")).problems == ()
    no_device_file(machine, tmp_path)
    assert found(tmp_path, asked("efa")).problems == (
        "`efa` is asked for, and this container can open none of its adapters (rdmap0: "
        "/dev/infiniband/uverbs0 is not in this container): ask for `vpc.amazonaws.com/efa` in the "
        "pod's limits",
    )
    (tmp_path / "sys/class/infiniband_verbs/uverbs0/ibdev").unlink()
    (problem,) = found(tmp_path, asked("efa")).problems
    assert "no /dev/infiniband/uverbs* opens" in problem


def test_efa_can_not_become_sockets_without_a_word(tmp_path: Path) -> None:
    """By the name of its plugin's network, if the user names neither network nor plugin."""
    efa_pod(tmp_path)
    held = found(tmp_path, asked("efa"))
    assert held.variables["NCCL_NET"] == LIBFABRIC
    assert held.notes == (
        "no libnccl-net*.so was found on the library path: if none is there, NCCL fails",
    )
    same = found(tmp_path, asked("efa"), NCCL_NET_PLUGIN="libnccl-net-ofi.so")
    assert same.variables["NCCL_NET"] == LIBFABRIC
    other = found(tmp_path, asked("efa"), NCCL_NET_PLUGIN="uccl")
    assert "NCCL_NET" not in other.variables
    assert "only its log can prove that it was `efa`" in other.notes[-1]
    sockets = found(tmp_path, asked("efa"), NCCL_NET="Socket")
    assert "NCCL_NET" not in sockets.variables
    assert sockets.notes[0] == "NCCL_NET=Socket is kept, though `efa` is asked for"


@pytest.mark.parametrize(
    ("transport", "says"),
    [
        ("slingshot", "`slingshot` is asked for, and no file /dev/cxi* is in this container"),
        ("omnipath", "`omnipath` is asked for, and no adapter has the driver hfi1; no RDMA adapt"),
        ("tcpx", None),
    ],
)
def test_what_of_other_fabrics_is_surely_missing_is_refused(
    tmp_path: Path, transport: str, says: str | None
) -> None:
    machine = pods.pod(tmp_path)
    empty = found(tmp_path, asked(transport))
    assert [problem[: len(says or "")] for problem in empty.problems] == ([says] if says else [])
    machine.file("/dev/cxi0", "")
    machine.hca("hfi1_0", machine.pci(machines.switch_path(0x40, 1), CX7), driver="hfi1")
    resolved = found(tmp_path, asked(transport))
    assert resolved.problems == ()
    is_known = transport == "slingshot"
    assert resolved.variables.get("NCCL_NET") == (LIBFABRIC if is_known else None)
    assert any("only its log can prove" in note for note in resolved.notes) is not is_known


def test_a_driver_that_cant_be_seen_is_said(tmp_path: Path) -> None:
    machine = pods.pod(tmp_path)
    device = machine.pci(machines.switch_path(0x40, 1), CX7)
    machine.hca("opa0", device, driver="hfi1")
    (tmp_path / device.lstrip("/") / "driver").unlink()
    resolved = found(tmp_path, asked("omnipath"))
    assert resolved.problems == ()
    assert "whether an adapter has the driver hfi1 can't be seen here" in resolved.notes


def test_efa_that_is_here_and_was_not_asked_for_is_said(tmp_path: Path) -> None:
    efa_pod(tmp_path)
    resolved = found(tmp_path, asked(None))
    assert resolved.variables["NCCL_NET"] == "Socket"
    assert resolved.notes == ("EFA is here and not used (rdmap0): `transport: efa` asks for it",)
    assert found(tmp_path, asked("tcp")).notes == ()


def test_gpudirect_without_module_and_dma_buf_is_refused(tmp_path: Path) -> None:
    machine = pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    wanted = asked("roce", VF, gpudirect=True)
    assert found(tmp_path, wanted, vfs(1)).problems == ()
    (tmp_path / "sys/module/nvidia_peermem/version").unlink()
    (tmp_path / "sys/module/nvidia_peermem").rmdir()
    assert found(tmp_path, wanted, vfs(1)).problems == ()  # open modules on Linux 5.14: DMA-BUF
    machine.driver(machines.CLOSED_DRIVER, peermem=False)
    (problem,) = found(tmp_path, wanted, vfs(1)).problems
    assert "neither nvidia-peermem nor DMA-BUF" in problem


def test_twin_without_gpudirect(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    resolved = found(tmp_path, asked("roce", VF, gpudirect=False), vfs(1))
    assert resolved.problems == ()
    assert {n: resolved.variables[n] for n in NO_GPUDIRECT} == NO_GPUDIRECT
