"""Proves agent/pod/gids.py and what NCCL is told of GIDs: tables of RoCE v1 and v2, of IPv4 and
IPv6, of shared adapters and of several ports."""

from pathlib import Path

from tests.agent.hardware import machines
from tests.agent.pod import pods
from tests.agent.pod.pods import VF, asked, found, vfs, why

from broadgauge.agent.pod.resolve import ResolvedNetwork


def test_gid_indices_that_differ_are_left_to_nccl(tmp_path: Path) -> None:
    machine = pods.pod(tmp_path)
    pods.add_vf(machine, 1, "10.1.0.5/24", hca="mlx5_10", first=2)
    pods.add_vf(machine, 2, "10.2.0.5/24", hca="mlx5_11", first=4)
    resolved = found(tmp_path, asked("roce", VF, "default/sriov-2"), vfs(1, 2))
    assert resolved.problems == ()
    assert "NCCL_IB_GID_INDEX" not in resolved.variables
    assert "mlx5_10:1 3, mlx5_11:1 5" in why(resolved, "NCCL_IB_GID_INDEX")
    assert "NCCL 2.21 or newer" in why(resolved, "NCCL_IB_GID_INDEX")
    assert "NCCL_IB_ADDR_RANGE" not in resolved.variables  # it takes the right ones by itself


def test_roce_by_ipv6_alone_is_refused_with_the_way_out(tmp_path: Path) -> None:
    pods.add_vf(pods.pod(tmp_path), 1, None, hca="mlx5_10")
    (problem,) = found(tmp_path, asked("roce", VF), vfs(1)).problems
    assert problem.endswith(
        "(RoCE by IPv6 alone: NCCL_IB_ADDR_FAMILY=AF_INET6, or NCCL_IB_GID_INDEX, in the "
        "experiment's `environment`)"
    )
    by_hand = found(tmp_path, asked("roce", VF), vfs(1), NCCL_IB_ADDR_FAMILY="AF_INET6")
    assert by_hand.problems == ()


def test_a_shared_adapter_behind_a_macvlan(tmp_path: Path) -> None:
    """The adapter's table has other pods' addresses: index 3, which jobs usually set, is the
    node's."""
    pods.macvlan_pod(tmp_path, index=6)
    annotations = pods.status(pods.entry(1, "default/rdmashared-net", "192.168.2.5"))
    resolved = found(tmp_path, asked("roce", "default/rdmashared-net"), annotations)
    assert resolved.problems == ()
    assert resolved.variables["NCCL_IB_HCA"] == "=mlx5_1:1"
    assert resolved.variables["NCCL_IB_GID_INDEX"] == "7"


def test_a_macvlan_beside_what_it_stands_on(tmp_path: Path) -> None:
    """Where both are in one network namespace the kernel links them; before the adapter has the
    address in its table, RDMA is refused."""
    machine = pods.pod(tmp_path)
    device = machine.pci(machines.switch_path(0x10, 1), machines.CX7, kind="0x020000")
    machine.nic("ens1", device=device, driver="mlx5_core", address="10.7.0.4/24")
    machine.hca("mlx5_0", device, layer="Ethernet", gids=pods.table(2, "10.7.0.4"))
    machine.nic("net1", devtype="macvlan", address="10.8.0.5/24", is_pair=True)
    machine.link("/sys/class/net/net1/lower_ens1", "/sys/class/net/ens1")
    resolved = found(tmp_path, asked("roce", VF), pods.status(pods.entry(1, VF)))
    assert resolved.adapters == ("mlx5_0:1",)
    assert (
        why(resolved, "NCCL_IB_HCA") == "net1 is mlx5_0:1, net1 stands on ens1, its own interface"
    )
    (problem,) = resolved.problems
    assert "no GID of RoCE v2 with the NIC's address (10.8.0.5)" in problem


def shared_pair(root: Path, *, foreign: str) -> ResolvedNetwork:
    """Two macvlans over shared adapters, whose GIDs have different indices."""
    machine = pods.macvlan_pod(root, index=6)
    machine.nic("net2", devtype="macvlan", address="192.168.3.5/24", is_pair=True)
    device = machine.pci(machines.switch_path(0x20, 1), machines.CX7, kind="0x020000")
    gids = [*pods.table(2, foreign), *pods.table(4, "192.168.3.5")[2:]]
    machine.hca("mlx5_2", device, layer="Ethernet", gids=gids)
    annotations = pods.status(pods.entry(1, "d/a"), pods.entry(2, "d/b"))
    types = root / "sys/class/infiniband/mlx5_1/ports/1/gid_attrs/types"
    for index in (4, 5):  # of another network namespace, the kernel refuses to say
        (types / str(index)).unlink()
    return found(root, asked("roce", "d/a", "d/b"), annotations)


def test_shared_adapters_whose_indices_differ_need_a_range(tmp_path: Path) -> None:
    resolved = shared_pair(tmp_path, foreign="10.1.2.4")
    assert "NCCL_IB_GID_INDEX" not in resolved.variables
    assert resolved.variables["NCCL_IB_ADDR_RANGE"] == "192.168.2.0/23"
    assert resolved.problems == ()


def test_shared_adapters_for_which_no_range_helps_are_refused(tmp_path: Path) -> None:
    resolved = shared_pair(tmp_path, foreign="192.168.3.4")
    (problem,) = resolved.problems
    assert "NCCL would take other pods' GIDs of the same subnet" in problem


def test_an_older_nccl_takes_one_index_for_all(tmp_path: Path) -> None:
    machine = pods.pod(tmp_path)
    pods.add_vf(machine, 1, "10.1.0.5/24", hca="mlx5_10", first=2)
    pods.add_vf(machine, 2, "10.2.0.5/24", hca="mlx5_11", first=4)
    machine.libraries("libnccl.so.2.20.5")
    library = tmp_path / "usr/lib/x86_64-linux-gnu/libnccl.so.2"
    library.symlink_to("libnccl.so.2.20.5")
    resolved = found(tmp_path, asked("roce", VF, "default/sriov-2"), vfs(1, 2))
    (problem,) = resolved.problems
    assert "NCCL 2.20.5 takes one for all" in problem
