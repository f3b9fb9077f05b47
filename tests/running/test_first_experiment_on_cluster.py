"""Is what is written for a cluster an experiment that can be planned and rendered there?"""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.platforms.kubernetes.inventory.made_up import NAMES, answers, inventory
from tests.running.first_on_cluster import NETWORKS, device, faces, loaded, rendered, written

from broadgauge.agent.pod.address_map import parse_map
from broadgauge.platforms.kubernetes.inventory.cluster_inventory import NotKnown
from broadgauge.running.experiments import load_text
from broadgauge.running.first_networks import MAP_FILE


@pytest.mark.parametrize("name", NAMES)
def test_it_is_planned_and_rendered_and_the_same_twice(name: str, tmp_path: Path) -> None:
    found = written(inventory(name))
    experiment, files = rendered(found, tmp_path)
    assert files.num_pods >= 2
    assert experiment.kubernetes.namespace == "training"
    assert experiment.networks[0].name == "pod"
    assert found == written(inventory(name))
    for words in (*found.missing, *found.notes):  # whoever gets the file alone is told, too
        assert " ".join(words.split()) in " ".join(found.text.replace("\n#  ", "").split())


def test_a_vpc_gets_its_address_map(tmp_path: Path) -> None:
    found = written(inventory("vpc"))
    experiment, files = rendered(found, tmp_path)
    assert experiment.cluster.shapes == ("1x8", "2x8")  # neither the closed node nor the master
    assert [each.key for each in experiment.kubernetes.tolerations] == ["nvidia.com/gpu"]
    assert experiment.kubernetes.run_as_user is None  # OpenShift's to say
    assert found.address_map is not None
    rows = parse_map(found.address_map)
    assert [(row.host, row.device, row.interface, str(row.address)) for row in rows] == [
        ("worker-1", "ens13", "net1", "10.249.65.8/26"),
        ("worker-2", "ens13", "net1", "10.249.65.9/26"),
    ]
    port = faces(experiment)["network-port-01"]
    assert port.ipam is not None
    assert (port.devices, port.ipam.kind) == (("ens13",), "address-map")
    assert len(faces(experiment)["subnet-rdma-port-nics-3"].definitions) == 3
    assert "broken is left out: its `config` is no JSON" in found.text
    assert "another-team/others is left out: it is of another namespace" in found.text
    assert "OpenShift: 4.17.12" in found.text
    assert "gpu-operator v24.9.0" in found.text
    assert any(each.startswith(f"{MAP_FILE}: the only other address") for each in found.notes)
    assert any("/dev/infiniband" in each for each in found.notes)
    assert all(len(job.name) <= 52 for job in files.jobs)


def test_two_definitions_over_one_device_are_not_both_in_a_pod(tmp_path: Path) -> None:
    data = answers("vpc")
    ipam = {"type": "whereabouts", "range": "10.9.0.0/24"}
    data["attachments"]["items"].append(device("other-way", "ens13", ipam=ipam))
    found = written(inventory(data))
    assert "other-way" not in faces(loaded(found, tmp_path))
    assert any("network-port-01 has ens13, too" in each for each in found.missing)


def test_an_own_switchs_rdma_is_paired_with_its_only_network_and_said(tmp_path: Path) -> None:
    found = written(inventory("own_switch"))
    experiment = loaded(found, tmp_path)
    face = faces(experiment)["rdmashared-net"]
    assert (face.transport, face.resources) == ("roce", ("rdma/rdma_shared_device_eth",))
    assert experiment.kubernetes.run_as_user == 1000
    assert any("That they belong together is not in the API" in each for each in found.notes)
    assert found.address_map is None
    assert "gpu-operator (version unknown)" in found.text


def test_two_networks_over_ethernet_leave_a_shared_resource_unpaired(tmp_path: Path) -> None:
    data = answers("own_switch")
    other = json.loads(json.dumps(data["attachments"]["items"][0]))
    other["metadata"]["name"] = "other"
    data["attachments"]["items"].append(other)
    found = written(inventory(data))
    assert {each.transport for each in faces(loaded(found, tmp_path)).values()} == {None}
    assert any("rdma/rdma_shared_device_eth: over which network" in each for each in found.missing)


def test_sriov_pools_say_what_is_rdma_and_rails_are_one_network(tmp_path: Path) -> None:
    found = written(inventory("sriov_openshift"))
    experiment = loaded(found, tmp_path)
    of = faces(experiment)
    assert list(of) == ["eth", "ib", "roce-nics-1", "roce-nics-2"]
    roce = of["roce-nics-2"]
    assert (roce.transport, roce.definitions) == ("roce", ("roce-1", "roce-2"))
    assert roce.resources == ("openshift.io/roce_a", "openshift.io/roce_b")
    assert of["ib"].transport == "infiniband"
    assert of["eth"].transport is None
    assert experiment.cluster.shapes == ("1x8", "2x8")
    assert experiment.kubernetes.node_selector == {"nvidia.com/gpu.product": "NVIDIA-H200"}
    assert "GPT-2 large" in found.text  # by the GPUs' memory


def test_what_no_nodes_have_keeps_no_pods_waiting(tmp_path: Path) -> None:
    """A resource that is used up by other networks, or on other nodes."""
    data = answers("sriov_openshift")
    for node in data["nodes"]["items"]:
        node["status"]["allocatable"]["openshift.io/roce_b"] = "0"
    found = written(inventory(data))
    assert list(faces(loaded(found, tmp_path))) == ["eth", "ib"]
    assert any(each.startswith("networks.roce: left out, fewer than 2") for each in found.missing)


def test_what_may_not_be_read_is_said_in_the_file_and_beside_it(tmp_path: Path) -> None:
    found = written(inventory("forbidden"))
    loaded(found, tmp_path)
    assert "nodes: unknown, you may not list nodes" in found.text
    for words in ("nodes: unknown", "networks: unknown", "cluster.shapes", "kubernetes.image"):
        assert any(each.startswith(words) for each in found.missing), found.missing


def test_render_does_not_say_that_the_file_names_no_image(tmp_path: Path) -> None:
    _, files = rendered(written(inventory("bare")), tmp_path)
    [said] = [each for each in files.rendered.notes if "pytorch/pytorch:latest" in each]
    assert said.startswith("`kubernetes.image` is pytorch/pytorch:latest, PyTorch's own")


def test_openshift_that_is_unknown_is_not_called_it() -> None:
    data = answers("bare") | {"openshift": NotKnown("you may not read it", may_be_there=True)}
    text = " ".join(written(inventory(data)).text.replace("\n  #", "").split())
    assert "if this is OpenShift, it gives each namespace users of its own" in text
    assert "is left out: OpenShift gives" not in text
    known = written(inventory("vpc")).text
    assert "is left out: OpenShift gives each namespace users of its own" in known


def test_two_clusters_of_one_account_have_names_of_their_own() -> None:
    """A context of EKS is the cluster's ARN."""
    arn = "arn:aws:eks:us-east-1:123456789012:cluster/"
    for name in ("prod", "dev"):
        assert f"\nname: on-{name}\n" in written(inventory("bare"), cluster=arn + name).text


def test_a_cluster_with_nothing_is_its_pod_network_on_cores(tmp_path: Path) -> None:
    found = written(inventory("bare"))
    experiment = loaded(found, tmp_path)
    assert (experiment.cluster.device, experiment.cluster.shapes) == ("cpu", ("1x1", "1x2"))
    assert faces(experiment) == {}


def test_a_namespace_that_is_not_there_is_said() -> None:
    data = answers("bare") | {"namespace": NotKnown("the cluster has none")}
    said = "kubernetes.namespace: training is not there"
    assert said in written(inventory(data)).missing
    there = [{"metadata": {"name": name}} for name in ("default", "trainings", "No Name")]
    data["namespaces"] = {"items": there}
    assert f"{said}; did you mean `trainings`?" in written(inventory(data)).missing
    assert f"{said}; did you mean `trainings`?" in written(inventory(data)).text


def test_what_is_there_is_not_called_missing(tmp_path: Path) -> None:
    """Assumptions and advice, such as who gives addresses, are notes."""
    found = written(inventory("vpc"))
    by_whom = "networks.subnet-rdma-port: whereabouts gives its pods addresses"
    assert any(each.startswith(by_whom) for each in found.notes)
    assert "whereabouts" not in "".join(found.missing)
    head = found.text.partition("\nname: ")[0]
    at = head.index("# To be looked at:\n")
    assert head.index("# Missing:\n") < head.index("- kubernetes.image: ") < at
    assert at < head.index("- networks.subnet-rdma-port: whereabouts gives")
    assert "# To be looked at:" not in written(inventory("bare")).text


def test_another_context_than_the_current_one_is_said() -> None:
    assert "# Of the context other. " in written(inventory("bare"), context="other").text


def test_other_makers_gpus_are_asked_for_by_their_resource(tmp_path: Path) -> None:
    data = answers("own_switch")
    for node in data["nodes"]["items"]:
        del node["status"]["allocatable"]["nvidia.com/gpu"]
        node["status"]["allocatable"]["amd.com/gpu"] = "4"
    experiment = loaded(written(inventory(data)), tmp_path)
    assert experiment.kubernetes.gpu_resource == "amd.com/gpu"
    assert experiment.cluster.shapes == ("1x4", "2x4")


def test_one_gpu_is_still_something_to_run(tmp_path: Path) -> None:
    data = answers("own_switch")
    (node, _) = data["nodes"]["items"]
    node["status"]["allocatable"]["nvidia.com/gpu"] = "1"
    data["nodes"]["items"] = [node]
    assert loaded(written(inventory(data)), tmp_path).cluster.shapes == ("1x1",)


@pytest.mark.parametrize("taint", ["node.kubernetes.io/disk-pressure", "dedicated"])
def test_taints_of_a_trouble_are_not_put_up_with(taint: str, tmp_path: Path) -> None:
    data = answers("own_switch")
    first = data["nodes"]["items"][0]
    first["spec"]["taints"] = [{"key": taint, "effect": "NoSchedule"}]
    experiment = loaded(written(inventory(data)), tmp_path)
    tolerated = [each.key for each in experiment.kubernetes.tolerations]
    assert tolerated == (["dedicated"] if taint == "dedicated" else [])


def test_a_namespace_of_many_networks_is_begun_with_some(tmp_path: Path) -> None:
    """Whose names are long, and alike when they are cut."""
    data = answers("own_switch")
    for letter in "abcdefghijklmnop":
        for rail in range(1, 20):
            name = f"tenant-network-{letter * 40}-{rail}"
            data["attachments"]["items"].append(
                device(name, f"e{letter}{rail}", ipam={"type": "x"})
            )
    found = written(inventory(data), cluster="a-cluster-with-a-long-name." * 9)
    experiment, files = rendered(found, tmp_path)
    assert max(each.num_nics for each in experiment.networks if hasattr(each, "num_nics")) == 16
    assert len({job.name for job in files.jobs}) == len(files.jobs)
    assert any("8 networks are enough" in each for each in found.missing)


def test_two_definitions_of_one_name_in_two_namespaces_are_two_networks(tmp_path: Path) -> None:
    data = answers("own_switch")
    [first] = data["attachments"]["items"]
    second = json.loads(json.dumps(first))
    second["metadata"]["namespace"] = "training"
    data["attachments"]["items"].append(second)
    of = faces(loaded(written(inventory(data)), tmp_path))
    assert {name: face.definitions for name, face in of.items()} == {
        "rdmashared-net": ("default/rdmashared-net",),
        "rdmashared-ne-2": ("rdmashared-net",),
    }


@pytest.mark.parametrize("namespace", ["1234", "no", "a" * 63])
def test_a_namespace_that_yaml_would_take_for_something_else_is_text(namespace: str) -> None:
    text = written(inventory("own_switch"), namespace=namespace).text
    experiment = load_text(text, Path("experiment.yaml"), ()).experiment
    assert experiment.kubernetes.namespace == namespace


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ('{"mtu": ' + "9" * 5000 + "}", "JSON that can't be read"),
        ("[" * 100_000, "JSON that can't be read"),
        ("[]", "no JSON object"),
        ("{", "no JSON: "),
        ({"type": "macvlan"}, "no text"),
        (7, "no text"),
        ('{"type": {"a": 1}}', "`(no text)` is no name of a plugin"),
        ('{"type": "macvlan\\nworkloads: []\\n# "}', "is no name of a plugin"),
        ('{"type": "macvlan", "ipam": {"type": ["x"]}}', "is no name of a plugin for addresses"),
        ('{"type": "macvlan", "master": ["eth0"]}', "`(no text)` is no name of a device"),
        ('{"type": "host-device", "device": ".."}', "`..` is no name of a device"),
    ],
)
def test_a_definition_that_is_not_understood_is_said_and_the_rest_goes_on(
    told: object, words: str, tmp_path: Path
) -> None:
    data = answers("own_switch")
    [first] = data["attachments"]["items"]
    broken = {"metadata": {"name": "broken", "namespace": "training"}, "spec": {"config": told}}
    data["attachments"]["items"] = [broken, first]
    found = written(inventory(data))
    assert "rdmashared-net" in faces(loaded(found, tmp_path))
    [said] = [each for each in found.missing if each.startswith("network ")]
    assert said.startswith("network training/broken: not understood: ")
    assert said.isprintable()
    assert words in said
    assert "# training/broken is left out: " in found.text


@pytest.mark.parametrize("name", ["a\nworkloads: []", 7, "x" * 300, None])
def test_what_can_be_no_name_is_left_out(name: object, tmp_path: Path) -> None:
    data = answers("own_switch")
    data["attachments"]["items"][0]["metadata"]["name"] = name
    found = written(inventory(data))
    assert faces(loaded(found, tmp_path)) == {}
    assert any("is no name of an object" in each for each in found.missing)


@pytest.mark.parametrize("resource", ["a.-b/" + "c" * 400, "nvidia.com/gpu", "nvidia.com/mig-1g"])
def test_a_resource_that_no_nic_can_be_is_left_out(resource: str, tmp_path: Path) -> None:
    data = answers("own_switch")
    metadata = data["attachments"]["items"][0]["metadata"]
    metadata["annotations"] = {f"{NETWORKS}/resourceName": resource}
    found = written(inventory(data))
    assert faces(loaded(found, tmp_path)) == {}
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
def test_whatever_stands_anywhere_in_the_answers_breaks_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Some value of some answer is anything at all: an annotation, a label, a list."""
    told = answers(data.draw(st.sampled_from(["vpc", "sriov_openshift", "own_switch"])))
    maps = [each for key, each in told.items() if type(each) is dict and key != "operators"]
    _change(data, data.draw(st.sampled_from(maps)))
    found = written(inventory(told), cluster=data.draw(st.text()), context=data.draw(st.text()))
    loaded(found, tmp_path_factory.mktemp("any"))
    assert all(each.isprintable() for each in found.missing)


OVN = "ovn-k8s-cni-overlay"
CONFIGS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["host-device", "macvlan", "ipvlan", "ib-sriov", "sriov", "bridge", OVN, "no"]
        )
    },
    optional={
        "device": st.sampled_from(["ens1", "ens2", "lo", "a b"]),
        "ipam": st.sampled_from([{"type": "whereabouts"}, {"type": "static"}, {}]),
        "mode": st.sampled_from(["passthru", "l3"]),
        "vlan": st.sampled_from([1, 2]),
        "subnets": st.just("10.1.0.0/16"),
        "role": st.sampled_from(["primary", "secondary"]),
        "isRdma": st.booleans(),
    },
)
DEFINITIONS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["a-1", "a-2", "a-10", "a.1", "a-nics", "a-nics-1", "pod", "1"]),
        "namespace": st.sampled_from(["training", "default", "other"]),
        "resource": st.sampled_from([None, "rdma/x", "openshift.io/eth", "openshift.io/ib_a"]),
        "config": CONFIGS,
    }
)


@settings(deadline=None, max_examples=100)
@given(found=st.lists(DEFINITIONS, max_size=12), name=st.sampled_from(["vpc", "sriov_openshift"]))
def test_whatever_definitions_there_are_they_are_planned_and_rendered(
    tmp_path_factory: pytest.TempPathFactory, found: list[dict[str, Any]], name: str
) -> None:
    data = answers(name)
    data["attachments"]["items"] = [
        {
            "metadata": {
                "name": each["name"],
                "namespace": each["namespace"],
                "annotations": {f"{NETWORKS}/resourceName": each["resource"]},
            },
            "spec": {"config": json.dumps(each["config"])},
        }
        for each in found
    ]
    loaded(written(inventory(data)), tmp_path_factory.mktemp("any"))


def _change(data: st.DataObject, place: Any) -> None:
    """Some value within, however deep."""
    keys = list(place) if isinstance(place, dict) else list(range(len(place)))
    key = data.draw(st.sampled_from(keys))
    inner = place[key]
    if isinstance(inner, (dict, list)) and inner and data.draw(st.integers(0, 4)):
        _change(data, inner)
    else:
        place[key] = data.draw(ODD)
