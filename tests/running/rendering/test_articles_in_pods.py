"""Proves that the articles' own examples become pods whose ranks are told what the articles' were;
where they differ, and why, says catalog/article_differences.yaml."""

import shutil
from pathlib import Path

import pytest
from tests.running.rendering.article_pods import (
    a40_pod,
    h100_pod,
    pod_of,
    template,
)

from broadgauge.agent.pod.address_map import parse_map, plan_for
from broadgauge.catalog.article_differences import compared_pods
from broadgauge.running.experiments import examples_folder

TOLD = compared_pods()


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
    assert found.of("NCCL_") == TOLD["rdma-on-h100"].ours
    assert [pair.distance for pair in found.resolved.pairs] == ["PIX"] * 8
    assert TOLD["rdma-on-h100"].theirs["NCCL_IB_HCA"] == ",".join(article_adapters(8))


def test_what_the_article_set_by_hand_is_kept(tmp_path: Path) -> None:
    """Where an experiment's `environment` says it, as the article's entrypoint did."""
    h100_pod(tmp_path, "granite-h100")
    set_by_hand = dict(TOLD["rdma-on-h100"].theirs)
    del set_by_hand["NCCL_SOCKET_IFNAME"]  # of pods that have no other networks
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
    assert found.of("NCCL_") == TOLD["vnics-on-l40s"].ours


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
    assert found.of("NCCL_", "PYTORCH_") == TOLD["roce-on-a40"].ours
    forced = pod_of(tmp_path, template("llama-lora-a40", "tcp"))
    assert (forced.resolved.interfaces, forced.environment["NCCL_IB_DISABLE"]) == (("net1",), "1")
