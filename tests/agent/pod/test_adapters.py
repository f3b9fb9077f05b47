"""Proves agent/pod/adapters.py on trees as sysfs has them: the adapters of a network's interfaces
and no others, or no start."""

import ipaddress
from pathlib import Path

import pytest

from broadgauge.agent.hardware.hcas import read_hcas
from broadgauge.agent.hardware.tree import Tree
from broadgauge.agent.pod.adapters import NoAdapterError, adapter_variables
from broadgauge.messages.hardware import HcaFacts

OWN = {"net1": "192.168.2.5", "net9": "10.241.123.9", "net10": "10.241.124.9"}


def gid_of(address: str) -> str:
    number = f"{int(ipaddress.IPv4Address(address)):08x}"
    return f"0000:0000:0000:0000:0000:ffff:{number[:4]}:{number[4:]}"


class Sysfs:
    def __init__(self, root: Path) -> None:
        self._root = root

    def add(
        self, name: str, *gids: tuple[str, str], interfaces: tuple[str, ...] = (),
        state: str = "4: ACTIVE", port: int = 1,
    ) -> None:  # fmt: skip
        """An adapter; `gids`: address and the interface that the table names."""
        hca = self._root / "sys/class/infiniband" / name
        for interface in interfaces:
            (hca / "device/net" / interface).mkdir(parents=True)
        folder = hca / "ports" / str(port)
        for part in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
            (folder / part).mkdir(parents=True)
        (folder / "state").write_text(f"{state}\n")
        for number, (address, interface) in enumerate(gids):
            (folder / "gids" / str(number)).write_text(f"{gid_of(address)}\n")
            (folder / "gid_attrs/types" / str(number)).write_text("RoCE v2\n")
            (folder / "gid_attrs/ndevs" / str(number)).write_text(f"{interface}\n")

    def read(self) -> tuple[HcaFacts, ...]:
        return read_hcas(Tree(self._root))


@pytest.fixture
def sysfs(tmp_path: Path) -> Sysfs:
    return Sysfs(tmp_path)


def told(sysfs: Sysfs, *interfaces: str, **variables: str) -> tuple[dict[str, str], str]:
    return adapter_variables(interfaces, sysfs.read(), variables, OWN.get)


def test_a_nic_that_was_moved_into_the_pod_is_its_adapters_own(sysfs: Sysfs) -> None:
    """As on the article's instance, where the first device is the last adapter; eight are seen."""
    for number in range(6):
        sysfs.add(f"mlx5_{number}")
    sysfs.add("mlx5_6", ("10.241.124.9", "net10"), interfaces=("net10",))
    sysfs.add("mlx5_7", ("10.241.123.9", "net9"), interfaces=("net9",))
    assert told(sysfs, "net9")[0] == {"NCCL_IB_HCA": "=mlx5_7:1"}
    found, why = told(sysfs, "net9", "net10")
    assert found == {"NCCL_IB_HCA": "=mlx5_7:1,mlx5_6:1"}
    assert "net9: mlx5_7's GIDs have 10.241.123.9" in why


def test_a_nic_without_an_address_is_told_by_its_device(sysfs: Sysfs) -> None:
    sysfs.add("mlx5_0", interfaces=("net7",))
    sysfs.add("mlx5_1")
    assert told(sysfs, "net7")[0] == {"NCCL_IB_HCA": "=mlx5_0:1"}


def test_a_macvlan_is_told_by_its_address_in_the_table_of_the_nodes_adapter(sysfs: Sysfs) -> None:
    """Other pods' macvlans have the same name, and stand in the tables, too."""
    sysfs.add("mlx5_0", ("192.168.2.9", "net1"))
    sysfs.add("mlx5_1", ("192.168.2.7", "net1"), ("192.168.2.5", "net1"))
    assert told(sysfs, "net1")[0] == {"NCCL_IB_HCA": "=mlx5_1:1"}


def test_of_two_ports_the_one_whose_table_names_the_interface(sysfs: Sysfs) -> None:
    sysfs.add("mlx4_0", ("10.0.0.1", "other"), interfaces=("net7",), port=1)
    sysfs.add("mlx4_0", ("10.0.0.2", "net7"), port=2)
    assert told(sysfs, "net7")[0] == {"NCCL_IB_HCA": "=mlx4_0:2"}


def test_what_the_user_has_set_is_kept(sysfs: Sysfs) -> None:
    found, why = told(sysfs, "net1", NCCL_IB_HCA="mlx5_1")
    assert (found, why) == ({}, "NCCL_IB_HCA=mlx5_1: set by the experiment, and kept")


def test_rdma_that_isnt_there_is_refused(sysfs: Sysfs) -> None:
    with pytest.raises(NoAdapterError, match=r"on net1 \(192.168.2.5\).*no RDMA adapter is in"):
        told(sysfs, "net1")
    sysfs.add("mlx5_0", ("192.168.2.9", "net1"))
    with pytest.raises(NoAdapterError, match="none of its adapters can be told; adapters here: ml"):
        told(sysfs, "net1")


def test_a_port_that_is_down_is_refused(sysfs: Sysfs) -> None:
    sysfs.add("mlx5_0", ("192.168.2.5", "net1"), state="1: DOWN")
    with pytest.raises(NoAdapterError, match=r"mlx5_0:1 .* that port is DOWN, not ACTIVE"):
        told(sysfs, "net1")
