"""Do a master and seven workers measure over a VPC by the address map, and by IPAM at a switch?

The VPC drops what comes from another address than it gave to the node, and counts it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import Fabric, Image, KubeletConfig, NodeSpec, host_image
from tests.kubernetes.test_runs import ANY_UID, User

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.root,
    pytest.mark.namespaces,
    pytest.mark.measuring,
]
NUM_NODES = 8
NODES = [f"map-{number}" for number in range(NUM_NODES)]
GIVEN = {name: f"10.249.{65 if name == NODES[0] else 66}.{4 + n}" for n, name in enumerate(NODES)}
"""The first node's NIC is in another subnet than the others', as in the published map."""
MAP_FILE = "nodename_ip_mapping.yaml"
VPC = {
    "attachment": "host-device",
    "devices": ["ens13"],
    "ipam": {"kind": "address-map", "map": MAP_FILE},
}
SWITCH = {
    "attachment": "host-device",
    "devices": ["ens14"],
    "ipam": {"kind": "whereabouts", "ranges": "10.30.0.0/24"},
}
MESSAGE_BYTES = 1 << 20


@pytest.fixture(scope="module")
def kubelet(
    control_plane: ControlPlane, crds: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubelet]:
    del crds
    config = KubeletConfig(
        kubeconfig=control_plane.kubeconfig(),
        folder=tmp_path_factory.mktemp("k") / "k",
        nodes=[NodeSpec(name=name, resources={"cpu": "8", "memory": "16Gi"}) for name in NODES],
        fabrics=[
            Fabric(
                name="vpc",
                device="ens13",
                addresses={name: f"{address}/24" for name, address in GIVEN.items()},
                only_given_addresses=True,
            ),
            Fabric(name="switch", device="ens14"),
        ],
        default_image=Image(env=host_image().env, user=ANY_UID),
    )
    with Kubelet.start(config) as started:
        yield started


@pytest.fixture
def user(
    control_plane: ControlPlane, kubelet: Kubelet, namespace: str, tmp_path: Path
) -> Iterator[User]:
    del kubelet
    with control_plane.client() as cluster:
        yield User(
            folder=tmp_path,
            kubeconfig=control_plane.kubeconfig(),
            namespace=namespace,
            cluster=cluster,
        )


def write(user: User, addresses: dict[str, str], networks: dict[str, Any]) -> None:
    """One all_reduce of eight nodes over each network."""
    lines = [f"{name}:ens13:net1:{address}\n" for name, address in addresses.items()]
    (user.folder / MAP_FILE).write_text("".join(lines))
    user.write(
        cluster={"shapes": [f"{NUM_NODES}x1"]},
        networks=[{"name": name, "kubernetes": face} for name, face in networks.items()],
        workloads=[{"kind": "collectives", "ops": ["all_reduce"], "sizes": [MESSAGE_BYTES]}],
        launches=1,
    )


def counted(kubelet: Kubelet, fabric: str, what: str) -> list[int]:
    return [kubelet.counters(fabric, name)[what] for name in NODES]


def test_eight_nodes_measure_over_a_vpc_and_a_switch(user: User, kubelet: Kubelet) -> None:
    """Each byte of a network is counted on its own fabric; none is dropped."""
    write(user, GIVEN, {"vpc": VPC, "switch": SWITCH})
    output = user.run()
    records = user.records()
    assert [record["status"] for record in records] == ["ok", "ok"], output
    assert {record["network"] for record in records} == {"vpc", "switch"}
    assert "preflight: 56 calls between 8 pods over 2 networks" in output, output
    for fabric in ("vpc", "switch"):
        assert counted(kubelet, fabric, "dropped_packets") == [0] * NUM_NODES
        sent = counted(kubelet, fabric, "tx_bytes")
        assert min(sent) > 10 * MESSAGE_BYTES, sent  # a ring's rank sends 7/4 of the message
        assert min(sent) > max(counted(kubelet, "pods", "tx_bytes"))
    assert user.left() == []


@pytest.mark.thorough
def test_addresses_that_were_swapped_are_said_before_ranks_start(
    user: User, kubelet: Kubelet
) -> None:
    """What the two nodes send is dropped, so nothing reaches them, and no launch waits for it."""
    swapped = GIVEN | {NODES[3]: GIVEN[NODES[5]], NODES[5]: GIVEN[NODES[3]]}
    before = counted(kubelet, "vpc", "dropped_packets")
    write(user, swapped, {"vpc": VPC})
    tool = user.start("experiment.yaml")
    output, _ = tool.communicate(timeout=240)
    after = counted(kubelet, "vpc", "dropped_packets")
    are_dropped = [late > early for early, late in zip(before, after, strict=True)]
    assert are_dropped == [name in (NODES[3], NODES[5]) for name in NODES]
    said = re.findall(r"network vpc, NIC 0: node (\d) and all others fail", output)
    assert len(set(said)) == 2, output
    assert not any(record["status"] == "ok" for record in user.records())
    assert user.left() == []
