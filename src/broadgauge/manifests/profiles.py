"""What does a cloud's fabric add to a pod? By the catalog's profile of its networks."""

import json
from typing import TYPE_CHECKING

from broadgauge.catalog.fabrics import Daemon, fabric_of
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.network import Network

if TYPE_CHECKING:
    from broadgauge.manifests.request import JobRequest

GKE_INTERFACES = "networking.gke.io/interfaces"
GKE_DEFAULT = "networking.gke.io/default-interface"
GKE_DEVICES = "devices.gke.io/container."
"""And the container's name. Source: GoogleCloudPlatform/container-engine-accelerators,
gpudirect-tcpxo/nccl-test-latest.yaml."""


def attaches_by_gke(network: Network) -> bool:
    """Are its NICs added by GKE's own annotation, and not by Multus?"""
    fabric = fabric_of(network)
    return fabric is not None and fabric.attaches == "gke"


def annotations(request: "JobRequest") -> dict[str, str]:
    """That give a pod the fabric's NICs and its daemon the devices."""
    found: dict[str, str] = {}
    for network in request.networks:
        attached = network.kubernetes
        if attached is None or not attaches_by_gke(network) or GKE_INTERFACES in found:
            continue
        names = ("default", *attached.definitions)
        entries = [{"interfaceName": f"eth{i}", "network": name} for i, name in enumerate(names)]
        found |= {GKE_DEFAULT: "eth0", GKE_INTERFACES: json.dumps(entries, indent=2)}
    for daemon in _daemons(request):
        if daemon.devices:
            lines = "".join(f"- path: {device}\n" for device in daemon.devices)
            found[f"{GKE_DEVICES}{daemon.name}"] = lines
    return found


def resources(request: "JobRequest") -> dict[str, str]:
    """Further ones of each pod. Huge pages need CPUs or memory asked for beside them, as they are.

    Source: Kubernetes, "Manage HugePages".
    """
    return {name: text for fabric in request.fabrics for name, text in fabric.pod_resources.items()}


def daemons(request: "JobRequest") -> list[Manifest]:
    """Sidecars: they start before the ranks' container, and end with it.

    Source: Kubernetes, "Sidecar Containers" (init containers with `restartPolicy: Always`), 1.29.
    """
    return [_container(daemon) for daemon in _daemons(request)]


def _daemons(request: "JobRequest") -> list[Daemon]:
    return [fabric.daemon for fabric in request.fabrics if fabric.daemon is not None]


def _container(daemon: Daemon) -> Manifest:
    """As root: it sets up NICs and the devices of all GPUs."""
    return {
        "name": daemon.name,
        "image": daemon.image,
        "restartPolicy": "Always",
        "command": [word.replace("$", "$$") for word in daemon.command],
        "env": [{"name": name, "value": value} for name, value in daemon.environment.items()],
        "securityContext": {
            "runAsNonRoot": False,
            "runAsUser": 0,
            "capabilities": {"drop": ["ALL"], "add": list(daemon.capabilities)},
        },
        "volumeMounts": [
            {"name": f"fabric-{each.name}", "mountPath": each.mount} for each in daemon.host_paths
        ],
    }
