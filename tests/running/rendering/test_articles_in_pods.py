"""Proves that the articles' own examples become pods whose ranks are told what the articles' were,
and says where they differ, and why."""

import shutil
from pathlib import Path

import pytest
from tests.running.rendering.article_pods import (
    Difference,
    a40_pod,
    h100_pod,
    pod_of,
    template,
    values,
)

from broadgauge.agent.pod.address_map import parse_map, plan_for
from broadgauge.running.experiments import examples_folder

EXACTLY = "`=` and `:1` name these ports and no others: names alone are beginnings of names to NCCL"
NAMES = "the address map gives the instance's eight vNICs net1 to net8, which are in the same pods"
NOT_SET = "not set by the article"
LOG = "the networks' parts of the log, by which `broadgauge doctor` tells what was done"
RDMA_ON_H100 = (
    Difference(variable="NCCL_TOPO_FILE", article="/mnt/storage/topo.xml",
               ours="/broadgauge/topology/topology.xml",
               why="`kubernetes.topology_file` sends it in a ConfigMap, without a claim"),
    Difference(variable="NCCL_SOCKET_IFNAME", article="net1,net2,net3,net4,net5,net6,net7,net8",
               ours="=net9,net10,net11,net12,net13,net14,net15,net16", why=f"{NAMES}; {EXACTLY}"),
    Difference(variable="NCCL_IB_HCA",
               article="mlx5_7,mlx5_6,mlx5_5,mlx5_4,mlx5_3,mlx5_2,mlx5_1,mlx5_0",
               ours="=mlx5_7:1,mlx5_6:1,mlx5_5:1,mlx5_4:1,mlx5_3:1,mlx5_2:1,mlx5_1:1,mlx5_0:1",
               why=f"the same ports, found by their GIDs and not by counting; {EXACTLY}"),
    Difference(variable="NCCL_IB_GID_INDEX", article="3", ours="3"),
    Difference(variable="NCCL_IB_DISABLE", article="0", ours=None,
               why="0 is NCCL's default, and NCCL_NET=IB says more"),
    Difference(variable="NCCL_NET", article=None, ours="IB",
               why=f"{NOT_SET}: without it NCCL falls back to sockets in silence"),
    Difference(variable="NCCL_CROSS_NIC", article=None, ours="0",
               why=f"{NOT_SET}: its NICs are in eight subnets without a gateway"),
    Difference(variable="NCCL_DEBUG", article="info", ours="INFO", why="the same to NCCL"),
    Difference(variable="NCCL_DEBUG_SUBSYS", article=None,
               ours="INIT,BOOTSTRAP,NET,ENV,GRAPH", why=f"{NOT_SET}: {LOG}"),
    Difference(variable="NCCL_SOCKET_NTHREADS", article=None, ours="2",
               why=f"{NOT_SET}: the example's own, for emulated links of 400 Gbit/s"),
    Difference(variable="NCCL_NSOCKS_PERTHREAD", article=None, ours="2",
               why=f"{NOT_SET}: the example's own, for emulated links of 400 Gbit/s"),
)  # fmt: skip
VNICS_ON_L40S = (
    Difference(variable="NCCL_SOCKET_IFNAME", article="net1,net2,net3,net4,net5,net6,net7,net8",
               ours="=net1,net2,net3,net4,net5,net6,net7,net8", why=EXACTLY),
    Difference(variable="NCCL_NET", article=None, ours="Socket",
               why=f"{NOT_SET}: a virtual NIC has no RDMA, and NCCL is held to that"),
    Difference(variable="NCCL_NET_PLUGIN", article=None, ours="none", why="as NCCL_NET"),
    Difference(variable="NCCL_IB_DISABLE", article=None, ours="1", why="as NCCL_NET"),
    Difference(variable="NCCL_DEBUG", article=None, ours="INFO",
               why=f"{NOT_SET} without RDMA: {LOG}"),
    Difference(variable="NCCL_DEBUG_SUBSYS", article=None,
               ours="INIT,BOOTSTRAP,NET,ENV,GRAPH", why=f"{NOT_SET}: {LOG}"),
)  # fmt: skip
ROCE_ON_A40 = (
    Difference(variable="NCCL_SOCKET_IFNAME", article="net1", ours="=net1", why=EXACTLY),
    Difference(variable="NCCL_IB_HBA", article="mlx5_1", ours=None,
               why="no variable of NCCL's: the article's text names NCCL_IB_HCA"),
    Difference(variable="NCCL_IB_HCA", article=None, ours="=mlx5_1:1",
               why="what the article means, found by the GID table that has the pod's address"),
    Difference(variable="NCCL_IB_GID_INDEX", article=None, ours="5",
               why=f"{NOT_SET}: NCCL 2.21 or newer chooses; here the row of the pod's own address"),
    Difference(variable="NCCL_NET", article=None, ours="IB",
               why=f"{NOT_SET}: without it NCCL falls back to sockets in silence"),
    Difference(variable="NCCL_DEBUG", article="INFO", ours="INFO"),
    Difference(variable="NCCL_DEBUG_SUBSYS", article=None,
               ours="INIT,BOOTSTRAP,NET,ENV,GRAPH", why=f"{NOT_SET}: {LOG}"),
    Difference(variable="PYTORCH_CUDA_ALLOC_CONF", article="expandable_segments:True",
               ours="expandable_segments:True"),
)  # fmt: skip
ALL = RDMA_ON_H100 + VNICS_ON_L40S + ROCE_ON_A40


def test_each_difference_has_a_reason() -> None:
    assert all(bool(row.why) is (row.article != row.ours) for row in ALL)


def article_adapters(num_nics: int) -> list[str]:
    """From the last of eight devices backwards, as the article counts them."""
    return [f"mlx5_{number}" for number in range(7, 7 - num_nics, -1)]


@pytest.mark.parametrize("num_nics", [1, 2, 4, 8])
def test_rdma_on_h100_goes_by_the_articles_adapters(tmp_path: Path, num_nics: int) -> None:
    h100_pod(tmp_path, "granite-h100")
    found = pod_of(tmp_path, template("granite-h100", f"sriov-rdma-nics-{num_nics}"))
    assert found.resolved.problems == ()
    ports = found.environment["NCCL_IB_HCA"].removeprefix("=").split(",")
    assert ports == [f"{name}:1" for name in article_adapters(num_nics)]
    assert found.environment["NCCL_IB_GID_INDEX"] == "3"
    assert ("NCCL_CROSS_NIC" in found.environment) is (num_nics > 1)


def test_ranks_of_rdma_on_h100_are_told_what_the_articles_were(tmp_path: Path) -> None:
    gpus = "".join(f'<pci busid="0000:0{i}:00.0" class="0x030200"/>' for i in range(8))
    topology = f'<system version="1"><cpu numaid="0">{gpus}</cpu></system>'
    (tmp_path / "topo.xml").write_text(topology)
    example = shutil.copy(examples_folder() / "granite-h100.yaml", tmp_path)
    for folder in ("address-maps", "granite"):
        shutil.copytree(examples_folder() / folder, tmp_path / folder)
    h100_pod(tmp_path, "granite-h100")
    told = template(str(example), "sriov-rdma-nics-8", "kubernetes.topology_file=topo.xml")
    found = pod_of(tmp_path, told)
    assert found.of("NCCL_") == values(RDMA_ON_H100)
    assert [pair.distance for pair in found.resolved.pairs] == ["PIX"] * 8
    rows = {row.variable: row for row in RDMA_ON_H100}
    assert rows["NCCL_IB_HCA"].article == ",".join(article_adapters(8))


def test_what_the_article_set_by_hand_is_kept(tmp_path: Path) -> None:
    """Where an experiment's `environment` says it, as the article's entrypoint did."""
    h100_pod(tmp_path, "granite-h100")
    set_by_hand = {
        row.variable: row.article
        for row in RDMA_ON_H100
        if row.article is not None and row.variable != "NCCL_SOCKET_IFNAME"
    }
    own = [f"environment.{name}='{value}'" for name, value in set_by_hand.items()]
    found = pod_of(tmp_path, template("granite-h100", "sriov-rdma-nics-8", *own))
    assert found.resolved.problems == ()
    assert {name: found.environment[name] for name in set_by_hand} == set_by_hand
    assert not set_by_hand.keys() & found.resolved.variables.keys()


def test_the_same_nics_without_rdma_are_sockets(tmp_path: Path) -> None:
    h100_pod(tmp_path, "granite-h100")
    for network, names in (("sriov-nics-1", "net9"), ("vnic-nics-2", "net1,net2"), ("pod", "eth0")):
        told = pod_of(tmp_path, template("granite-h100", network)).of("NCCL_SOCKET_IF", "NCCL_NET")
        assert told == {
            "NCCL_SOCKET_IFNAME": f"={names}", "NCCL_NET": "Socket", "NCCL_NET_PLUGIN": "none"
        }  # fmt: skip


def test_ranks_of_vnics_on_l40s_are_told_what_the_articles_were(tmp_path: Path) -> None:
    h100_pod(tmp_path, "granite-l40s")
    found = pod_of(tmp_path, template("granite-l40s", "vnic", "cluster.shapes=[8x2]"))
    assert found.resolved.problems == ()
    assert found.of("NCCL_") == values(VNICS_ON_L40S)


def test_nodes_of_l40s_have_the_articles_addresses_and_routes() -> None:
    """Each NIC its own as a /24, and a route of metric 150 to each other node's of that name."""
    text = (examples_folder() / "address-maps/granite-l40s.txt").read_text()
    plans = plan_for(parse_map(text), "worker-0", ())
    assert [(plan.interface, str(plan.address)) for plan in plans] == [
        (f"net{number}", f"10.249.{64 + number}.9/24") for number in range(1, 9)
    ]
    for plan in plans:
        to = [str(route.to) for route in plan.routes]
        subnet = str(plan.address.ip).rpartition(".")[0]
        assert to == [f"{subnet}.{last}" for last in range(10, 17)]
        assert all(route.gateway is None for route in plan.routes)


def test_ranks_of_roce_on_a40_are_told_what_the_articles_were_meant_to(tmp_path: Path) -> None:
    a40_pod(tmp_path)
    found = pod_of(tmp_path, template("llama-lora-a40", "roce"))
    assert found.resolved.problems == ()
    assert found.resolved.addresses == ("192.168.2.5",)
    assert found.of("NCCL_", "PYTORCH_") == values(ROCE_ON_A40)
    forced = pod_of(tmp_path, template("llama-lora-a40", "tcp"))
    assert (forced.resolved.interfaces, forced.environment["NCCL_IB_DISABLE"]) == (("net1",), "1")
