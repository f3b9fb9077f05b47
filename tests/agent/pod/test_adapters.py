"""Proves agent/pod/adapters.py on trees as sysfs has them: the adapters of a network's interfaces,
and no others'."""

import shutil
from pathlib import Path

import pytest
from tests.agent.hardware.machines import CX6_VF, CX7, LINK_GID, switch_path
from tests.agent.pod import pods
from tests.agent.pod.pods import VF, asked, found, mapped, vfs, why

IPV6 = "2001:0db8:0000:0000:0000:0000:0000:0005"


def second_port(root: Path, hca: str) -> Path:
    """Like the first, with an empty table."""
    folder = root / f"sys/class/infiniband/{hca}/ports"
    shutil.copytree(folder / "1", folder / "2")
    for file in (folder / "2/gids").iterdir():
        file.write_text(f"{'0000:' * 7}0000\n")
    return folder / "2"


def test_a_nic_without_an_address_is_told_by_its_device(tmp_path: Path) -> None:
    """InfiniBand's: ranks then find each other on the pod network."""
    machine = pods.pod(tmp_path)
    for number in (0, 1):
        device = machine.pci(switch_path(0x10 + 0x10 * number, 1), CX6_VF)
        machine.nic(f"net{number}", device=device, kind=32)
        machine.hca(f"mlx5_{number}", device)
        pods.verbs_file(machine, f"mlx5_{number}", number)
    resolved = found(tmp_path, asked("infiniband", VF), vfs(1))
    assert resolved.problems == ()
    assert resolved.variables["NCCL_IB_HCA"] == "=mlx5_1:1"
    assert resolved.variables["NCCL_SOCKET_IFNAME"] == "=eth0"
    assert "both are PCI device 0000:24:00.0" in why(resolved, "NCCL_IB_HCA")


def test_a_macvlan_is_told_from_other_pods_of_the_same_name(tmp_path: Path) -> None:
    """Their tables name the interface, too; only the address tells."""
    machine = pods.pod(tmp_path)
    machine.nic("net1", devtype="macvlan", address="192.168.2.5/24", is_pair=True)
    for number, addresses in enumerate((["192.168.2.9"], ["192.168.2.7", "192.168.2.5"])):
        device = machine.pci(switch_path(0x10 + 0x10 * number, 1), CX7, kind="0x020000")
        gids = pods.table(2, *addresses)
        machine.hca(f"mlx5_{number}", device, layer="Ethernet", gids=gids)
        pods.verbs_file(machine, f"mlx5_{number}", number)
        for index, _, _ in gids:
            ports = f"/sys/class/infiniband/mlx5_{number}/ports/1"
            machine.file(f"{ports}/gid_attrs/ndevs/{index}", "net1\n")
    resolved = found(tmp_path, asked("roce", VF), vfs(1))
    assert resolved.adapters == ("mlx5_1:1",)
    assert resolved.variables["NCCL_IB_GID_INDEX"] == "5"


@pytest.mark.parametrize("address", ["10.1.0.5", None])
def test_of_two_ports_the_one_that_is_the_interfaces(tmp_path: Path, address: str | None) -> None:
    """By the address in its table, else by the interface that the table names."""
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    port = second_port(tmp_path, "mlx5_10")
    first = port.parent / "1"
    for index in (2, 3):
        (first / f"gids/{index}").write_text(f"{mapped('10.9.0.9')}\n")
        (port / f"gids/{index + 2}").write_text(f"{mapped(address or '10.8.0.8')}\n")
    (port / "gid_attrs/types/5").write_text("RoCE v2\n")
    (port / "gid_attrs/ndevs").mkdir()
    (port / "gid_attrs/ndevs/4").write_text("net1\n")
    resolved = found(tmp_path, asked("roce", VF), vfs(1))
    if address is None:
        (problem,) = resolved.problems
        assert problem.startswith("mlx5_10:2 has no GID of RoCE v2 with the NIC's address")
    else:
        assert resolved.adapters == ("mlx5_10:2",)
        assert resolved.variables["NCCL_IB_HCA"] == "=mlx5_10:2"
        assert resolved.variables["NCCL_IB_GID_INDEX"] == "5"


def test_a_second_port_that_is_down_is_no_matter(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    (second_port(tmp_path, "mlx5_10") / "state").write_text("1: DOWN\n")
    assert found(tmp_path, asked("roce", VF), vfs(1)).adapters == ("mlx5_10:1",)


@pytest.mark.parametrize(
    ("rows", "index"),
    [
        ([(0, LINK_GID, "IB/RoCE v1"), (1, LINK_GID, "RoCE v2"),
          (2, mapped("10.1.0.5"), "RoCE v2")], 2),
        ([(0, mapped("10.1.0.5"), "RoCE v2"), (1, mapped("10.1.0.5"), "IB/RoCE v1")], 0),
        ([(0, IPV6, "IB/RoCE v1"), (1, IPV6, "RoCE v2"), (6, mapped("10.1.0.9"), "RoCE v2"),
          (9, mapped("10.1.0.5"), "IB/RoCE v1"), (10, mapped("10.1.0.5"), "RoCE v2")], 10),
        ([(0, LINK_GID, "RoCE v2"), (1, IPV6, "RoCE v2")], None),
        ([(0, LINK_GID, "IB/RoCE v1"), (2, mapped("10.1.0.5"), "IB/RoCE v1")], None),
        ([(0, LINK_GID, "IB/RoCE v1"), (3, mapped("10.1.0.5"), None)], None),
        ([(0, LINK_GID, "IB/RoCE v1"), (3, mapped("10.1.0.9"), "RoCE v2")], None),
    ],
)  # fmt: skip
def test_the_row_of_roce_v2_with_the_nics_ipv4_address(
    tmp_path: Path, rows: list[tuple[int, str, str | None]], index: int | None
) -> None:
    """Wherever it stands; of v1, of IPv6 alone, of others, or of another namespace it is none."""
    machine = pods.pod(tmp_path)
    device = machine.pci(switch_path(0x10, 1), CX6_VF, kind="0x020000")
    machine.nic("net1", device=device, driver="mlx5_core", address="10.1.0.5/24")
    machine.hca("mlx5_3", device, layer="Ethernet", gids=rows)
    pods.verbs_file(machine, "mlx5_3", 0)
    resolved = found(tmp_path, asked("roce", VF), vfs(1))
    assert resolved.variables.get("NCCL_IB_GID_INDEX") == (None if index is None else str(index))
    if index is None:
        (problem,) = resolved.problems
        assert problem.startswith("mlx5_3:1 has no GID of RoCE v2 with the NIC's address (10.1.0.5")
        by_hand = found(tmp_path, asked("roce", VF), vfs(1), NCCL_IB_GID_INDEX="1")
        assert by_hand.problems == ()
    else:
        assert resolved.problems == ()
