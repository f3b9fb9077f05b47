"""What does the API server know of the nodes? Node objects, written once: nothing beats.

The controller manager runs without node-lifecycle-controller, so a node stays ready until a test
says otherwise.
"""

import os
from typing import Any

from tests.kubernetes.kubelet.api import Api, now_text
from tests.kubernetes.kubelet.config import KubeletConfig, NodeSpec

Json = dict[str, Any]
VERSION = "v1.36.3"
"""Of the kubelet that it stands for."""
_NOT_READY_TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def node_address(number: int) -> str:
    """Its InternalIP: a loopback address of its own, which the API server reaches."""
    high, low = divmod(number, 250)
    return f"127.77.{high}.{low + 1}"


def node_object(spec: NodeSpec) -> Json:
    labels = {
        "kubernetes.io/hostname": spec.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine],
        "node.kubernetes.io/instance-type": spec.instance_type,
        "topology.kubernetes.io/zone": spec.zone,
        "topology.kubernetes.io/region": spec.zone.rpartition("-")[0] or spec.zone,
        **spec.labels,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": spec.name, "labels": labels},
        "spec": {
            "taints": [dict(taint) for taint in spec.taints],
            "providerID": f"process://{spec.name}",
        },
    }


def capacity(spec: NodeSpec, config: KubeletConfig) -> dict[str, str]:
    """What it has: the machine's cores and memory unless told, and its virtual functions."""
    memory_kib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 10
    found = {
        "cpu": str(os.cpu_count()),
        "memory": f"{memory_kib}Ki",
        "ephemeral-storage": "50Gi",
        "pods": "110",
    }
    for fabric in config.fabrics:
        if fabric.resource is not None and (fabric.nodes is None or spec.name in fabric.nodes):
            found[fabric.resource] = str(int(found.get(fabric.resource, "0")) + fabric.num_vfs)
    return found | dict(spec.resources)


def node_status(spec: NodeSpec, config: KubeletConfig, place: tuple[str, int]) -> Json:
    """`place`: address and port of the kubelet."""
    address, port = place
    amounts = capacity(spec, config)
    kernel = os.uname()
    return {
        "capacity": amounts,
        "allocatable": amounts,
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": spec.name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "conditions": _conditions(is_ready=True),
        "nodeInfo": {
            "machineID": spec.name,
            "systemUUID": spec.name,
            "bootID": spec.name,
            "kernelVersion": kernel.release,
            "osImage": "process kubelet",
            "containerRuntimeVersion": "process://1.0",
            "kubeletVersion": VERSION,
            "kubeProxyVersion": VERSION,
            "operatingSystem": "linux",
            "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[kernel.machine],
        },
    }


def _conditions(*, is_ready: bool) -> list[Json]:
    now = now_text()
    ready = {
        "type": "Ready",
        "status": "True" if is_ready else "Unknown",
        "reason": "KubeletReady" if is_ready else "NodeStatusUnknown",
        "message": "kubelet is posting ready status" if is_ready else
        "Kubelet stopped posting node status.",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }  # fmt: skip
    calm = {"status": "False", "lastHeartbeatTime": now, "lastTransitionTime": now}
    kinds = ("MemoryPressure", "DiskPressure", "PIDPressure")
    return [*({"type": kind, "reason": "KubeletHasNo" + kind, **calm} for kind in kinds), ready]


def register(api: Api, spec: NodeSpec, config: KubeletConfig, place: tuple[str, int]) -> None:
    """Make the Node, or take one over that was left."""
    path = f"/api/v1/nodes/{spec.name}"
    wanted = node_object(spec)
    if api.create("/api/v1/nodes", wanted) is None:
        api.patch(
            path, {"metadata": wanted["metadata"], "spec": {"taints": wanted["spec"]["taints"]}}
        )
    api.patch(f"{path}/status", {"status": node_status(spec, config, place)})
    node = api.get(path)
    taints = [] if node is None else node["spec"].get("taints") or []
    kept = [one for one in taints if one["key"] != _NOT_READY_TAINT["key"]]
    if kept != taints:  # the API server's admission puts it on every new node
        api.patch(path, {"spec": {"taints": kept}})


def set_ready(api: Api, spec: NodeSpec, *, is_ready: bool) -> None:
    """As the node controller does when a node stops to report: condition and taint."""
    path = f"/api/v1/nodes/{spec.name}"
    api.patch(f"{path}/status", {"status": {"conditions": _conditions(is_ready=is_ready)}})
    taints = [dict(taint) for taint in spec.taints]
    api.patch(path, {"spec": {"taints": taints if is_ready else [*taints, _NOT_READY_TAINT]}})
