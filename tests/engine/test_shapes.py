"""Proves engine/shapes.py: shapes mean what the platform's own devices allow, wherever it is."""

from dataclasses import replace

import pytest

from broadgauge.engine.shapes import resolve_cluster
from broadgauge.specs.errors import InputError
from broadgauge.specs.machines.cluster import Cluster
from broadgauge.specs.platforms import Devices

SHARED = Devices(place="this machine", num_gpus=8, num_cores=64, are_shared=True)
OF_EACH_NODE = replace(SHARED, place="each host", are_shared=False, most_nodes=4)


def shapes(cluster: Cluster, devices: Devices) -> list[str]:
    return [str(shape) for shape in resolve_cluster(cluster, "emulated", devices).shapes]


def test_auto_shares_one_machines_gpus_and_takes_all_of_each_node_elsewhere() -> None:
    cluster = Cluster(shapes=("1xauto", "2xauto", "2xall"))
    assert shapes(cluster, SHARED) == ["1x4", "2x4"]
    assert shapes(cluster, OF_EACH_NODE) == ["1x8", "2x8"]


def test_gpus_are_counted_where_they_are() -> None:
    cluster = Cluster(shapes=("1x1", "4x8"))
    there = resolve_cluster(cluster, "emulated", OF_EACH_NODE)
    assert (there.device, there.backends) == ("cuda", ("nccl",))
    here = resolve_cluster(cluster, "emulated", SHARED)
    assert here.device == "cpu"
    assert here.notes == ("8 GPUs for 32 ranks: CPUs are used",)
    with pytest.raises(InputError, match="and this machine has 8 GPUs"):
        resolve_cluster(Cluster(shapes=("4x8",), device="cuda"), "emulated", SHARED)


def test_cores_are_shared_out_or_each_nodes_own() -> None:
    cluster = Cluster(shapes=("1x8", "4x8"))
    here = resolve_cluster(cluster, "emulated", SHARED)
    assert [here.cores_per_node(shape) for shape in here.shapes] == [16, 16]
    there = resolve_cluster(cluster, "emulated", OF_EACH_NODE)
    assert [there.cores_per_node(shape) for shape in there.shapes] == [64, 64]


def test_more_nodes_than_there_are_is_refused_or_left_to_another_platform() -> None:
    cluster = Cluster(shapes=("2x8", "5x8"))
    with pytest.raises(InputError, match=r"cluster\.shapes: 5x8: the platform local has 4 nodes"):
        resolve_cluster(cluster, "local", OF_EACH_NODE)
    resolved = resolve_cluster(cluster, "local", OF_EACH_NODE, is_only=False)
    assert [str(shape) for shape in resolved.shapes] == ["2x8"]
    assert resolved.notes == ("shape 5x8 is not run on local: the platform local has 4 nodes",)
    one = replace(SHARED, most_nodes=1)
    with pytest.raises(InputError, match="2x1: the platform local has 1 node"):
        resolve_cluster(Cluster(shapes=("2x1",)), "local", one, is_only=False)
