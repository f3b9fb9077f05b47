"""Do the published comparisons run on a cluster as they stand in examples/, and is their report the
articles' table?

At toy scale on CPUs; networks let through only the addresses that they gave, as a VPC does. What
asks for RDMA runs as far as the refusal: nodes only say that they have GPUs and adapters.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.kubernetes.article_tables import Tables
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.scratch import Scratch
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import Fabric, KubeletConfig, NodeSpec, host_image
from tests.kubernetes.runs import User

from broadgauge.agent.pod.address_map import MappedNic, parse_map
from broadgauge.running.experiments import examples_folder
from broadgauge.specs.errors import ExitCode

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.root,
    pytest.mark.namespaces,
    pytest.mark.usefixtures("operators"),
]
RDMASHARED_NET = (
    '{ "cniVersion":"0.3.1", "name":"rdmashared-net", "type":"macvlan","master": "ens8f0np0",'
    '"mode" : "bridge","mtu" : 1500,"ipam":{"type":"whereabouts","range":"192.168.2.0/24",'
    '"gateway":"192.168.2.1"} }'
)
"""The LoRA article's: what the operator made of its MacvlanNetwork."""
GPUS = {"nvidia.com/gpu": "8"}
"""What nodes say that they have."""
SMALL = (
    "model={kind: llama, layers: 1, hidden: 64, heads: 2, ffn_hidden: 128, seq_len: 16, "
    "vocabulary: 256}",
    "data={samples: 20, mean_length: 8}",
    "packing={max_batch_len: 24, effective_batch_size: 8}",
)
"""Of a training that packs samples: epochs of 3 steps."""

SMALL_LLAMA = (
    "model={kind: llama, layers: 1, hidden: 64, heads: 2, ffn_hidden: 128, seq_len: 16, "
    "vocabulary: 256}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An article's cluster, as far as processes can be it."""

    nodes: list[str]
    fabrics: list[Fabric]
    resources: dict[str, str] = field(default_factory=dict)
    """Of each node, on top of CPUs and memory."""

    @contextmanager
    def kubelet(self, control_plane: ControlPlane, folder: Path) -> Iterator[Kubelet]:
        resources = {"cpu": "32", "memory": "200Gi"} | self.resources
        config = KubeletConfig(
            **control_plane.for_kubelets(),
            folder=folder,
            nodes=[NodeSpec(name=name, resources=resources) for name in self.nodes],
            fabrics=self.fabrics,
            default_image=replace(host_image(), user=12_345),
        )
        with Kubelet.start(config) as started:
            yield started


def on_a_vpc(map_name: str, num_nodes: int) -> Place:
    """The first nodes of an example's address map, and a subnet for each of their devices."""
    rows = parse_map((examples_folder() / "address-maps" / map_name).read_text())
    nodes = list(dict.fromkeys(row.host for row in rows))[:num_nodes]
    kept = [row for row in rows if row.host in nodes]
    devices = dict.fromkeys(row.device for row in kept)
    return Place(nodes=nodes, fabrics=[_subnet(each, kept) for each in devices])


def _subnet(device: str, rows: list[MappedNic]) -> Fabric:
    return Fabric(
        name=device,
        device=device,
        addresses={row.host: str(row.address) for row in rows if row.device == device},
        only_given_addresses=True,
    )


A40 = Place(nodes=["a40-0", "a40-1"], fabrics=[Fabric(name="spectrum", device="ens8f0np0")])


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """An example at toy scale, and what its report must have of the article's table."""

    example: str
    place: Place
    settings: tuple[str, ...]
    cases: tuple[tuple[str, str], ...]
    """Network and nodes x GPUs, in the article's order."""
    published: tuple[str, ...]
    """Of the article's rows those that have one of ours beside them."""


# What takes the time is ranks that import torch: each network is run at one shape, and HSDP, which
# needs two ranks a node, is granite-h100's alone. That each published row has a case of its own
# example is held in tests/examples.
TWINS = {
    "granite-l40s": Twin(
        example="granite-l40s-cpu",
        place=on_a_vpc("granite-l40s.txt", 4),
        settings=(
            *("cluster.shapes=[1x1, 2x1, 4x1]", "workloads.0.strategy=fsdp"),
            "skip_if=[{network: pod, nodes: 4}, {network: vnic, nodes: 2}]",
            *(f"workloads.0.{each}" for each in SMALL),
        ),
        cases=(("one node", "1x1"), ("pod", "2x1"), ("vnic", "4x1")),
        published=("L40S, 1 node", "L40S, 2 nodes, pod network", "L40S, 4 nodes, vNIC"),
    ),
    "granite-h100": Twin(
        example="granite-h100-cpu",
        place=on_a_vpc("granite-h100.txt", 2),
        settings=(
            *("networks.sriov.nics_per_node=[1]", "skip_if=[{network: 'vnic*'}]"),
            *(f"workloads.0.{each}" for each in SMALL),
        ),
        cases=(("one node", "1x2"), ("pod", "2x2"), ("sriov-nics-1", "2x2")),
        published=(
            *("H100, 1 node", "H100, 2 nodes, pod network", "H100, 2 nodes, SR-IOV"),
            "H100, 2 nodes on the pod network over 1 node",
        ),
    ),
    "llama-lora-a40": Twin(
        example="llama-lora-a40",
        place=A40,
        settings=(
            *("cluster.device=cpu", "cluster.shapes=[2x1]", "workloads.1.platforms=[]"),
            *(f"workloads.0.{SMALL_LLAMA}", "workloads.0.dtype=float32", "workloads.0.steps=4"),
        ),
        cases=(("pod", "2x1"), ("tcp", "2x1")),
        published=("pod network over macvlan TCP, LoRA fine-tuning of Llama 3.1 8B",),
    ),
}


def add_definition(scratch: Scratch) -> None:
    """What an admin has made for the LoRA article."""
    scratch.create(
        {
            "apiVersion": "k8s.cni.cncf.io/v1",
            "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": "rdmashared-net"},
            "spec": {"config": RDMASHARED_NET},
        }
    )


def words_of(scratch: Scratch, example: str, settings: tuple[str, ...]) -> tuple[str, ...]:
    """Of `run` and `render`: the example in this namespace, its launches once."""
    texts = (f"kubernetes.namespace={scratch.namespace}", "launches=1", *settings)
    return (example, *(word for text in texts for word in ("--set", text)))


@pytest.mark.parametrize("name", TWINS)
def test_the_twins_report_has_the_articles_table(
    scratch: Scratch, control_plane: ControlPlane, tmp_path: Path, name: str
) -> None:
    """A master and its workers over the article's address map, too: nothing was dropped."""
    twin, user = TWINS[name], User(scratch, control_plane, tmp_path)
    add_definition(scratch)
    words = words_of(scratch, twin.example, twin.settings)
    user.give_rights(*words)
    with twin.place.kubelet(control_plane, tmp_path / "k") as kubelet:
        output = user.run(*words, "--on", "kubernetes")
        dropped = [
            kubelet.counters(fabric.name, node)["dropped_packets"]
            for fabric in twin.place.fabrics
            for node in twin.place.nodes
        ]
    assert set(user.statuses()) == {"ok"}, output
    assert set(dropped) == {0}
    assert user.left() == []
    tables = Tables((user.run_folder / "report.html").read_text())
    cases = tuple((row[0][0], row[0][1].rpartition(" ")[2]) for row in tables.headed("network"))
    assert cases == twin.cases
    ours = {row[0][0]: "".join(row[3]) for row in tables.headed("published")}
    assert [label for label, text in ours.items() if text[:1].isdigit()] == list(twin.published)


REFUSED = {
    "llama-lora-a40": (
        replace(A40, resources=GPUS | {"rdma/rdma_shared_device_eth": "63"}),
        "roce",
        ("skip_if=[{network: [pod, tcp]}]", "workloads.1.platforms=[]"),
    ),
    "granite-h100": (
        replace(
            on_a_vpc("granite-h100.txt", 2),
            resources=GPUS | {"nvidia.com/roce": "8", "memory": "1792Gi"},
        ),
        "sriov-rdma-nics-1",
        (
            "networks.sriov-rdma.nics_per_node=[1]",
            "skip_if=[{network: [one node, pod, 'vnic*', 'sriov-nics*']}]",
            "workloads.1.platforms=[]",
        ),
    ),
}
"""Its cluster, the RDMA network, and what leaves that and our own trainer."""


@pytest.mark.parametrize("name", REFUSED)
def test_rdma_that_is_asked_for_and_is_not_there_refuses_to_train(
    scratch: Scratch, control_plane: ControlPlane, tmp_path: Path, name: str
) -> None:
    """The articles' files for GPUs, on nodes that have them and adapters in name only."""
    place, network, settings = REFUSED[name]
    user = User(scratch, control_plane, tmp_path)
    add_definition(scratch)
    words = words_of(scratch, name, settings)
    user.give_rights(*words)
    with place.kubelet(control_plane, tmp_path / "k"):
        output = user.run(*words, "--on", "kubernetes", exit_code=ExitCode.TRIALS_FAILED)
    (record,) = user.records()
    message = record["error"]["message"]
    assert f"network {network}" in message, output
    assert "`roce` is asked for" in message, output
    assert record["metrics"] == {}
    assert user.left() == []
