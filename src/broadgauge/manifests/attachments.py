"""Which NetworkAttachmentDefinitions have to be there before the pods are?

Source: Kubernetes Network Plumbing Working Group, "NetworkAttachmentDefinition standard" 1.3, 3.
"""

from broadgauge.manifests.cni import named
from broadgauge.manifests.config_maps import metadata
from broadgauge.manifests.files import ManifestFile
from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.yaml_text import Manifest

RESOURCE_ANNOTATION = "k8s.v1.cni.cncf.io/resourceName"


def attachments_file(request: JobRequest) -> ManifestFile | None:
    """Those that we write; None: all that is attached is there, or nothing is."""
    objects = tuple(definitions(request))
    if not objects:
        return None
    return ManifestFile(
        path="20-networks/networks.yaml",
        comment="Secondary networks, one definition a NIC: what Multus adds to each pod.\n"
        "From the experiment's `networks[].kubernetes`; CNI version 0.3.1, checked.",
        objects=objects,
    )


def definitions(request: JobRequest) -> list[Manifest]:
    """Each once, however many networks use it."""
    found: dict[str, Manifest] = {}
    for each in request.interfaces.found:
        if each.config is None or each.definition in found:
            continue
        about = metadata(request, each.definition)
        if each.is_chosen_by_resource:
            about["annotations"] |= {RESOURCE_ANNOTATION: each.resource}
        found[each.definition] = {
            "apiVersion": "k8s.cni.cncf.io/v1",
            "kind": "NetworkAttachmentDefinition",
            "metadata": about,
            "spec": {"config": named(each.config, each.definition)},
        }
    return list(found.values())
