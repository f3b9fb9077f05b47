"""Proves what `render` makes of an experiment's networks: definitions, annotations, resources,
addresses, rights and variables, and nothing that one pod can't have."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.running.rendering.experiments import (
    asked_by,
    examples_with_a_face,
    objects_of,
    rendered,
    variables_of,
)
from tests.running.rendering.networks import FABRICS, MAP, NETWORKS, TOPOLOGY, with_files

from broadgauge.agent.pod.facts import ANNOTATIONS_FILE
from broadgauge.engine.plan import make_plan
from broadgauge.manifests.attachments import NETWORKS as ANNOTATION
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.messages.asked_network import AskedNetwork
from broadgauge.running.experiments import load, load_text
from broadgauge.running.rendering.experiment import (
    ON_KUBERNETES,
    RenderedExperiment,
    render_experiment,
)
from broadgauge.specs.errors import BroadgaugeError, InputError
from broadgauge.specs.networks.network import Network
from broadgauge.specs.platforms import Devices

HCA = "{attachment: device-plugin, resources: rdma/ib, transport: infiniband}"


def render(tmp_path: Path, *overrides: str) -> RenderedExperiment:
    return rendered(with_files(tmp_path), *overrides, text=NETWORKS)


def template_of(found: RenderedExperiment, word: str) -> Manifest:
    """Of the pods of a case."""
    (job,) = (each for each in objects_of(found, "Job") if each["metadata"]["name"].endswith(word))
    template: Manifest = job["spec"]["template"]
    return template


def attached_to(template: Manifest) -> list[dict[str, Any]]:
    annotations = template["metadata"]["annotations"]
    found: list[dict[str, Any]] = json.loads(annotations.get(ANNOTATION, "[]"))
    return found


def ranks_of(template: Manifest) -> Manifest:
    (container,) = template["spec"]["containers"]
    return dict(container)


def test_all_networks_are_attached_to_pods_of_every_case_of_a_shape(tmp_path: Path) -> None:
    """Each NIC once, under the name that its ranks are told."""
    found = render(tmp_path)
    one_node, *several = (each["spec"]["template"] for each in objects_of(found, "Job"))
    assert attached_to(one_node) == []
    assert "initContainers" not in one_node["spec"]
    names = [(each["name"], each["interface"]) for each in attached_to(several[0])]
    assert names == [
        ("all-ens13", "net1"), ("all-ens14", "net2"), ("all-ens8f0np0", "net3"),
        ("all-rail", "net4"), ("all-rail", "net5"), ("all-ens2", "net6"), ("all-br0", "net7"),
        ("net", "net8"), ("all-ib", "net9"), ("all-ib", "net10"),
    ]  # fmt: skip
    assert all(attached_to(each) == attached_to(several[0]) for each in several)
    wanted = {
        "rdma/rdma_shared_device_eth": "1", "openshift.io/rail": "2", "openshift.io/ib": "2"
    }  # fmt: skip
    for each in several:
        resources = ranks_of(each)["resources"]
        for kind in ("requests", "limits"):
            assert {key: resources[kind].get(key) for key in wanted} == wanted
    assert found.rendered.counts["NetworkAttachmentDefinition"] == 7


def asked_of(found: RenderedExperiment, word: str) -> AskedNetwork:
    network = asked_by(ranks_of(template_of(found, word)))
    assert network is not None
    return network


@pytest.mark.parametrize(
    ("word", "transport", "attached"),
    [
        ("pod", "tcp", []),
        ("vnic-nics-1", "virtio", [("training/all-ens13", "net1", "10.249.65.0/24")]),
        ("vnic-nics-2", "virtio", [("training/all-ens13", "net1", "10.249.65.0/24"),
                                   ("training/all-ens14", "net2", "10.249.66.0/24")]),
        ("roce-transport-roce", "roce", [("training/all-ens8f0np0", "net3", "192.168.2.0/24")]),
        ("roce-transport-tcp", "tcp", [("training/all-ens8f0np0", "net3", "192.168.2.0/24")]),
        ("vf", None, [("training/all-rail", "net4", None), ("training/all-rail", "net5", None)]),
        ("there", None, [("other/net", "net8", None)]),
        ("ib", "infiniband", [("training/all-ib", "net9", None),
                              ("training/all-ib", "net10", None)]),
    ],
)  # fmt: skip
def test_the_entrypoint_is_told_the_cases_own_network_alone(
    tmp_path: Path, word: str, transport: str | None, attached: list[tuple[str, str, str | None]]
) -> None:
    """As it was asked for: other networks' interfaces and adapters are in the same pod."""
    found = render(tmp_path)
    network = asked_of(found, f"-{word}-2x2")
    assert (network.name, network.transport) == (word, transport)
    assert [(each.definition, each.interface, each.subnets) for each in network.attachments] == [
        (name, net, () if subnet is None else (subnet,)) for name, net, subnet in attached
    ]
    assert network.num_nics == max(1, len(attached))
    assert network.libraries == ("nccl",)
    told = variables_of(ranks_of(template_of(found, f"-{word}-2x2")))
    assert not {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "NCCL_NET", "NCCL_IB_HCA"} & told.keys()


def test_nodes_of_an_address_map_may_be_in_several_subnets(tmp_path: Path) -> None:
    with_files(tmp_path)
    (tmp_path / "map.yaml").write_text(MAP.replace("10.249.65.10", "10.249.75.10"))
    (one, _) = asked_of(rendered(tmp_path, text=NETWORKS), "-vnic-nics-2-2x2").attachments
    assert one.subnets == ("10.249.65.0/24", "10.249.75.0/24")


def test_pods_find_what_multus_says_of_their_attachments(tmp_path: Path) -> None:
    """In a file, which the entrypoint reads; pods without attachments need none."""
    found = render(tmp_path)
    spec = template_of(found, "-pod-2x2")["spec"]
    (volume,) = [each for each in spec["volumes"] if "downwardAPI" in each]
    assert volume["downwardAPI"]["items"] == [
        {"path": "annotations", "fieldRef": {"fieldPath": "metadata.annotations"}}
    ]
    (mount,) = [
        each for each in spec["containers"][0]["volumeMounts"] if each["name"] == volume["name"]
    ]
    assert (f"{mount['mountPath']}/annotations", mount["readOnly"]) == (ANNOTATIONS_FILE, True)
    without = template_of(found, "-1x2")["spec"]["volumes"]
    assert not [each for each in without if "downwardAPI" in each]


def test_per_case_attaches_a_cases_own_alone(tmp_path: Path) -> None:
    found = render(tmp_path, "kubernetes.allocation=per_case")
    assert attached_to(template_of(found, "-pod-2x2")) == []
    own = attached_to(template_of(found, "-vf-2x2"))
    assert [(each["name"], each["interface"]) for each in own] == [
        ("all-rail", "net1"), ("all-rail", "net2")]  # fmt: skip
    assert "initContainers" not in template_of(found, "-vf-2x2")["spec"]
    assert "initContainers" in template_of(found, "-vnic-nics-1-2x2")["spec"]


def test_the_address_maps_container_alone_may_change_addresses(tmp_path: Path) -> None:
    found = render(tmp_path)
    (the_map,) = (
        each for each in objects_of(found, "ConfigMap") if "address-map" in each["metadata"]["name"]
    )
    assert the_map["data"] == {"nodename_ip_mapping.yaml": MAP}
    template = template_of(found, "-vnic-nics-1-2x2")
    (before,) = template["spec"]["initContainers"]
    assert before["command"] == ["python3", "/broadgauge/program/broadgauge.zip", "addresses"]
    assert before["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["NET_ADMIN"]}
    told = variables_of(before)
    assert told["BROADGAUGE_ADDRESS_INTERFACES"] == "net1,net2"
    assert told["BROADGAUGE_NODE_NAME"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
    volumes = {each["name"]: each for each in template["spec"]["volumes"]}
    by_mount = {each["mountPath"]: volumes[each["name"]] for each in before["volumeMounts"]}
    source = by_mount["/broadgauge/addresses"]["configMap"]["name"]
    assert source == the_map["metadata"]["name"]
    assert ranks_of(template)["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize(
    ("overrides", "added", "words"),
    [
        (["kubernetes.run_as_user=0"], ["IPC_LOCK"], "are given IPC_LOCK"),
        (["kubernetes.run_as_user=0", "kubernetes.memlock_is_raised=true"], None, None),
        (["kubernetes.run_as_user=1000"], None, "in root's processes only"),
        (["kubernetes.memlock_is_raised=true"], None, None),
        (["kubernetes.run_as_user=0", "kubernetes.allocation=per_case"], None, "IPC_LOCK"),
    ],
)
def test_ipc_lock_is_rdmas_where_memlock_was_not_raised(
    tmp_path: Path, overrides: list[str], added: list[str] | None, words: str | None
) -> None:
    """The last: pods of the pod network alone lock nothing."""
    found = render(tmp_path, *overrides)
    context = ranks_of(template_of(found, "-pod-2x2"))["securityContext"]
    assert context["capabilities"].get("add") == added
    notes = " ".join(found.rendered.notes)
    assert (words or "RDMA pins") in notes if words else "RDMA pins" not in notes


def test_static_addresses_number_the_pods_of_a_pytorch_job(tmp_path: Path) -> None:
    face = "{attachment: macvlan, devices: e, ipam: {kind: static, ranges: 10.9.0.0/24,"
    found = render(
        tmp_path,
        f"networks.br.kubernetes={face} exclude: 10.9.0.1/32}}}}",
        "kubernetes.job=pytorchjob",
    )
    last = objects_of(found, "PyTorchJob")[-1]["spec"]["pytorchReplicaSpecs"]
    ips = [
        [each["ips"] for each in attached_to(last[role]["template"]) if "ips" in each]
        for role in ("Master", "Worker")
    ]
    assert ips == [[["10.9.0.2/24"]], [["10.9.0.3/24"]]]
    with pytest.raises(InputError, match="share one template"):
        render(tmp_path, f"networks.br.kubernetes={face} exclude: 10.9.0.1/32}}}}")


def test_a_topology_file_is_given_to_nccl_or_said_to_be_absent(tmp_path: Path) -> None:
    found = render(tmp_path, "kubernetes.topology_file=topo.xml")
    told = variables_of(ranks_of(template_of(found, "-ib-2x2")))
    assert told["NCCL_TOPO_FILE"] == "/broadgauge/topology/topology.xml"
    (sent,) = (
        each for each in objects_of(found, "ConfigMap") if "topology" in each["metadata"]["name"]
    )
    assert sent["data"] == {"topology.xml": TOPOLOGY}
    mounts = {each["mountPath"] for each in ranks_of(template_of(found, "-ib-2x2"))["volumeMounts"]}
    assert "/broadgauge/topology" in mounts
    assert not any("no NCCL topology file" in each for each in found.rendered.notes)
    assert any("no NCCL topology file" in each for each in render(tmp_path).rendered.notes)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("<system", "is no XML"),
        ("<graphs version='1'/>", "begins with <graphs>"),
        ("<system version='9'/>", "version 9"),
        ("<system version='1'/>", "has no <cpu>"),
        ('<system version="1"><cpu/></system>', "has 0 GPUs, and a pod's ranks take 2"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><system/>", "entities"),
        ("<system>hf_abcdefghijklmnopqrstuvwx1</system>", "holds a token"),
        (None, "can't be read"),
    ],
)
def test_a_topology_file_that_nccl_would_not_read_is_refused(
    tmp_path: Path, content: str | None, words: str
) -> None:
    if content is not None:
        (tmp_path / "mine.xml").write_text(content)
    with pytest.raises(InputError, match=r"kubernetes\.topology_file: ") as caught:
        render(tmp_path, "kubernetes.topology_file=mine.xml")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("networks.vnic.kubernetes.ipam.map=none.yaml", ["networks.vnic-nics-1.kubernetes.ipam.map",
                                                         "none.yaml can't be read"]),
        ("networks.vnic.nics_per_node=3", ["3 NICs, and `kubernetes.devices` names 2"]),
        ("networks.pod.nics_per_node=2", ["a pod has one on the pod network"]),
        ("networks.br.kubernetes.devices=ens13",
         ["networks.br.kubernetes.devices: two networks on one interface", "vnic-nics-1's"]),
        ("networks.l3.kubernetes.ipam={kind: whereabouts, ranges: 192.168.0.0/16}",
         ["overlaps", "192.168.2.0/24"]),
        ("cluster.shapes=[16x2]", ["networks.vnic-nics-1.kubernetes.ipam.map", "16 pods need one"]),
        ("networks.roce.kubernetes.ipam.ranges=192.168.2.0/31", ["has 0 addresses to give"]),
    ],
)  # fmt: skip
def test_what_pods_cant_have_is_refused(tmp_path: Path, override: str, words: list[str]) -> None:
    more = ("networks.vf.nics_per_node=2",) if "shapes" in override else ()
    with pytest.raises(Exception, match=r"networks|gateway|NICs") as caught:
        render(tmp_path, override, *more)
    assert all(word in str(caught.value) for word in words), caught.value


def test_emulated_and_rendered_cases_are_the_same_in_order(tmp_path: Path) -> None:
    """But for twins, which emulate the same: those are run once, and it is said."""
    loaded = load_text(NETWORKS, with_files(tmp_path) / "a.yaml", ())
    has_all = Devices(
        place="here", num_gpus=4, num_cores=8, are_shared=True, can_shape=True, can_delay=True
    )
    emulated = make_plan(loaded.experiment, {"emulated": has_all})
    names = [(case.workload.name, case.network_name, case.shape) for case in emulated.cases]
    found = [
        (job.case.workload.name, job.case.network_name, job.case.shape)
        for job in render(tmp_path).jobs
    ]
    twin = ("collectives", "roce-transport-tcp", "2x2")
    assert [each for each in found if each != twin] == names
    assert twin in found
    assert any("roce-transport-tcp is the same as" in note for note in emulated.notes)


@pytest.mark.parametrize("name", examples_with_a_face())
def test_an_examples_cases_are_the_same_emulated_and_rendered(name: str) -> None:
    """In names and order; what is for Kubernetes alone has the same cases there, and a network that
    an example leaves to its reader has none."""
    has_all = Devices(place="here", num_gpus=32, num_cores=64, are_shared=True, can_shape=True)
    emulated = make_plan(load(name, ()).experiment, {"emulated": has_all})
    found = render_experiment(load(name, (ON_KUBERNETES,)))
    both = [job.case for job in found.jobs if job.case.workload.platforms is None]
    networks = load(name, ()).experiment.networks
    faceless = {n.name for n in networks if isinstance(n, Network) and n.kubernetes is None}
    faced = [each for each in emulated.cases if each.network_name not in faceless]
    names = [[(each.workload.name, each.network_name, each.shape) for each in cases]
             for cases in (faced, both)]  # fmt: skip
    assert names[0] == names[1]
    left = [job.case for job in found.jobs if job.case.workload.platforms is not None]
    for alone in {each.workload.name for each in left}:
        own = [(each.network_name, each.shape) for each in left if each.workload.name == alone]
        assert own == [(network, shape) for _, network, shape in names[0]]


def test_efa_is_a_resource_and_huge_pages_and_no_interface(tmp_path: Path) -> None:
    template = template_of(rendered(tmp_path, text=FABRICS), "-efa-2x8")
    assert attached_to(template) == []
    for kind in ("requests", "limits"):
        asked = ranks_of(template)["resources"][kind]
        assert (asked["vpc.amazonaws.com/efa"], asked["hugepages-2Mi"]) == ("4", "5120Mi")
    told = variables_of(ranks_of(template))
    assert told["FI_PROVIDER"] == "efa"
    network = asked_by(ranks_of(template))
    assert network is not None
    assert (network.transport, network.num_nics, network.is_pod_network) == ("efa", 4, True)


def test_gke_attaches_by_its_own_annotation_and_a_daemon_runs_beside_the_ranks(
    tmp_path: Path,
) -> None:
    found = rendered(tmp_path, text=FABRICS)
    template = template_of(found, "-tcpxo-2x8")
    annotations = template["metadata"]["annotations"]
    assert ANNOTATION not in annotations
    interfaces = json.loads(annotations["networking.gke.io/interfaces"])
    assert [(each["interfaceName"], each["network"]) for each in interfaces] == [
        ("eth0", "default"), *((f"eth{i}", f"v{i}") for i in range(1, 9))]  # fmt: skip
    (daemon,) = template["spec"]["initContainers"]
    assert daemon["restartPolicy"] == "Always"
    assert annotations[f"devices.gke.io/container.{daemon['name']}"].startswith("- path: /dev/nv")
    volumes = {each["name"] for each in template["spec"]["volumes"]}
    for container in (daemon, ranks_of(template)):
        assert {each["name"] for each in container["volumeMounts"]} <= volumes
    assert variables_of(ranks_of(template))["NCCL_SOCKET_IFNAME"] == "eth0"
    assert any(
        "tcpxo-daemon runs beside the ranks as root" in each for each in found.rendered.notes
    )
    assert any("gpudirect-tcpxo: a3-megagpu-8g" in each for each in found.rendered.prerequisites)


def test_two_sets_of_gkes_nics_dont_fit_one_pod(tmp_path: Path) -> None:
    of_gke = [f"networks.{each}.kubernetes=pod" for each in ("hca", "efa", "ibm")]
    plain = [f"networks.{each}.nics_per_node=1" for each in ("hca", "efa")]
    with pytest.raises(InputError, match=r"tcpx\.kubernetes\.definitions: w1, …, and tcpxo"):
        rendered(tmp_path, "kubernetes.allocation=one", *of_gke, *plain, text=FABRICS)


def test_gpus_are_no_nic(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nvidia\.com/roce are the pods' GPUs"):
        rendered(tmp_path, "kubernetes.gpu_resource=nvidia.com/roce", text=FABRICS)


def test_adapters_without_an_interface_are_told_from_no_others(tmp_path: Path) -> None:
    """A number of them is what pods are given, so that it is one case's own."""
    found = rendered(tmp_path, text=FABRICS)
    asked = [
        ranks_of(template_of(found, f"-hca-nics-{nics}-2x8"))["resources"]["limits"]["rdma/ib"]
        for nics in (1, 8)
    ]
    assert asked == ["1", "8"]
    with pytest.raises(InputError, match=r"hca-nics-1\.nics_per_node: 1, and hca-nics-8 has 8"):
        rendered(tmp_path, "kubernetes.allocation=one", text=FABRICS)
    mixed = f"networks.br.kubernetes={HCA}"
    with pytest.raises(InputError, match=r"networks\.br\..*can't tell from roce-transport-roce's"):
        render(tmp_path, mixed)


def test_tcp_forced_on_gkes_nics_goes_by_them(tmp_path: Path) -> None:
    found = rendered(tmp_path, "networks.tcpx.kubernetes.transport=tcp", text=FABRICS)
    network = asked_of(found, "-tcpx-2x8")
    assert [(each.definition, each.interface) for each in network.attachments] == [
        ("w1", "eth1"), ("w2", "eth2"), ("w3", "eth3"), ("w4", "eth4")]  # fmt: skip
    assert all(each.is_name_sure for each in network.attachments)
    assert "NCCL_SOCKET_IFNAME" not in variables_of(ranks_of(template_of(found, "-tcpx-2x8")))
    with pytest.raises(
        InputError, match=r"efa\.kubernetes\.transport: `tcp`, and efa gives pods no"
    ):
        rendered(tmp_path, "networks.efa.kubernetes.transport=tcp", text=FABRICS)


def test_pods_go_to_nodes_that_the_address_map_knows_with_all_of_their_nics(
    tmp_path: Path,
) -> None:
    with_files(tmp_path)
    (tmp_path / "map.yaml").write_text(f"{MAP}worker-2:ens13:net1:10.249.65.11\n")
    found = rendered(tmp_path, text=NETWORKS)
    affinity = template_of(found, "-pod-2x2")["spec"]["affinity"]["nodeAffinity"]
    (required,) = affinity.values()
    (names,) = zip(*(each["matchFields"][0]["values"] for each in required["nodeSelectorTerms"]),
                   strict=True)  # fmt: skip
    assert names == ("worker-0", "worker-1")
    assert any("worker-0, worker-1" in each for each in found.rendered.prerequisites)
    assert "affinity" not in template_of(found, "-1x2")["spec"]


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        ("{k8s.v1.cni.cncf.io/networks: mine}", "what is rendered of `networks`"),
        ("{sidecar.istio.io/inject: 'true'}", "a mesh's proxy"),
    ],
)
def test_annotations_that_are_rendered_are_not_overwritten_in_silence(
    tmp_path: Path, annotation: str, words: str
) -> None:
    with pytest.raises(BroadgaugeError, match=words):
        render(tmp_path, f"kubernetes.annotations={annotation}")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"w:ens13:net1\n", r"^\./rails\.txt:1: 'w:ens13:net1' has 3 columns"),
        (b"w:ens13:net1:10.0.0.1 # \xff", r"vnic-nics-1.*\.ipam\.map: \./rails\.txt is no UTF-8"),
        (b"#" * (1024 * 1024 + 1), r"vnic-nics-1.*\.ipam\.map: \./rails\.txt is larger than"),
    ],
)
def test_errors_of_an_address_map_name_the_users_file(
    tmp_path: Path, content: bytes, words: str
) -> None:
    (tmp_path / "rails.txt").write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        render(tmp_path, "networks.vnic.kubernetes.ipam.map=./rails.txt")
    assert caught.value.hint is not None
    assert "working_folder" not in caught.value.hint


def test_an_address_map_is_one_file_however_its_path_is_written(tmp_path: Path) -> None:
    again = "networks.br.kubernetes={attachment: macvlan, devices: ens14, ipam: {kind: address-map,"
    cut = "networks.vnic.kubernetes.devices=ens13", "networks.vnic.nics_per_node=1"
    found = render(tmp_path, f"{again} map: .//map.yaml}}}}", *cut)
    assert "address-map" in str(objects_of(found, "ConfigMap"))
    (tmp_path / "other.yaml").write_text(MAP)
    with pytest.raises(InputError, match=r"networks\.br\..*\.map: other\.yaml, and vnic has map"):
        render(tmp_path, f"{again} map: other.yaml}}}}", *cut)
