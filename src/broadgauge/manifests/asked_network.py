"""What is a pod told of the network between its ranks? Not which interface it is there: the pod
looks that up (agent/pod/resolve.py)."""

from collections.abc import Iterator

from broadgauge.agent.pod.address_map import parse_map
from broadgauge.catalog.profiled import fabric_of
from broadgauge.manifests.definitions import Interface
from broadgauge.manifests.fabric_parts import GKE_INTERFACE
from broadgauge.manifests.job import JobPods
from broadgauge.messages.asked_network import AskedAttachment, AskedNetwork, Library
from broadgauge.specs.case import Case
from broadgauge.specs.networks.network import Network


def asked_network(job: JobPods, case: Case) -> AskedNetwork | None:
    """Of a case on these pods; None: one node, whose ranks need none."""
    link = case.link
    if link is None:
        return None
    face = link.kubernetes
    assert face is not None, "the plan leaves out networks without this face"
    attachments = () if face.attachment == "pod" else tuple(_attachments(job, link))
    return AskedNetwork(
        name=link.name,
        transport=face.transport,
        num_nics=link.num_nics,
        attachments=attachments,
        gpudirect=face.gpudirect,
        libraries=_libraries(case),
    )


def _libraries(case: Case) -> tuple[Library, ...]:
    """Of a command both: which one it takes is its script's to say."""
    if case.device == "cpu":
        return ("gloo",)
    if case.workload.is_under_torchrun:
        return ("gloo", "nccl")
    return ("nccl",) if case.backend == "nccl" else ("gloo",)


def _attachments(job: JobPods, link: Network) -> Iterator[AskedAttachment]:
    """Empty of a device plugin, which gives adapters and no interface."""
    fabric = fabric_of(link)
    if fabric is not None and fabric.attaches == "gke":
        for number, name in enumerate(job.attachments.gke_networks, start=1):
            yield AskedAttachment(
                definition=name, interface=f"{GKE_INTERFACE}{number}", is_name_sure=True
            )
        return
    by_name = {each.name: each for each in job.attachments.interfaces}
    for name in job.attachments.nics_of[link.name][: link.num_nics]:
        interface = by_name[name]
        yield AskedAttachment(
            definition=_definition(interface, job.settings.namespace),
            interface=name,
            subnets=_subnets(job, interface),
        )


def _definition(interface: Interface, namespace: str | None) -> str:
    """With its namespace, as far as it is said."""
    if "/" in interface.definition or namespace is None:
        return interface.definition
    return f"{namespace}/{interface.definition}"


def _subnets(job: JobPods, interface: Interface) -> tuple[str, ...]:
    """Nodes of a map may be in several."""
    if interface.is_mapped and job.address_map is not None:
        rows = parse_map(job.address_map.decode())
        networks = [row.address.network for row in rows if row.interface == interface.name]
        return tuple(dict.fromkeys(map(str, networks)))
    return () if interface.address_range is None else (interface.address_range,)


def is_status_needed(job: JobPods) -> bool:
    """Is something attached by Multus, which says in the pod's annotations what it became?"""
    return bool(job.attachments.interfaces)
