"""Proves catalog/fabrics.py and its data: what is told of each fabric can stand in a pod."""

import re

import pytest
from pydantic import ValidationError

from broadgauge.catalog.fabrics import FabricProfile, find_fabric, known_fabrics
from broadgauge.catalog.nccl_variables import find_nccl_variable
from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.transports import RDMA
from broadgauge.specs.secrets.variables import VARIABLE_PATTERN

NAMES = (
    "roce-shared",
    "roce-sriov",
    "infiniband-shared",
    "infiniband-sriov",
    "ibm-vnic",
    "ibm-cluster-network",
    "efa",
    "gpudirect-tcpx",
    "gpudirect-tcpxo",
)
EACH = pytest.mark.parametrize("fabric", known_fabrics(), ids=lambda fabric: fabric.name)


def test_every_fabric_is_there_once() -> None:
    assert tuple(fabric.name for fabric in known_fabrics()) == NAMES
    words = [word for fabric in known_fabrics() for word in fabric.names()]
    assert len(set(words)) == len(words)
    for fabric in known_fabrics():
        for word in fabric.names():
            assert find_fabric(word) is fabric


def test_an_unknown_name_is_refused_with_what_was_meant() -> None:
    with pytest.raises(InputError) as refused:
        find_fabric("roce-shard")
    assert refused.value.message == "the catalog has no fabric `roce-shard`"
    assert refused.value.hint == "did you mean `roce-shared`?"
    with pytest.raises(InputError) as refused:
        find_fabric("zzz")
    assert refused.value.hint is not None
    assert set(NAMES) <= set(refused.value.hint.removeprefix("known: ").split(", "))


@EACH
def test_each_says_where_it_is_from_and_what_it_needs(fabric: FabricProfile) -> None:
    """`broadgauge catalog check` looks at both for all kinds; here it is a must."""
    assert fabric.source
    assert fabric.date
    assert fabric.needs


@EACH
def test_who_attaches_it_has_what_that_takes(fabric: FabricProfile) -> None:
    if fabric.attaches == "resource":
        assert fabric.resource, "nothing else brings its NICs"
    if fabric.attaches != "multus":
        assert fabric.attachments == ()
    if fabric.is_source_checked:  # a cloud's guest: its NIC is a virtual function, or virtio
        assert {"host-device"} <= set(fabric.attachments) <= {"host-device", "existing"}
    if fabric.transport == "infiniband":
        assert {"macvlan", "ipvlan", "bridge"}.isdisjoint(fabric.attachments)
        assert fabric.attachments


@EACH
def test_its_variables_are_ones_that_somebody_reads(fabric: FabricProfile) -> None:
    """A published job sets NCCL_IB_HBA for NCCL_IB_HCA: nobody told its authors."""
    for name, text in fabric.environment.items():
        assert re.fullmatch(VARIABLE_PATTERN, name)
        assert text == text.strip() != ""
        if name.startswith(("NCCL_", "FI_", "OFI_")):
            assert find_nccl_variable(name), name


@EACH
def test_a_fabric_chooses_no_adapters(fabric: FabricProfile) -> None:
    """Which are there depends on the node; but with a plugin of its own they have fixed names."""
    chosen = {"NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "NCCL_TOPO_FILE", "NCCL_DEBUG"}
    if fabric.attaches != "gke":
        chosen.add("NCCL_SOCKET_IFNAME")
    assert chosen.isdisjoint(fabric.environment)


@EACH
def test_interfaces_are_as_many_as_nics(fabric: FabricProfile) -> None:
    """GKE's annotation calls them eth1 and so on."""
    for name in ("NCCL_GPUDIRECTTCPX_SOCKET_IFNAME", "NCCL_FASTRAK_IFNAME"):
        if name in fabric.environment:
            interfaces = [f"eth{1 + i}" for i in range(fabric.nics_per_node or 0)]
            assert fabric.environment[name].split(",") == interfaces


@EACH
def test_what_its_variables_name_is_mounted_there(fabric: FabricProfile) -> None:
    pairs = [(fabric.environment, fabric.host_paths)]
    if fabric.daemon is not None:
        pairs.append((fabric.daemon.environment, fabric.daemon.host_paths))
    for environment, host_paths in pairs:
        mounts = tuple(each.mount for each in host_paths)
        for path in (text for text in environment.values() if text.startswith("/")):
            assert path.startswith(mounts), path


@EACH
def test_a_folder_has_one_name_in_a_pod(fabric: FabricProfile) -> None:
    """Ranks and daemon see it by a volume of this name."""
    daemon = () if fabric.daemon is None else fabric.daemon.host_paths
    both = (*fabric.host_paths, *daemon)
    assert len({each.name for each in both}) == len({each.path for each in both})


def test_ibms_cluster_network_is_as_ibm_publishes_it() -> None:
    """Source: cn-hopper-1-profile.md of ibm-cloud-docs/vpc, 2026-06-26: 3.2 Tbit/s, 8 × 400."""
    fabric = find_fabric("ibm-cluster-network")
    assert fabric.nominal_gbps is not None
    assert fabric.nics_per_node is not None
    assert fabric.nominal_gbps * fabric.nics_per_node == 3200
    assert fabric.environment["NCCL_IB_QPS_PER_CONNECTION"] == "16"
    assert fabric.environment["NCCL_IB_PCI_RELAXED_ORDERING"] == "2"
    assert fabric.resource is None  # whoever set up the cluster chose it
    assert find_fabric("ibm-vnic").transport not in RDMA


@pytest.mark.parametrize(
    "changes",
    [
        {"resource": "gpu"},
        {"resource": "rdma/A b"},
        {"pod_resources": {"huge pages": "1Gi"}},
        {"environment": {"NCCL-IB": "1"}},
        {"host_paths": [{"name": "Sys", "path": "/sys", "mount": "/sys"}]},
        {"host_paths": [{"name": "sys", "path": "sys", "mount": "/sys"}]},
        {"daemon": {"name": "d", "image": "no image", "command": ["true"]}},
        {"daemon": {"name": "d", "image": "a:1", "command": []}},
        {"daemon": {"name": "d", "image": "a:1", "command": ["a"], "capabilities": ["net"]}},
        {"attachments": ["pod"]},
        {"mtu_bytes": 9},
        {"resourse": "rdma/a"},
    ],
)
def test_what_no_cluster_takes_is_refused(changes: dict[str, object]) -> None:
    plain = {"name": "ours", "transport": "roce", "source": "our own cluster"}
    FabricProfile.model_validate(plain)
    with pytest.raises(ValidationError):
        FabricProfile.model_validate({**plain, **changes})
