"""Do the published comparisons run on a cluster as they stand in examples/, and is their report the
articles' table?

Their toy twins train on CPUs: pods are processes on emulated nodes, whose networks have the twins'
rates and let through only the addresses that they gave, as a VPC does. The files for GPUs run as
far as the refusal: nodes that only say that they have GPUs and RDMA have neither.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from lightkube.resources.core_v1 import Node
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.objects import Objects
from tests.kubernetes.cluster.operators import Operators
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import (
    Fabric,
    Image,
    KubeletConfig,
    NodeSpec,
    Storage,
    host_image,
)
from tests.kubernetes.test_runs import ANY_UID, User
from tests.sharding import one_of

from broadgauge.agent.pod.address_map import MappedNic, parse_map
from broadgauge.running.experiments import examples_folder, load
from broadgauge.specs.network import Network

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.root,
    pytest.mark.namespaces,
    pytest.mark.measuring,
]
CEPHFS = "ocs-storagecluster-cephfs"
"""The article's StorageClass."""
RDMASHARED_NET = (
    '{ "cniVersion":"0.3.1", "name":"rdmashared-net", "type":"macvlan","master": "ens8f0np0",'
    '"mode" : "bridge","mtu" : 1500,"ipam":{"type":"whereabouts","range":"192.168.2.0/24",'
    '"gateway":"192.168.2.1"} }'
)
"""The article's: what the operator made of its MacvlanNetwork."""
GPU_NODE = {"cpu": "160", "nvidia.com/gpu": "8", "rdma/rdma_shared_device_eth": "63"}
"""What nodes say that they have: the articles' cores and GPUs a node or more, and rdmaHcaMax."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An article's cluster, as far as processes can be it."""

    nodes: list[str]
    fabrics: list[Fabric]
    pod_network_gbps: float | None = None
    resources: dict[str, str] = field(default_factory=dict)
    """Of each node, on top of CPUs and memory."""

    @contextmanager
    def user(self, control_plane: ControlPlane, namespace: str, folder: Path) -> Iterator[User]:
        """Somebody before it. Nodes of earlier tests are gone, and so are these afterwards."""
        resources = {"cpu": "8", "memory": "200Gi"} | self.resources
        config = KubeletConfig(
            kubeconfig=control_plane.kubeconfig(),
            folder=folder / "k",
            nodes=[NodeSpec(name=name, resources=resources) for name in self.nodes],
            pod_network=Fabric(name="pods", rate_gbps=self.pod_network_gbps),
            fabrics=self.fabrics,
            default_image=Image(env=host_image().env, user=ANY_UID),
            storage=Storage(class_name=CEPHFS, folder=folder / "volumes"),
        )
        with control_plane.client() as cluster:
            self._forget(cluster)
            with Kubelet.start(config):
                yield User(
                    folder=folder,
                    kubeconfig=control_plane.kubeconfig(),
                    namespace=namespace,
                    cluster=cluster,
                )
            self._forget(cluster)

    @staticmethod
    def _forget(cluster: Any) -> None:
        for node in list(cluster.list(Node)):
            cluster.delete(Node, node.metadata.name)


def rates_gbps(example: str) -> dict[str, float | None]:
    """Of each network of a toy twin."""
    networks = load(example, ()).experiment.networks
    return {each.name: each.rate_gbps for each in networks if isinstance(each, Network)}


def on_a_vpc(map_name: str, num_nodes: int, rates: dict[str, float | None]) -> dict[str, Any]:
    """The first nodes of an example's address map, and a subnet for each of their devices.

    `rates`: Gbit/s by what a device's name begins with.
    """
    rows = parse_map((examples_folder() / "address-maps" / map_name).read_text())
    nodes = list(dict.fromkeys(row.host for row in rows))[:num_nodes]
    kept = [row for row in rows if row.host in nodes]
    devices = dict.fromkeys(row.device for row in kept)
    return {"nodes": nodes, "fabrics": [_subnet(each, kept, rates[each[:3]]) for each in devices]}


def _subnet(device: str, rows: list[MappedNic], rate_gbps: float | None) -> Fabric:
    return Fabric(
        name=device,
        device=device,
        rate_gbps=rate_gbps,
        addresses={row.host: str(row.address) for row in rows if row.device == device},
        only_given_addresses=True,
    )


def granite_h100(**more: Any) -> Place:
    rates = rates_gbps("granite-h100-cpu")
    place = on_a_vpc("granite-h100.txt", 2, {"ens": rates["vnic-nics-1"], "enp": None})
    return Place(**place, pod_network_gbps=rates["pod"], **more)


def granite_l40s() -> Place:
    rates = rates_gbps("granite-l40s-cpu")
    place = on_a_vpc("granite-l40s.txt", 4, {"ens": rates["vnic"]})
    return Place(**place, pod_network_gbps=rates["pod"])


def llama_a40(**more: Any) -> Place:
    rates = rates_gbps("llama-lora-a40-cpu")
    fabric = Fabric(name="spectrum", device="ens8f0np0", rate_gbps=rates["tcp"])
    return Place(nodes=["a40-0", "a40-1"], fabrics=[fabric], pod_network_gbps=rates["pod"], **more)


def add_definition(control_plane: ControlPlane, namespace: str) -> None:
    """What an admin has made: the NetworkAttachmentDefinition of the LoRA article."""
    metadata = {"name": "rdmashared-net", "namespace": namespace}
    definition = {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": metadata,
        "spec": {"config": RDMASHARED_NET},
    }
    with control_plane.http() as http:
        Objects(http).apply(definition)


def run(user: User, example: str, *settings: str, exit_code: int = 0) -> str:
    """The example on this cluster, its launches once."""
    texts = (f"kubernetes.namespace={user.namespace}", "launches=1", *settings)
    flags = [word for text in texts for word in ("--set", text)]
    return user.run(example, "--on", "kubernetes", *flags, exit_code=exit_code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A toy twin, and the article's table as its report must have it."""

    place: Place
    shorter: tuple[str, ...] = ()
    """What is set: on two cores all sizes would take minutes."""
    rows: tuple[tuple[str, str], ...]
    """Of the report's table: network, workload and nodes x GPUs, in the article's order."""
    published: dict[str, str]
    """The article's rows, in its order: what stands under `to the first`, or `none`."""


def granite_h100_twin() -> Twin:
    over_one_node = {"pod network": "0.162×", "vNIC": "0.575×", "SR-IOV": "1.89×"}
    return Twin(
        place=granite_h100(),
        shorter=("networks.vnic.nics_per_node=[1]", "networks.sriov.nics_per_node=[1, 2]"),
        rows=(
            ("one node", "granite 1x1"),
            *(
                (name, "granite 2x1")
                for name in ("pod", "vnic-nics-1", "sriov-nics-1", "sriov-nics-2")
            ),
        ),
        published={
            "H100, 1 node": "–",
            **{f"H100, 2 nodes, {name}": ratio for name, ratio in over_one_node.items()},
            "H100, 2 nodes, SR-IOV with RDMA": "none",
        },
    )


def granite_l40s_twin() -> Twin:
    over_one_node = {(2, "pod network"): "1.43×", (4, "pod network"): "1.83×"}
    over_one_node |= {(2, "vNIC"): "1.95×", (4, "vNIC"): "3.51×"}
    return Twin(
        place=granite_l40s(),
        shorter=(
            "cluster.shapes=[1x1, 2x1, 4x1]",
            "workloads.granite.packing.effective_batch_size=32",
        ),
        rows=(
            ("one node", "granite 1x1"),
            *((name, f"granite {n}x1") for n in (2, 4) for name in ("pod", "vnic")),
        ),
        published={
            "L40S, 1 node": "–",
            **{f"L40S, {n} nodes, {name}": ratio for (n, name), ratio in over_one_node.items()},
        },
    )


def llama_a40_twin() -> Twin:
    return Twin(
        place=llama_a40(),
        rows=(("pod", "llama 2x1"), ("tcp", "llama 2x1")),
        published={
            "pod network over macvlan TCP, LoRA fine-tuning of Llama 3.1 8B": "2×",
            "pod network over GPUDirect RoCE, LoRA fine-tuning of Llama 3.1 8B": "none",
        },
    )


TWINS = {
    "granite-h100": granite_h100_twin,
    "granite-l40s": granite_l40s_twin,
    "llama-lora-a40": llama_a40_twin,
}


class Tables(HTMLParser):
    """Rows of cells of each table, a cell as its texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[list[list[list[str]]]] = []
        self._is_in_cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if tag == "table":
            self.found.append([])
        elif tag == "tr":
            self.found[-1].append([])
        elif tag in ("td", "th"):
            self.found[-1][-1].append([])
            self._is_in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self._is_in_cell = self._is_in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._is_in_cell:
            self.found[-1][-1][-1].append(data.replace("\xa0", " "))

    def headed(self, first: str) -> tuple[list[str], list[list[list[str]]]]:
        """Titles and rows of the first table whose first column is called so."""
        head, *rows = next(table for table in self.found if table[0][0] == [first])
        return ["".join(cell) for cell in head], rows


@pytest.mark.thorough
@pytest.mark.parametrize("name", TWINS)
def test_the_twins_report_has_the_articles_table(
    control_plane: ControlPlane, operators: Operators, namespace: str, tmp_path: Path, name: str
) -> None:
    """Its rows, columns and order, and what each is over the article's baseline."""
    del operators
    twin = TWINS[name]()
    add_definition(control_plane, namespace)
    with twin.place.user(control_plane, namespace, tmp_path) as user:
        output = run(user, f"{name}-cpu", *twin.shorter)
        assert {record["status"] for record in user.records()} == {"ok"}, output
        assert "meant as RDMA, and ranks on CPUs talk over Gloo" in output or "l40s" in name
        tables = Tables((user.run_folder / "report.html").read_text())
        assert user.left() == []
    check_table(tables, twin)


def check_table(tables: Tables, twin: Twin) -> None:
    """Networks and sizes with their throughput; below it the published rows beside ours."""
    titles, rows = tables.headed("network")
    assert titles[:4] == ["network", "line rate", "step time", "tokens/s"]
    assert ("scaling" in titles) is (len({size for _, size in twin.rows}) > 1)
    assert tuple((row[0][0], row[0][1]) for row in rows) == twin.rows
    assert {row[1][0] for row in rows} <= {"–", "found"}  # nobody shaped a pod's network
    titles, rows = tables.headed("published")
    assert titles == ["published", "metric", "theirs", "ours", "ours / theirs", "to the first"]
    shown = {row[0][0]: row for row in rows}
    assert [label for label in shown if label in twin.published] == list(twin.published)
    for label, words in twin.published.items():
        _, _, theirs, ours, _, to_first = ("".join(cell) for cell in shown[label])
        if words == "none":
            assert ours.startswith("none: no case"), label
        else:
            assert ours[0].isdigit(), label
            assert words in theirs + to_first, label


REFUSED = {
    "granite-h100": (
        granite_h100,
        "sriov-rdma-nics-1",
        (
            "networks.sriov-rdma.nics_per_node=[1]",
            "skip_if=[{network: [one node, pod, 'vnic*', 'sriov-nics*']}]",
        ),
    ),
    "llama-lora-a40": (llama_a40, "roce", ("skip_if=[{network: [pod, tcp]}]",)),
}
"""Its cluster, the RDMA network, and what leaves only that."""


@pytest.mark.parametrize("name", one_of(REFUSED, "llama-lora-a40"))
def test_rdma_that_is_asked_for_and_is_not_there_refuses_to_train(
    control_plane: ControlPlane, operators: Operators, namespace: str, tmp_path: Path, name: str
) -> None:
    """The file for GPUs as it is, on nodes that offer GPUs, resource and interface in name only."""
    del operators
    make_place, network, settings = REFUSED[name]
    add_definition(control_plane, namespace)
    with make_place(resources=GPU_NODE).user(control_plane, namespace, tmp_path) as user:
        output = run(user, name, *settings, exit_code=3)
        records = user.records()
        assert len(records) == 2, output
        for record in records:
            message = record["error"]["message"]
            assert f"network {network}" in message
            assert "`roce` is asked for, and no RDMA adapter belongs to net" in message
            assert "no RDMA adapter is in this pod" in message
            assert record["metrics"] == {}
        assert user.left() == []
