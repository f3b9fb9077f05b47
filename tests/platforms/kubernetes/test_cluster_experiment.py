"""Is what is written for a cluster an experiment that can be planned and rendered there?"""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.platforms.kubernetes.clusters import NAMES, answers

from broadgauge.agent.pod.address_map import parse_map
from broadgauge.catalog.fabrics import pod_networks
from broadgauge.platforms.kubernetes.cluster_experiment import (
    MAP_FILE,
    ClusterExperiment,
    cluster_experiment,
)
from broadgauge.platforms.kubernetes.found_networks import found_networks
from broadgauge.platforms.kubernetes.inventory import Inventory, NotKnown, inventory_of
from broadgauge.running.experiments import load_text
from broadgauge.running.rendering import render_experiment
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.network import Network


def inventory(name: str) -> Inventory:
    return inventory_of(answers(name))


def written(found: Inventory, context: str | None = None) -> ClusterExperiment:
    return cluster_experiment(found, name="c", namespace="training", context=context)


def loaded(found: ClusterExperiment, folder: Path) -> Experiment:
    """What `validate` and `plan` take, and `render`."""
    path = folder / "experiment.yaml"
    if found.address_map is not None:
        (folder / MAP_FILE).write_text(found.address_map)
    experiment = load_text(found.text, path, ())
    assert render_experiment(experiment, None).files
    return experiment.experiment


@pytest.mark.parametrize("name", NAMES)
def test_it_is_planned_and_rendered_and_the_same_twice(name: str, tmp_path: Path) -> None:
    found = written(inventory(name))
    experiment = loaded(found, tmp_path)
    assert experiment.kubernetes.namespace == "training"
    assert experiment.networks[0].name == "pod"
    assert found == written(inventory(name))


def test_a_vpc_gets_its_address_map(tmp_path: Path) -> None:
    found = written(inventory("vpc"))
    experiment = loaded(found, tmp_path)
    assert experiment.cluster.shapes == ("1x8", "2x8")  # neither the closed node nor the master
    assert [each.key for each in experiment.kubernetes.tolerations] == ["nvidia.com/gpu"]
    assert found.address_map is not None
    rows = parse_map(found.address_map)
    assert [(row.host, row.device, row.interface, str(row.address)) for row in rows] == [
        ("worker-1", "ens13", "net1", "10.249.65.8/26"),
        ("worker-2", "ens13", "net1", "10.249.65.9/26"),
    ]
    _, port, rdma = pod_networks(experiment.networks)[:3]
    assert port.kubernetes is not None
    assert port.kubernetes.ipam is not None
    assert (port.name, port.kubernetes.ipam.kind) == ("network-port-01", "address-map")
    assert rdma.kubernetes is not None
    assert (rdma.kubernetes.transport, len(rdma.kubernetes.definitions)) == ("roce", 3)
    assert "broken: its `config` is no JSON" in found.text
    assert "another-team/others is of another namespace" in found.text
    assert "OpenShift: 4.17.12" in found.text
    assert "gpu-operator v24.9.0" in found.text


def test_several_addresses_are_not_guessed_at(tmp_path: Path) -> None:
    data = answers("vpc")
    for node in data["nodes"]["items"]:
        cidrs = ["10.240.1.9/24", "10.249.1.9/24", "10.249.2.9/24", "169.254.0.2/17"]
        node["metadata"]["annotations"]["k8s.ovn.org/host-cidrs"] = json.dumps(cidrs)
    found = written(inventory_of(data))
    assert found.address_map is not None
    assert "# worker-1:ens13:net1:ADDRESS" in found.address_map
    assert "10.249.1.9/24, 10.249.2.9/24: which device has which" in found.address_map
    assert "169.254" not in found.address_map
    assert any("addresses of ens13 of worker-1, worker-2" in each for each in found.missing)
    assert load_text(found.text, tmp_path / "experiment.yaml", ()).experiment.name == "on-c"


def test_an_own_switchs_rdma_is_paired_with_its_only_network_and_said(tmp_path: Path) -> None:
    found = written(inventory("own_switch"))
    experiment = loaded(found, tmp_path)
    names = [each.name for each in pod_networks(experiment.networks)]
    assert names == [
        "pod",
        "rdmashared-net",
        "rdmashared-net-tcp",
        "rdmashared-net-without-gpudirect",
    ]
    assert "That they belong together is not in the API" in found.text
    assert found.address_map is None
    assert "operators: " in found.text
    assert "(version unknown)" in found.text


def test_two_networks_over_ethernet_leave_a_shared_resource_unpaired() -> None:
    data = answers("own_switch")
    other = json.loads(json.dumps(data["attachments"]["items"][0]))
    other["metadata"]["name"] = "other"
    data["attachments"]["items"].append(other)
    found = written(inventory_of(data))
    assert "transport:" not in found.text
    assert any("rdma/rdma_shared_device_eth: over which network" in each for each in found.missing)


def test_sriov_pools_say_what_is_rdma_and_rails_are_one_network(tmp_path: Path) -> None:
    experiment = loaded(written(inventory("sriov_openshift")), tmp_path)
    faces = {
        each.name.split("-")[0]: each.kubernetes
        for each in experiment.networks
        if isinstance(each, Network)
    }
    roce, infiniband, eth = faces["roce"], faces["ib"], faces["eth"]
    assert roce is not None
    assert infiniband is not None
    assert eth is not None
    assert (roce.transport, roce.definitions) == ("roce", ("roce-1", "roce-2"))
    assert roce.resources == ("openshift.io/roce_a", "openshift.io/roce_b")
    assert infiniband.transport == "infiniband"
    assert eth.transport is None
    assert experiment.cluster.shapes == ("1x8", "2x8", "4x8")
    assert experiment.kubernetes.node_selector == {"nvidia.com/gpu.product": "NVIDIA-H200"}


def test_what_may_not_be_read_is_said_in_the_file_and_beside_it(tmp_path: Path) -> None:
    found = written(inventory("forbidden"))
    loaded(found, tmp_path)
    assert "nodes: unknown, you may not list nodes" in found.text
    for words in ("nodes: unknown", "networks: unknown", "cluster.shapes", "kubernetes.image"):
        assert any(each.startswith(words) for each in found.missing), found.missing


def test_a_cluster_with_nothing_is_its_pod_network_on_cores(tmp_path: Path) -> None:
    found = written(inventory("bare"))
    experiment = loaded(found, tmp_path)
    assert (experiment.cluster.device, experiment.cluster.shapes) == ("cpu", ("1x1", "1x2"))
    assert [each.name for each in experiment.networks] == ["pod"]


def test_efa_is_shown_with_what_it_asks_for() -> None:
    data = answers("own_switch")
    data["attachments"] = NotKnown("the cluster has no k8s.cni.cncf.io")
    for node in data["nodes"]["items"]:
        node["status"]["allocatable"]["vpc.amazonaws.com/efa"] = "4"
    found = written(inventory_of(data))
    assert "# - {name: efa, kubernetes: {attachment: pod, profile: efa}}" in found.text
    assert any(each.startswith("vpc.amazonaws.com/efa") for each in found.missing)


@settings(deadline=None, max_examples=60)
@given(
    text=st.text(max_size=30), key=st.sampled_from(["device", "type", "ipam", "resource", "mtu"])
)
def test_whatever_stands_in_a_definition_breaks_nothing(text: str, key: str) -> None:
    """Its author is not ours: no text of it ends a comment or a value."""
    data = answers("own_switch")
    definition = data["attachments"]["items"][0]
    config = json.loads(definition["spec"]["config"])
    if key == "resource":
        definition["metadata"]["annotations"] = {"k8s.v1.cni.cncf.io/resourceName": text}
    elif key == "ipam":
        config["ipam"] = {"type": text}
    else:
        config["master" if key == "device" else key] = text
    definition["spec"]["config"] = json.dumps(config)
    found = written(inventory_of(data), context=text or None)
    experiment = load_text(found.text, Path("experiment.yaml"), ()).experiment
    assert experiment.networks[0].name == "pod"
    assert experiment.kubernetes.context == (text or None)


def test_two_definitions_of_one_name_in_two_namespaces_are_two_networks() -> None:
    found = inventory("own_switch")
    assert not isinstance(found.definitions, NotKnown)
    [first] = found.definitions
    both = dataclasses.replace(
        found, definitions=(first, dataclasses.replace(first, namespace="training"))
    )
    names = [(each.name, each.definitions) for each in found_networks(both, "training")]
    assert names == [
        ("rdmashared-net", ("default/rdmashared-net",)),
        ("rdmashared-net-2", ("rdmashared-net",)),
    ]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ('{"mtu": ' + "9" * 5000 + "}", "JSON that can't be read"),
        ("[" * 100_000, "JSON that can't be read"),
        ("[]", "no JSON object"),
        ("{", "no JSON: "),
        ({"type": "macvlan"}, "no text"),
        (["macvlan"], "no text"),
        (7, "no text"),
        (True, "no text"),
        ('{"type": {"a": 1}}', "`{'a': 1}` is no name of a plugin"),
        ('{"type": "macvlan\\nworkloads: []\\n# "}', "is no name of a plugin"),
        ('{"type": "macvlan", "ipam": {"type": ["x"]}}', "is no name of a plugin for addresses"),
        ('{"type": "macvlan", "master": ["eth0"]}', "`['eth0']` is no name of a device"),
        ('{"type": "host-device", "device": ".."}', "`..` is no name of a device"),
        ('{"type": "host-device", "device": {"a": 1}}', "is no name of a device"),
    ],
)
def test_a_definition_that_is_not_understood_is_said_and_the_rest_goes_on(
    told: object, words: str, tmp_path: Path
) -> None:
    data = answers("own_switch")
    [first] = data["attachments"]["items"]
    broken = {"metadata": {"name": "broken", "namespace": "training"}, "spec": {"config": told}}
    data["attachments"]["items"] = [broken, first]
    found = written(inventory_of(data))
    names = [each.name for each in pod_networks(loaded(found, tmp_path).networks)]
    assert names[:2] == ["pod", "rdmashared-net"]
    [said] = [each for each in found.missing if each.startswith("network ")]
    assert said.startswith("network training/broken: not understood: ")
    assert said.isprintable()
    assert words in said
    assert "# Left out: training/broken: " in found.text


@pytest.mark.parametrize("name", ["a\nworkloads: []", 7, "x" * 300, None])
def test_what_can_be_no_name_is_left_out(name: object, tmp_path: Path) -> None:
    data = answers("own_switch")
    data["attachments"]["items"][0]["metadata"]["name"] = name
    found = written(inventory_of(data))
    assert [getattr(each, "name", None) for each in loaded(found, tmp_path).networks] == ["pod"]
    assert any("is no name of an object" in each for each in found.missing)


def test_a_resource_too_long_to_ask_for_is_left_out(tmp_path: Path) -> None:
    data = answers("own_switch")
    metadata = data["attachments"]["items"][0]["metadata"]
    metadata["annotations"] = {"k8s.v1.cni.cncf.io/resourceName": "a.-b/" + "c" * 400}
    found = written(inventory_of(data))
    assert [getattr(each, "name", None) for each in loaded(found, tmp_path).networks] == ["pod"]
    assert all(len(each) < 200 for each in found.missing)


TEXTS = st.sampled_from(
    ["", "a", "a\nb: c\n# ", "9" * 5000, "[" * 5000, "\x1b[31m", "nvidia.com/gpu", "10.0.0.1/24"]
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_whatever_stands_anywhere_in_the_answers_breaks_nothing(data: st.DataObject) -> None:
    """Some value of some answer is anything at all: an annotation, a label, a list."""
    told = answers(data.draw(st.sampled_from(["vpc", "sriov_openshift", "own_switch"])))
    _change(
        data, data.draw(st.sampled_from([each for each in told.values() if type(each) is dict]))
    )
    found = written(inventory_of(told))
    experiment = load_text(found.text, Path("experiment.yaml"), ()).experiment
    assert experiment.networks[0].name == "pod"
    assert all(each.isprintable() for each in found.missing)
    for line in (found.address_map or "").splitlines():
        assert line.startswith("#") or line.count(":") == 3


def _change(data: st.DataObject, place: Any) -> None:
    """Some value within, however deep."""
    keys = list(place) if isinstance(place, dict) else list(range(len(place)))
    key = data.draw(st.sampled_from(keys))
    inner = place[key]
    if isinstance(inner, (dict, list)) and inner and data.draw(st.integers(0, 4)):
        _change(data, inner)
    else:
        place[key] = data.draw(ODD)
