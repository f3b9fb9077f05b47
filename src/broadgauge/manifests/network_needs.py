"""What must a cluster have for the networks of these jobs, and what should be known of them?"""

from collections.abc import Iterator, Sequence

from broadgauge.catalog.fabrics import FabricProfile
from broadgauge.manifests.cni import CniConfig
from broadgauge.manifests.definitions import Interface
from broadgauge.manifests.fabric_parts import daemons
from broadgauge.manifests.job import PodJob
from broadgauge.manifests.mapped_nodes import mapped_nodes
from broadgauge.manifests.security import locks_memory, needs_ipc_lock

_MADE_BY = {
    "sriov": "the SR-IOV CNI plugin and its device plugin (the SR-IOV operator brings both)",
    "ib-sriov": "the InfiniBand SR-IOV CNI plugin and its device plugin",
    "rdma": "the RDMA CNI plugin, and `rdma system` in the mode `exclusive`",
    "whereabouts": "whereabouts, which gives addresses out of the ranges",
    "nv-ipam": "nv-ipam with the pools that are named",
    "dhcp": "the daemon of the dhcp CNI plugin, and a DHCP server on the network",
}
"""What is on no node by itself; the plugins of containernetworking are where Multus is."""
_MOST_NAMED = 4


def network_prerequisites(jobs: Sequence[PodJob]) -> Iterator[str]:
    """Each in words, of all jobs together."""
    interfaces = _distinct(jobs)
    if interfaces:
        yield "Multus, which attaches secondary networks (OpenShift has it)"
    used = dict.fromkeys(
        kind for each in interfaces if each.config is not None for kind in _kinds(each.config)
    )
    yield from (_MADE_BY[kind] for kind in used if kind in _MADE_BY)
    devices = dict.fromkeys(each.device for each in interfaces if each.device is not None)
    if devices:
        yield f"nodes with the device{'s' * (len(devices) > 1)} {', '.join(devices)}"
    nodes = dict.fromkeys(node for job in jobs for node in mapped_nodes(job))
    if nodes:
        shown = ", ".join(list(nodes)[:_MOST_NAMED])
        more = f" and {len(nodes) - _MOST_NAMED} more" if len(nodes) > _MOST_NAMED else ""
        yield f"nodes as the address map names them: {shown}{more}"
    there = dict.fromkeys(each.definition for each in interfaces if each.config is None)
    yield from (f"NetworkAttachmentDefinition {name}" for name in there)
    resources: dict[str, int] = {}
    for job in jobs:
        for name, number in job.attachments.resources.items():
            resources[name] = max(number, resources.get(name, 0))
    for name, number in resources.items():
        yield f"{number} free {name} on each node (a device plugin offers it)"
    for fabric in _fabrics(jobs):
        yield f"{fabric.name}: {'; '.join(fabric.needs)}"


def network_notes(jobs: Sequence[PodJob]) -> Iterator[str]:
    """A sentence or two each, without place."""
    interfaces = _distinct(jobs)
    if len({each for job in jobs for each in job.attachments.names_of}) > 1 and interfaces:
        yield (
            "pods of all cases of a shape are alike: every network of it is attached to each, and "
            "only what ranks send by differs. `kubernetes.allocation: per_case` attaches a case's "
            "own alone"
        )
    moved = list(dict.fromkeys(each.device for each in interfaces if _is_moved(each)))
    if moved:
        shown = ", ".join(filter(None, moved[:_MOST_NAMED]))
        shown += f" and {len(moved) - _MOST_NAMED} more" if len(moved) > _MOST_NAMED else ""
        yield (
            f"{shown}: moved into the pod (host-device), so that one pod a node has it, and the "
            "node does without. Never name the node's own uplink"
        )
    if any(job.address_map is not None for job in jobs):
        yield (
            "the address map's init container runs as root with NET_ADMIN, which Pod Security "
            "allows under `privileged` only, and OpenShift by an SCC of your own; the ranks' "
            "container has neither"
        )
    if any(each.is_numbered for each in interfaces):
        yield (
            "`static`: pods of every job have the same addresses, so that one job is applied after "
            "another, and never all at once"
        )
    for daemon in daemons(_fabrics(jobs)):
        yield (
            f"{daemon.name} runs beside the ranks as root, with {', '.join(daemon.capabilities)} "
            "and folders of the node, which Pod Security allows under `privileged` only"
        )
    yield from _on_locked_memory(jobs)
    if _has_rdma_gpus(jobs) and all(job.topology is None for job in jobs):
        yield (
            "no NCCL topology file (`kubernetes.topology_file`): NCCL reads the PCI buses that a "
            "pod sees. In virtual machines these seldom tell which NIC is near which GPU"
        )


def _fabrics(jobs: Sequence[PodJob]) -> list[FabricProfile]:
    found = {each.name: each for job in jobs for each in job.attachments.fabrics}
    return list(found.values())


def _on_locked_memory(jobs: Sequence[PodJob]) -> Iterator[str]:
    locking = [job for job in jobs if locks_memory(job)]
    if not locking:
        return
    if needs_ipc_lock(locking[0]):
        yield (
            "RDMA pins memory: pods run as root and are given IPC_LOCK for it, which Pod Security "
            "allows under `privileged` only. Raise memlock on the nodes and say "
            "`kubernetes.memlock_is_raised: true`, and they need neither"
        )
    else:
        yield (
            "RDMA pins more memory than most nodes let a process lock, and NCCL then fails with "
            "`ibv_reg_mr… Cannot allocate memory`. Raise memlock on the nodes (CRI-O's "
            "`default_ulimits`, containerd's LimitMEMLOCK) and say `kubernetes.memlock_is_raised: "
            "true`; or take `kubernetes.run_as_user: 0`, since the capability IPC_LOCK has an "
            "effect in root's processes only"
        )


def _has_rdma_gpus(jobs: Sequence[PodJob]) -> bool:
    return any(job.needs_locked_memory and job.gpus_per_pod for job in jobs)


def _is_moved(interface: Interface) -> bool:
    if interface.config is None or interface.device is None:
        return False
    return _kinds(interface.config)[0] == "host-device"


def _kinds(config: CniConfig) -> list[str]:
    """Of plugins, then of what gives addresses."""
    plugins = config.get("plugins") or [config]
    given = [str(each["ipam"]["type"]) for each in plugins if "ipam" in each]
    return [*(str(each["type"]) for each in plugins), *given]


def _distinct(jobs: Sequence[PodJob]) -> list[Interface]:
    found = {
        (each.definition, each.name): each for job in jobs for each in job.attachments.interfaces
    }
    return list(found.values())
