"""Proves agent/pod/resolve.py: what NCCL is told in a pod, and what is refused."""

import ipaddress
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.agent.hardware import machines
from tests.agent.hardware.machines import Machine
from tests.agent.pod import pods

from broadgauge.agent.pod.facts import PodFacts, read_pod_facts
from broadgauge.agent.pod.networks import describe, describe_pod
from broadgauge.agent.pod.resolve import (
    BY_PLUGIN,
    BY_VERBS,
    ResolvedNetwork,
    adapters_of,
    resolve,
)
from broadgauge.agent.pod.resolve import SOCKETS_ONLY as SOCKETS_IN_POD
from broadgauge.messages.hardware import NicFacts
from broadgauge.messages.pod_network import PodNetwork
from broadgauge.platforms.meant_transport import NO_GPUDIRECT
from broadgauge.platforms.paths import SOCKETS_ONLY
from broadgauge.specs import transports

VF = "default/sriov-1"


def found(root: Path, network: PodNetwork, annotations: str | None = None) -> ResolvedNetwork:
    return resolve(network, read_pod_facts(root, annotations, environ={}))


def network(transport: str | None, *attachments: str, **more: object) -> PodNetwork:
    number = max(1, len(attachments))
    return PodNetwork(
        name="fabric",
        attachments=attachments,
        num_nics=number,
        transport=transport,
        **more,  # type: ignore[arg-type]
    )


def beside(root: Path, annotations: str, **addresses: str) -> PodFacts:
    """With more interfaces, which may be in one subnet: no file says whose an address is."""
    facts = read_pod_facts(root, annotations, environ={})
    nics = [
        NicFacts(
            name=name,
            kind="veth",
            state="up",
            speed_mbps=None,
            mtu_bytes=1500,
            driver=None,
            addresses=(address,),
            subnets=(str(ipaddress.ip_interface(address).network),),
        )
        for name, address in addresses.items()
    ]
    hardware = replace(facts.hardware, nics=(*facts.hardware.nics, *nics))
    return replace(facts, hardware=hardware)


def vfs(*numbers: int) -> str:
    entries = (pods.entry(n, f"default/sriov-{n}", f"10.{n}.0.5") for n in numbers)
    return pods.status(*entries)


def why(resolved: ResolvedNetwork, variable: str) -> str:
    (reason,) = [each for each in resolved.reasons if each.variable == variable]
    return reason.why


def test_words_of_transports_are_those_of_experiments() -> None:
    assert BY_VERBS == transports.BY_VERBS
    assert set(BY_VERBS) | set(BY_PLUGIN) == set(transports.RDMA)
    assert SOCKETS_IN_POD == SOCKETS_ONLY


def test_pod_network_is_the_default_route(tmp_path: Path) -> None:
    pods.pod(tmp_path)
    resolved = found(tmp_path, network(None))
    assert (resolved.interfaces, resolved.addresses) == (("eth0",), ("10.128.2.7",))
    assert resolved.variables == {"NCCL_SOCKET_IFNAME": "=eth0", "GLOO_SOCKET_IFNAME": "eth0"}
    assert resolved.problems == ()
    assert why(resolved, "NCCL_SOCKET_IFNAME") == "eth0: it has the pod's default route"


def test_pod_network_is_the_statuss_own_where_an_attachment_took_the_default_route(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path)
    machine.base()
    machine.nic("eth0", is_pair=True, address="10.128.2.7/23")
    machine.nic("net1", is_pair=True, address="192.168.7.2/24", is_default=True)
    assert found(tmp_path, network("tcp"), pods.status()).interfaces == ("eth0",)
    assert found(tmp_path, network("tcp"), "").interfaces == ("net1",)


def test_no_network_at_all(tmp_path: Path) -> None:
    Machine(tmp_path).base()
    (problem,) = found(tmp_path, network(None)).problems
    assert "no default route" in problem


def test_a_virtual_function_by_its_status(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    resolved = found(tmp_path, network("roce", VF), vfs(1))
    assert resolved.problems == ()
    assert resolved.interfaces == ("net1",)
    assert resolved.adapters == ("mlx5_10:1",)
    assert resolved.variables == {
        "NCCL_SOCKET_IFNAME": "=net1",
        "GLOO_SOCKET_IFNAME": "net1",
        "NCCL_NET": "IB",
        "NCCL_IB_HCA": "=mlx5_10:1",
        "NCCL_IB_GID_INDEX": "3",
    }
    assert why(resolved, "NCCL_IB_HCA") == "mlx5_10:1: its GID table has 10.1.0.5"
    assert [(pair.adapter, pair.distance) for pair in resolved.pairs] == [("mlx5_10:1", "PIX")]


def test_tcp_twin_of_the_same_interface(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    resolved = found(tmp_path, network("sriov-tcp", VF), vfs(1))
    assert resolved.variables == {
        "NCCL_SOCKET_IFNAME": "=net1",
        "GLOO_SOCKET_IFNAME": "net1",
        **SOCKETS_ONLY,
    }
    assert resolved.adapters == ()
    facts = read_pod_facts(tmp_path, vfs(1), environ={})
    assert adapters_of(network("sriov-tcp", VF), facts) == ("mlx5_10:1",)
    assert adapters_of(network("tcp", "default/other"), facts) == ()
    assert "whatever else the pod has" in why(resolved, "NCCL_IB_DISABLE")


def test_twin_without_gpudirect(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    resolved = found(tmp_path, network("roce", VF, gpudirect=False), vfs(1))
    assert resolved.problems == ()
    assert {n: resolved.variables[n] for n in NO_GPUDIRECT} == NO_GPUDIRECT


def test_gpudirect_without_module_and_dma_buf_is_refused(tmp_path: Path) -> None:
    machine = pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    asked = network("roce", VF, gpudirect=True)
    assert found(tmp_path, asked, vfs(1)).problems == ()
    (tmp_path / "sys/module/nvidia_peermem/version").unlink()
    (tmp_path / "sys/module/nvidia_peermem").rmdir()
    assert found(tmp_path, asked, vfs(1)).problems == ()  # open modules on Linux 5.14: DMA-BUF
    machine.driver(machines.CLOSED_DRIVER, peermem=False)
    (problem,) = found(tmp_path, asked, vfs(1)).problems
    assert "neither nvidia-peermem nor DMA-BUF" in problem


def test_several_nics_in_the_attachments_order(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24", "10.2.0.5/24", "10.3.0.5/24"], gpus=2)
    asked = network("roce", "default/sriov-3", "default/sriov-1")
    resolved = found(tmp_path, asked, vfs(1, 2, 3))
    assert resolved.interfaces == ("net3", "net1")
    assert resolved.addresses == ("10.3.0.5", "10.1.0.5")
    assert resolved.variables["NCCL_IB_HCA"] == "=mlx5_12:1,mlx5_10:1"
    assert resolved.variables["NCCL_CROSS_NIC"] == "0"
    assert "2 subnets and no gateway" in why(resolved, "NCCL_CROSS_NIC")
    pairs = {pair.gpu: (pair.adapter, pair.distance) for pair in resolved.pairs}
    assert pairs["0000:13:00.0"] == ("mlx5_10:1", "PIX")


def test_fewer_nics_than_attachments(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24", "10.2.0.5/24"])
    asked = PodNetwork(name="one", attachments=("default/sriov-1", "default/sriov-2"))
    assert found(tmp_path, asked, vfs(1, 2)).interfaces == ("net1",)


def test_one_attachment_asked_for_twice(tmp_path: Path) -> None:
    pods.pod(tmp_path)
    annotations = pods.status(pods.entry(1, VF), pods.entry(2, VF))
    facts = beside(tmp_path, annotations, net1="10.1.0.5/24", net2="10.1.0.6/24")
    resolved = resolve(network("tcp", VF, VF), facts)
    assert resolved.interfaces == ("net1", "net2")
    (note,) = resolved.notes
    assert "net1, net2 are in one subnet, 10.1.0.0/24" in note


def test_gid_indices_that_differ_are_left_to_nccl(tmp_path: Path) -> None:
    machine = pods.pod(tmp_path)
    pods.add_vf(machine, 1, "10.1.0.5/24", hca="mlx5_10", first=2)
    pods.add_vf(machine, 2, "10.2.0.5/24", hca="mlx5_11", first=4)
    resolved = found(tmp_path, network("roce", VF, "default/sriov-2"), vfs(1, 2))
    assert resolved.problems == ()
    assert "NCCL_IB_GID_INDEX" not in resolved.variables
    assert "mlx5_10:1 3, mlx5_11:1 5" in why(resolved, "NCCL_IB_GID_INDEX")
    assert "NCCL 2.21 or newer" in why(resolved, "NCCL_IB_GID_INDEX")
    assert "NCCL_IB_ADDR_RANGE" not in resolved.variables  # it takes the right ones by itself


def test_a_shared_adapter_behind_a_macvlan(tmp_path: Path) -> None:
    """The adapter's table has other pods' addresses: index 3, which jobs usually set, is the
    node's."""
    pods.macvlan_pod(tmp_path, index=6)
    annotations = pods.status(pods.entry(1, "default/rdmashared-net", "192.168.2.5"))
    resolved = found(tmp_path, network("roce", "default/rdmashared-net"), annotations)
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
    resolved = found(tmp_path, network("roce", VF), pods.status(pods.entry(1, VF)))
    assert resolved.adapters == ("mlx5_0:1",)
    assert why(resolved, "NCCL_IB_HCA") == "mlx5_0:1: net1 stands on its interface ens1"
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
    return found(root, network("roce", "d/a", "d/b"), annotations)


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
    resolved = found(tmp_path, network("roce", VF, "default/sriov-2"), vfs(1, 2))
    (problem,) = resolved.problems
    assert "NCCL 2.20.5 takes one for all" in problem


def test_infiniband_has_no_gid_index_and_finds_the_others_by_the_pod_network(
    tmp_path: Path,
) -> None:
    pods.ib_pod(tmp_path)
    infos = [pods.device_info(f"0000:{0x14 + 0x10 * n:02x}:00.0") for n in range(2)]
    entries = [{"name": f"default/ib-{n}", "dns": {}, **info} for n, info in enumerate(infos)]
    asked = network("infiniband", "default/ib-0", "default/ib-1")
    resolved = found(tmp_path, asked, pods.status(*entries))
    assert resolved.problems == ()
    assert resolved.variables == {
        "NCCL_SOCKET_IFNAME": "=eth0",
        "GLOO_SOCKET_IFNAME": "eth0",
        "NCCL_NET": "IB",
        "NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1",
    }
    assert "the adapters have no IP address" in why(resolved, "NCCL_SOCKET_IFNAME")
    assert [pair.adapter for pair in resolved.pairs] == ["mlx5_0:1", "mlx5_1:1"]


def test_infiniband_of_a_device_plugin_without_an_attachment(tmp_path: Path) -> None:
    """The pod network is the only one, and the container was given the ports' files."""
    pods.ib_pod(tmp_path)
    asked = PodNetwork(name="ib", transport="infiniband", num_nics=2)
    resolved = found(tmp_path, asked)
    assert resolved.problems == ()
    assert resolved.variables == {
        "NCCL_SOCKET_IFNAME": "=eth0",
        "GLOO_SOCKET_IFNAME": "eth0",
        "NCCL_NET": "IB",
        "NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1",
    }
    one = found(tmp_path, PodNetwork(name="ib", transport="infiniband"))
    assert one.adapters == ("mlx5_0:1",)
    assert one.notes == ("as many ports as NICs are asked for are used; left out: mlx5_1:1",)
    many = found(tmp_path, PodNetwork(name="ib", transport="infiniband", num_nics=4))
    assert many.problems == (
        "4 NICs are asked for, and this container was given 2 active ports: mlx5_0:1, mlx5_1:1",
    )


def test_ports_of_which_the_container_has_no_file_are_not_taken(tmp_path: Path) -> None:
    machine = pods.ib_pod(tmp_path)
    machine.hca_files()[0].parent.joinpath("uverbs0").unlink()
    resolved = found(tmp_path, PodNetwork(name="ib", transport="infiniband"))
    assert resolved.adapters == ("mlx5_1:1",)
    machine.hca_files()[0].unlink()
    (problem, *_) = found(tmp_path, PodNetwork(name="ib", transport="infiniband")).problems
    assert "no RDMA adapter belongs to eth0" in problem


def test_the_ports_nearest_to_the_gpus_are_taken(tmp_path: Path) -> None:
    machine = machines.dgx(tmp_path)
    for index in range(8):
        pods.verbs_file(machine, f"mlx5_{index}", index)
    for index in range(8):
        if index not in (2, 5):
            (tmp_path / f"dev/nvidia{index}").unlink()
    asked = PodNetwork(name="ib", transport="infiniband", num_nics=2)
    resolved = found(tmp_path, asked)
    assert resolved.adapters == ("mlx5_2:1", "mlx5_5:1")
    assert {pair.distance for pair in resolved.pairs} == {"PIX"}


@pytest.mark.parametrize("transport", [None, "tcp", "roce"])
def test_the_pod_network_has_one_nic(tmp_path: Path, transport: str | None) -> None:
    pods.pod(tmp_path)
    asked = PodNetwork(name="pod", transport=transport, num_nics=2)
    assert any(
        "2 NICs are asked for, and the pod network has one" in problem
        for problem in found(tmp_path, asked).problems
    )


def test_efa_devices_are_no_interfaces(tmp_path: Path) -> None:
    machine = pods.pod(tmp_path)
    device = machine.pci(machines.switch_path(0x40, 1), ("0x1d0f", "0xefa1"), kind="0x020000")
    machine.hca("rdmap0", device, driver="efa", layer="Unspecified")
    assert found(tmp_path, PodNetwork(name="efa", transport="efa", num_nics=4)).problems == ()


def test_rdma_device_of_the_status(tmp_path: Path) -> None:
    pods.ib_pod(tmp_path)
    own = pods.device_info("0000:99:00.0", **{"rdma-device": "mlx5_1"})
    annotations = pods.status({"name": "default/ib", "dns": {}, **own})
    resolved = found(tmp_path, network("infiniband", "default/ib"), annotations)
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


def no_library(machine: Machine, root: Path) -> None:
    (root / "usr/lib/x86_64-linux-gnu/libibverbs.so.1").unlink()


def interface_down(machine: Machine, root: Path) -> None:
    (root / "sys/class/net/net1/operstate").write_text("down\n")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (port_down, "mlx5_10:1 is DOWN"),
        (no_address_in_table, "no GID of RoCE v2 with the NIC's address (10.1.0.5)"),
        (no_device_file, "mlx5_10: /dev/infiniband/uverbs0 is not in this container"),
        (no_device_file_nor_class, "no file /dev/infiniband/uverbs* opens"),
        (small_memlock, "may lock 8 MiB of memory, too little for RDMA"),
        (no_library, "libibverbs.so.1 is not in this image"),
        (interface_down, "net1 is down"),
    ],
)
def test_rdma_that_is_not_there_is_refused(tmp_path: Path, change: Change, says: str) -> None:
    machine = pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    assert found(tmp_path, network("roce", VF), vfs(1)).problems == ()
    change(machine, tmp_path)
    problems = found(tmp_path, network("roce", VF), vfs(1)).problems
    assert len(problems) == 1
    assert says in problems[0]


def test_memory_that_is_too_small_is_said_with_what_helps(tmp_path: Path) -> None:
    """IPC_LOCK alone would not: another user's process than root's does not get it."""
    machine = pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    small_memlock(machine, tmp_path)
    (problem,) = found(tmp_path, network("roce", VF), vfs(1)).problems
    assert "CRI-O's `default_ulimits` by a MachineConfig" in problem
    assert "`kubernetes.run_as_user: 0`" in problem


def test_memory_that_may_be_locked_needs_no_limit(tmp_path: Path) -> None:
    machine = pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    machine.base(memlock=("65536", "65536"), capabilities="0000000000004000")
    assert found(tmp_path, network("roce", VF), vfs(1)).problems == ()


@pytest.mark.parametrize("transport", BY_VERBS)
def test_rdma_of_a_pod_without_adapters_is_refused(tmp_path: Path, transport: str) -> None:
    pods.pod(tmp_path)
    (problem,) = found(tmp_path, network(transport)).problems
    assert problem == (
        f"`{transport}` is asked for, and no RDMA adapter belongs to eth0: it has the pod's "
        "default route; no RDMA adapter is in this pod"
    )


def test_adapters_of_another_network_are_not_this_ones(tmp_path: Path) -> None:
    """Of a pod with all networks attached, the pod network must not go by the fabric's adapters."""
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    (problem,) = found(tmp_path, network("roce"), vfs(1)).problems
    assert "belongs to eth0" in problem
    assert "adapters here: mlx5_10" in problem
    free = found(tmp_path, network(None), vfs(1))
    assert free.problems == ()
    assert {n: free.variables.get(n) for n in SOCKETS_ONLY} == SOCKETS_ONLY
    assert "NCCL would take another's: mlx5_10" in why(free, "NCCL_NET")


def test_as_nccl_chooses_within_the_network(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24", "10.2.0.5/24"])
    resolved = found(tmp_path, network(None, VF), vfs(1, 2))
    assert "NCCL_NET" not in resolved.variables
    assert resolved.variables["NCCL_IB_HCA"] == "=mlx5_10:1"


def test_as_nccl_chooses_where_the_adapter_can_not_be_used(tmp_path: Path) -> None:
    machine = pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    no_device_file(machine, tmp_path)
    resolved = found(tmp_path, network(None, VF), vfs(1))
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
    problems = found(tmp_path, network(transport, VF), vfs(1)).problems
    assert any(says in problem for problem in problems)


def test_efa_without_an_adapter_is_refused(tmp_path: Path) -> None:
    machine = pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    assert "driver efa" in found(tmp_path, network("efa")).problems[0]
    device = machine.pci(machines.switch_path(0x40, 1), ("0x1d0f", "0xefa1"), kind="0x020000")
    machine.hca("rdmap0", device, driver="efa", layer="Unspecified")
    resolved = found(tmp_path, network("efa", gpudirect=False))
    assert resolved.problems == ()
    assert resolved.variables["NCCL_NET_GDR_LEVEL"] == "LOC"
    assert "NCCL_IB_HCA" not in resolved.variables
    assert any("libnccl-net" in note for note in resolved.notes)


def test_by_subnet_where_no_status_is_there(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24", "10.2.0.5/24"])
    asked = network("tcp", VF, "default/sriov-2", subnets=("10.2.0.0/24", "10.1.0.0/16"))
    resolved = found(tmp_path, asked, "")
    assert resolved.interfaces == ("net2", "net1")
    assert why(resolved, "NCCL_SOCKET_IFNAME").startswith("net2: its address is in 10.2.0.0/24")


def test_several_nics_of_one_subnet(tmp_path: Path) -> None:
    pods.pod(tmp_path)
    facts = beside(tmp_path, "", net10="10.9.0.10/24", net2="10.9.0.2/24")
    asked = PodNetwork(name="two", attachments=("a/b", "a/b"), subnets=("10.9.0.0/24",), num_nics=2)
    assert resolve(asked, facts).problems == ()
    assert resolve(asked, facts).interfaces == ("net2", "net10")
    alone = PodNetwork(name="one", attachments=("a/b",), subnets=("10.9.0.0/24",))
    (problem,) = resolve(alone, facts).problems
    assert problem == (
        "1 is asked for of the interfaces with an address in 10.9.0.0/24, here: net2, net10"
    )


@pytest.mark.parametrize(
    ("asked", "annotations", "says"),
    [
        (network("tcp", VF), "", "no network status annotation"),
        (network("tcp", VF), 'k8s.v1.cni.cncf.io/network-status="{}"\n', "is no list"),
        (network("tcp", "default/other"), vfs(1), "default/other is not among the pod's networks"),
        (network("tcp", "x/sriov-1"), vfs(1), "x/sriov-1 is not among"),
        (network("tcp", "default/sriov-9"), vfs(9), "names net9, which is not in this pod"),
        (
            PodNetwork(name="n", attachments=(VF,), num_nics=2),
            vfs(1),
            "2 NICs are asked for, and 1 attachments are named",
        ),
        (network("tcp", VF, subnets=("nonsense",)), "", "no subnet"),
        (network("tcp", VF, subnets=("10.77.0.0/16",)), "", "here: none"),
    ],
)
def test_what_is_not_found_is_said_and_refused(
    tmp_path: Path, asked: PodNetwork, annotations: str, says: str
) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    resolved = found(tmp_path, asked, annotations)
    assert any(says in problem for problem in resolved.problems)
    assert resolved.variables == {}


def test_an_interface_without_an_address_is_refused(tmp_path: Path) -> None:
    machine = pods.pod(tmp_path)
    machine.nic("net1", is_pair=True)
    annotations = pods.status(pods.entry(1, VF))
    (problem,) = found(tmp_path, network("tcp", VF), annotations).problems
    assert problem == "no address on net1"


def test_an_attachment_of_the_pods_own_namespace(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    assert found(tmp_path, network("tcp", "sriov-1"), vfs(1)).interfaces == ("net1",)


def test_an_older_status_has_no_namespace(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    annotations = pods.status(pods.entry(1, "sriov-1", "10.1.0.5"))
    assert found(tmp_path, network("tcp", VF), annotations).interfaces == ("net1",)


def test_lines_for_people(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    facts = read_pod_facts(tmp_path, vfs(1), environ={})
    lines = list(describe(resolve(network("roce", VF), facts)))
    assert lines[0] == "network fabric: net1 10.1.0.5; RDMA by mlx5_10:1"
    assert "  NCCL_IB_HCA==mlx5_10:1: mlx5_10:1: its GID table has 10.1.0.5" in lines
    assert "  NCCL_TOPO_FILE=unset: NCCL reads the PCI bus itself" in lines
    assert "  GPU 0000:13:00.0 to mlx5_10:1: PIX" in lines
    refused = list(describe(resolve(network("efa"), facts)))
    assert any(line.startswith("  refused: EFA") for line in refused)
    seen = list(describe_pod(facts))
    assert "interface eth0: veth, up, 10.128.2.7/23, default route" in seen
    assert "adapter mlx5_10:1: Ethernet, ACTIVE, 1 GIDs of RoCE v2" in seen
    assert "attachment default/sriov-1: net1" in seen
