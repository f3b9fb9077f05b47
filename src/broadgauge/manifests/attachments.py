"""Which NetworkAttachmentDefinitions and addresses have to be there before the pods are, and what
does a pod say of them?

Source: Kubernetes Network Plumbing Working Group, "NetworkAttachmentDefinition standard" 1.3, 3
(definitions) and 4.1.2 (the annotation's JSON form).
"""

import ipaddress
import json
from collections.abc import Sequence
from itertools import islice

from broadgauge.manifests import names
from broadgauge.manifests.cni import named
from broadgauge.manifests.config_maps import config_map
from broadgauge.manifests.definitions import Interface
from broadgauge.manifests.fabric_parts import device_annotations, gke_annotations
from broadgauge.manifests.files import ManifestFile
from broadgauge.manifests.job import JobPods
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.networks.ipam import usable

NETWORKS = "k8s.v1.cni.cncf.io/networks"
RESOURCE_NAME = "k8s.v1.cni.cncf.io/resourceName"
"""On a definition: which device plugin's device Multus hands to the CNI plugin."""
MAP_KEY = "nodename_ip_mapping.yaml"
TOPOLOGY_KEY = "topology.xml"


def definitions_file(job: JobPods, definitions: Sequence[Interface]) -> ManifestFile | None:
    """Those that we write, of all jobs; None: all that is attached is there, or nothing is."""
    if not definitions:
        return None
    return ManifestFile(
        path="20-networks/definitions.yaml",
        comment="Secondary networks, one definition a NIC: what Multus adds to each pod. They stay "
        "when a job is deleted.\n"
        "From the experiment's `networks[].kubernetes`; each `config` is checked against the keys "
        "that its CNI plugin has.",
        objects=tuple(_definition(job, each) for each in definitions),
    )


def _definition(job: JobPods, interface: Interface) -> Manifest:
    assert interface.config is not None, interface.definition
    about = names.metadata(job, interface.definition, names.shared_labels(job))
    if interface.is_chosen_by_resource and interface.resource is not None:
        about["annotations"] = {RESOURCE_NAME: interface.resource}
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": about,
        "spec": {"config": named(interface.config, interface.definition)},
    }


def address_map_file(job: JobPods, address_map: bytes | None) -> ManifestFile | None:
    """The user's own file; None: no network has one."""
    if address_map is None:
        return None
    about = names.metadata(job, names.address_map_name(job), names.shared_labels(job))
    return ManifestFile(
        path="20-networks/address-map.yaml",
        comment="Which address the fabric gave to each node's NICs (`host:device:interface:ip`): "
        "an init container of each pod sets them, since the fabric drops all others.\n"
        "From the file that `networks[].kubernetes.ipam.map` names.",
        objects=(config_map(about, {MAP_KEY: address_map}),),
    )


def topology_file(job: JobPods, topology: bytes | None) -> ManifestFile | None:
    """NCCL's, as the user has it; None: there is none."""
    if topology is None:
        return None
    about = names.metadata(job, names.topology_name(job), names.shared_labels(job))
    return ManifestFile(
        path="20-networks/topology.yaml",
        comment="Where a node's GPUs and NICs stand on its PCI buses, for NCCL (NCCL_TOPO_FILE).\n"
        "From the file that `kubernetes.topology_file` names.",
        objects=(config_map(about, {TOPOLOGY_KEY: topology}),),
    )


def annotations(job: JobPods, pod: int) -> dict[str, str]:
    """Of the pod template that this pod is the first of."""
    attached = job.attachments
    return {
        **networks_annotation(attached.interfaces, job.settings.namespace, pod),
        **gke_annotations(attached.gke_networks),
        **device_annotations(attached.fabrics),
    }


def networks_annotation(
    interfaces: Sequence[Interface], namespace: str | None, pod: int
) -> dict[str, str]:
    """What Multus attaches; empty: nothing. `namespace`: of definitions that name none; None: the
    pod's own."""
    if not interfaces:
        return {}
    entries = [_entry(each, namespace, pod) for each in interfaces]
    return {NETWORKS: json.dumps(entries, indent=2)}


def _entry(interface: Interface, namespace: str | None, pod: int) -> dict[str, object]:
    space, _, name = interface.definition.rpartition("/")
    found: dict[str, object] = {"name": name}
    if space or namespace:
        found["namespace"] = space or namespace
    found["interface"] = interface.name
    if interface.is_numbered and interface.address_range is not None:
        free = usable(interface.address_range, interface.left_out, interface.gateway)
        address = next(islice(free, pod, None))
        length = ipaddress.ip_network(interface.address_range).prefixlen
        found["ips"] = [f"{address}/{length}"]
    return found
