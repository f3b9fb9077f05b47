"""What must a cluster have for a job's overlay, and what should be known before it is applied?"""

from collections.abc import Iterator, Sequence

from broadgauge.manifests.fabric_parts import pod_resources
from broadgauge.manifests.interfaces import Attachments
from broadgauge.manifests.patch_operations import ADAPTERS
from broadgauge.manifests.patching import AddedNetwork, JobPatch
from broadgauge.specs.networks.transports import BY_VERBS, RDMA


def needs_of(attachments: Attachments) -> Iterator[str]:
    """Each in words: a job and its definitions are in one namespace, unless a name says another."""
    for definition in dict.fromkeys(each.definition for each in attachments.interfaces):
        space, _, name = definition.rpartition("/")
        where = space or "the job's namespace"
        yield f"NetworkAttachmentDefinition {name} in {where}"
    for resource, number in attachments.resources.items():
        yield f"{number} free {resource} on each node (a device plugin offers it)"
    for resource, quantity in pod_resources(attachments.fabrics).items():
        yield f"{quantity} of free {resource} on each node"
    for fabric in attachments.fabrics:
        yield f"{fabric.name}: {'; '.join(fabric.needs)}"


def notes_on(added: AddedNetwork, patches: Sequence[JobPatch]) -> Iterator[str]:
    """On RDMA, a sentence each: none advises what has been done."""
    if added.transport in RDMA and not added.is_memlock_raised:
        yield (
            "RDMA pins more memory than most nodes let a process lock: raise memlock on the nodes "
            "(CRI-O's `default_ulimits`, containerd's LimitMEMLOCK)"
        )
    if added.transport in BY_VERBS and not all(patch.names_adapters for patch in patches):
        yield (
            f"NCCL takes every adapter that the pods see, unless `{ADAPTERS}` says which: set it "
            "in the manifest, or by `--experiment` with `environment` of the network"
        )
