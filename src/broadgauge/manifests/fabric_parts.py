"""What does a cloud's fabric add to a pod, beside its NICs? By the catalog's profile."""

import json
from collections.abc import Iterable, Sequence

from broadgauge.catalog.fabrics import Daemon, FabricProfile, HostPath
from broadgauge.manifests.expansion import not_expanded
from broadgauge.manifests.yaml_text import Manifest

GKE_INTERFACES = "networking.gke.io/interfaces"
GKE_INTERFACE = "eth"
"""Before its number: 0 is the pod network's."""
GKE_DEFAULT = "networking.gke.io/default-interface"
GKE_DEVICES = "devices.gke.io/container."
"""And the container's name. Source: GoogleCloudPlatform/container-engine-accelerators,
gpudirect-tcpxo/nccl-test-latest.yaml."""


def gke_annotations(networks: Sequence[str]) -> dict[str, str]:
    """By which GKE attaches its Network objects of these names; empty: there are none."""
    if not networks:
        return {}
    names = ("default", *networks)
    entries = [
        {"interfaceName": f"{GKE_INTERFACE}{i}", "network": name} for i, name in enumerate(names)
    ]
    return {GKE_DEFAULT: f"{GKE_INTERFACE}0", GKE_INTERFACES: json.dumps(entries, indent=2)}


def device_annotations(fabrics: Sequence[FabricProfile]) -> dict[str, str]:
    """By which GKE's device injector gives a daemon the node's devices."""
    return {
        f"{GKE_DEVICES}{daemon.name}": "".join(f"- path: {path}\n" for path in daemon.devices)
        for daemon in daemons(fabrics)
        if daemon.devices
    }


def pod_resources(fabrics: Iterable[FabricProfile]) -> dict[str, str]:
    """Further ones of each pod, such as huge pages, which need CPUs or memory beside them.

    Source: Kubernetes, "Manage HugePages".
    """
    return {name: text for fabric in fabrics for name, text in fabric.pod_resources.items()}


def daemons(fabrics: Iterable[FabricProfile]) -> list[Daemon]:
    """What runs beside the ranks."""
    return [fabric.daemon for fabric in fabrics if fabric.daemon is not None]


def sidecars(fabrics: Iterable[FabricProfile]) -> list[Manifest]:
    """They start before the ranks' container, and end with it.

    Source: Kubernetes, "Sidecar Containers" (init containers with `restartPolicy: Always`), 1.29.
    """
    return [_sidecar(daemon) for daemon in daemons(fabrics)]


def _sidecar(daemon: Daemon) -> Manifest:
    """As root: it sets up NICs and the devices of all GPUs. Nothing is dropped, as in the manifests
    that its maker publishes."""
    return {
        "name": daemon.name,
        "image": daemon.image,
        "restartPolicy": "Always",
        "command": [not_expanded(word) for word in daemon.command],
        "env": [
            {"name": name, "value": not_expanded(value)}
            for name, value in daemon.environment.items()
        ],
        "securityContext": {
            "runAsNonRoot": False,
            "runAsUser": 0,
            "capabilities": {"add": list(daemon.capabilities)},
        },
        "volumeMounts": [_mount(each) for each in daemon.host_paths],
    }


def rank_mounts(fabrics: Iterable[FabricProfile]) -> list[Manifest]:
    """Of the ranks' container."""
    return [_mount(each) for fabric in fabrics for each in fabric.host_paths]


def host_volumes(fabrics: Sequence[FabricProfile]) -> list[Manifest]:
    """Folders of the node that ranks or daemons see, each once."""
    of_daemons = (each for daemon in daemons(fabrics) for each in daemon.host_paths)
    of_ranks = (each for fabric in fabrics for each in fabric.host_paths)
    paths = {each.name: each.path for each in (*of_ranks, *of_daemons)}
    return [{"name": _volume(name), "hostPath": {"path": path}} for name, path in paths.items()]


def _mount(path: HostPath) -> Manifest:
    return {"name": _volume(path.name), "mountPath": path.mount}


def _volume(name: str) -> str:
    return f"fabric-{name}"
