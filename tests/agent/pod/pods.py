"""Trees of pods as Multus and RDMA plugins make them, beyond tests/agent/hardware/machines.py."""

import json
import socket
from collections.abc import Sequence
from pathlib import Path

from tests.agent.hardware.machines import (
    CX6_VF,
    CX7,
    IB_GID,
    LINK_GID,
    POD_LIMITS,
    Machine,
    switch_path,
)

from broadgauge.agent.pod.facts import ANNOTATIONS_FILE, PodFacts, read_pod_facts
from broadgauge.agent.pod.resolve import ResolvedNetwork, resolve
from broadgauge.messages.asked_network import AskedAttachment, AskedNetwork

ANNOTATION = "k8s.v1.cni.cncf.io/network-status"
UNLIMITED = POD_LIMITS | {"memlock": ("unlimited", "unlimited")}


VF = "default/sriov-1"


def asked(transport: str | None, *definitions: str, **more: object) -> AskedNetwork:
    """A network of these attachments, or the pod network; `subnets`: one for each of them."""
    subnets = more.pop("subnets", ("",) * len(definitions))
    assert isinstance(subnets, tuple)
    return AskedNetwork(
        name="fabric",
        transport=transport,
        attachments=tuple(
            AskedAttachment(
                definition=name, interface=f"net{n}", subnets=(subnet,) if subnet else ()
            )
            for n, (name, subnet) in enumerate(zip(definitions, subnets, strict=True), start=1)
        ),
        **({"num_nics": max(1, len(definitions))} | more),  # type: ignore[arg-type]
    )


def facts_of(root: Path, annotations: str = "", **given: str) -> PodFacts:
    """`annotations`: the downward API's file; `given`: variables of the process."""
    file = root / ANNOTATIONS_FILE.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(annotations)
    return read_pod_facts(root, given)


def found(
    root: Path, network: AskedNetwork, annotations: str = "", **given: str
) -> ResolvedNetwork:
    """What a network is in a pod of this tree."""
    return resolve(network, facts_of(root, annotations, **given))


def vfs(*numbers: int) -> str:
    """The status of virtual functions by `default/sriov-N`, each in a subnet of its own."""
    return status(*(entry(n, f"default/sriov-{n}", f"10.{n}.0.5") for n in numbers))


def why(resolved: ResolvedNetwork, variable: str) -> str:
    """The reason of one variable."""
    (reason,) = [each for each in resolved.reasons if each.variable == variable]
    return reason.why


def mapped(address: str) -> str:
    """The GID of an IPv4 address."""
    digits = socket.inet_aton(address).hex()
    return f"0000:0000:0000:0000:0000:ffff:{digits[:4]}:{digits[4:]}"


def table(first: int, *addresses: str) -> list[tuple[int, str, str]]:
    """A port's GIDs as mlx5 fills them: two of the link, then v1 and v2 of each address."""
    rows = [(0, LINK_GID, "IB/RoCE v1"), (1, LINK_GID, "RoCE v2")]
    for number, address in enumerate(addresses):
        index = first + 2 * number
        rows += [
            (index, mapped(address), "IB/RoCE v1"),
            (index + 1, mapped(address), "RoCE v2"),
        ]
    return rows


def status(*entries: dict[str, object], name: str = ANNOTATION) -> str:
    """The downward API file of a pod's annotations."""
    own = {
        "name": "ovn-kubernetes",
        "interface": "eth0",
        "ips": ["10.128.2.7"],
        "mac": "0a:58:0a:80:02:07",
        "default": True,
        "dns": {},
    }
    text = json.dumps([own, *entries], indent=4)
    quoted = json.dumps(text)
    return f'kubernetes.io/config.seen="2026-11-23T10:00:00Z"\n{name}={quoted}\n'


def entry(number: int, name: str, address: str | None = None, **more: object) -> dict[str, object]:
    """Of one attachment."""
    return {
        "name": name,
        "interface": f"net{number}",
        **({} if address is None else {"ips": [address]}),
        "mac": f"02:00:00:00:00:{number:02x}",
        "dns": {},
        **more,
    }


def device_info(pci: str, **more: str) -> dict[str, object]:
    return {"device-info": {"type": "pci", "version": "1.1.0", "pci": {"pci-address": pci, **more}}}


def pod(root: Path, gpus: int = 1, **base: object) -> Machine:
    """GPUs, and the cluster's own network."""
    machine = Machine(root)
    machine.base(kernel="5.14.0-427.13.1.el9_4.x86_64", cpus=16, **(UNLIMITED | base))  # type: ignore[arg-type]
    machine.driver()
    for index in range(gpus):
        machine.gpu(switch_path(0x10 + 0x10 * index, 0), index)
    machine.nic(
        "eth0", speed=10000, mtu=1400, is_pair=True, address="10.128.2.7/23", is_default=True
    )
    return machine


def verbs_file(machine: Machine, hca: str, number: int) -> None:
    machine.file(f"/sys/class/infiniband_verbs/uverbs{number}/ibdev", f"{hca}\n")


def add_vf(
    machine: Machine, number: int, address: str | None, *, hca: str, first: int = 2, **port: object
) -> str:
    """A virtual function of SR-IOV as net<number>, below a switch of its own. Gives its PCI
    address."""
    root = 0x10 * number
    function = (*switch_path(root, 1)[:-1], f"0000:{root + 4:02x}:01.2")
    device = machine.pci(function, CX6_VF, kind="0x020000", link=("Unknown", "Unknown"))
    physical = machine.pci(switch_path(root, 1), CX7, kind="0x020000")
    machine.link(f"{device}/physfn", physical)
    machine.nic(
        f"net{number}", device=device, driver="mlx5_core", speed=400000, mtu=9000, address=address
    )
    gids = table(first, *([] if address is None else [address.partition("/")[0]]))
    machine.hca(hca, device, layer="Ethernet", gids=gids, **port)  # type: ignore[arg-type]
    verbs_file(machine, hca, len(machine.hca_files()) - 1)
    return function[-1]


def vf_pod(root: Path, addresses: Sequence[str], gpus: int = 1) -> Machine:
    """A pod with virtual functions net1, net2, …, of adapters mlx5_10, mlx5_11, …"""
    machine = pod(root, gpus)
    for number, address in enumerate(addresses, start=1):
        add_vf(machine, number, address, hca=f"mlx5_{9 + number}")
    return machine


def macvlan_pod(root: Path, own: str = "192.168.2.5/24", *, index: int = 6) -> Machine:
    """A pod with a macvlan over a physical RoCE adapter that all pods of its node share: the
    adapter's table has the node's address, another pod's and this pod's."""
    machine = pod(root)
    machine.nic("net1", devtype="macvlan", mtu=1500, address=own, is_pair=True)
    device = machine.pci(switch_path(0x10, 1), CX7, kind="0x020000")
    address = own.partition("/")[0]
    gids = [*table(2, "10.1.1.4", "192.168.2.9"), *table(index, address)[2:]]
    machine.hca("mlx5_1", device, layer="Ethernet", gids=gids)
    verbs_file(machine, "mlx5_1", 0)
    machine.file("/sys/module/ib_core/parameters/netns_mode", "Y\n")
    return machine


def ib_pod(root: Path, *, state: str = "4: ACTIVE") -> Machine:
    """A pod with two InfiniBand ports that have no IP interface."""
    machine = pod(root, gpus=2)
    for index in range(2):
        device = machine.pci(switch_path(0x10 + 0x10 * index, 1), CX7)
        machine.hca(f"mlx5_{index}", device, state=state, gids=[(0, IB_GID, "IB/RoCE v1")])
        verbs_file(machine, f"mlx5_{index}", index)
    return machine
