"""What is a process kubelet told when it starts: nodes, networks, images, storage, limits?

Plain data that goes to the child as JSON.
"""

import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""PATH of common images. Source: the default of the Open Containers runtime tools."""


@dataclass(frozen=True, kw_only=True)
class NodeSpec:
    """One node: what the API server is told of it, and what its pods are held to."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, str] = field(default_factory=dict)
    """Capacity and allocatable, extended resources too; cpu, memory and pods have defaults."""
    taints: Sequence[Mapping[str, str]] = ()
    instance_type: str = "process.kubelet"
    zone: str = "zone-a"
    cores: tuple[int, ...] | None = None
    """Cores of this machine that its pods' processes are held to; None leaves them free."""

    @classmethod
    def several(cls, number: int, prefix: str = "worker", **rest: Any) -> "list[NodeSpec]":
        """`worker-0`, `worker-1`, …, equal in all else."""
        return [cls(name=f"{prefix}-{index}", **rest) for index in range(number)]


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """One network that joins the nodes: a switch, and a device of each node at it."""

    name: str
    device: str = "eth0"
    """What nodes call theirs; the pod network's is the node's own business."""
    rate_gbps: float | None = None
    """Line rate of each node in each direction; None leaves it unshaped."""
    mtu_bytes: int = 1500
    counts_each_packet: bool = False
    """Pods hand over packets as the wire has them, so that their interfaces' counters are a NIC's;
    else segments go together, and their headers are counted once. Of the pod network only."""
    nodes: tuple[str, ...] | None = None
    """Which nodes have the device; None: all."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Node to the address with its prefix ("10.20.0.5/24") that the fabric gave its device."""
    only_given_addresses: bool = False
    """Drop what comes from another source address, IPv4 and ARP, as a VPC does."""
    num_vfs: int = 0
    """Virtual functions a node, on top of the device itself; each is a link of its own."""
    resource: str | None = None
    """Which extended resource the virtual functions are; the node's capacity gets it."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """A root file system, and what an image's configuration says besides."""

    root: str = "/"
    env: Mapping[str, str] = field(default_factory=dict)
    user: int = 0
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    working_dir: str = "/"


def host_image() -> Image:
    """This machine's root with the running virtual environment first in PATH."""
    return Image(env={"PATH": f"{Path(sys.executable).parent}:{HOST_PATH}"})


@dataclass(frozen=True, kw_only=True)
class Storage:
    """A StorageClass whose volumes are folders of this machine."""

    class_name: str = "folder"
    folder: Path | None = None
    """None: `volumes` in the kubelet's."""
    is_default: bool = False


@dataclass(frozen=True, kw_only=True)
class KubeletConfig:
    """All that a process kubelet needs to know."""

    kubeconfig: Path
    """As JSON, with one cluster and one user, who has a token."""
    certificate: tuple[Path, Path]
    """A server's, and its key, with which logs are served. An API server takes any, unless it was
    given an authority for kubelets: its own will do."""
    folder: Path
    """For pods' folders, logs and the control socket. Short: a socket's path has 107 bytes."""
    nodes: Sequence[NodeSpec]
    pod_network: Fabric = Fabric(name="pods")
    fabrics: Sequence[Fabric] = ()
    images: Mapping[str, Image] = field(default_factory=dict)
    default_image: Image = field(default_factory=host_image)
    shared_folders: Sequence[str] = field(
        default_factory=lambda: (str(Path.cwd()), sys.base_prefix)
    )
    """Seen, and reachable by any user, in pods on this machine's root."""
    storage: Storage | None = None
    allow_host_path: bool = False
    log_max_bytes: int = 10 << 20
    """containerLogMaxSize of the kubelet's configuration: 10Mi by default."""
    log_max_files: int = 5
    pull_delay_s: float = 0.0
    restart_backoff_s: float = 1.0
    """First pause before a restart, doubled each time; a real kubelet begins with 10 s."""
    memlock_bytes: int = 8 << 20
    """Soft and hard limit of locked memory. Source: the kernel's default since Linux 5.16."""
    dns_patience_s: float = 3.0
    """How long a name of the cluster whose pods are still starting is waited for."""

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> "KubeletConfig":
        raw = json.loads(text)
        raw["kubeconfig"], raw["folder"] = Path(raw["kubeconfig"]), Path(raw["folder"])
        raw["certificate"] = tuple(map(Path, raw["certificate"]))
        raw["nodes"] = [_node(node) for node in raw["nodes"]]
        raw["pod_network"] = _fabric(raw["pod_network"])
        raw["fabrics"] = [_fabric(fabric) for fabric in raw["fabrics"]]
        raw["images"] = {name: Image(**image) for name, image in raw["images"].items()}
        raw["default_image"] = Image(**raw["default_image"])
        if raw["storage"] is not None:
            storage = raw["storage"]
            folder = storage["folder"] or raw["folder"] / "volumes"
            raw["storage"] = Storage(**storage | {"folder": Path(folder)})
        return cls(**raw)


def _node(raw: dict[str, Any]) -> NodeSpec:
    cores = raw["cores"]
    return NodeSpec(**raw | {"cores": None if cores is None else tuple(cores)})


def _fabric(raw: dict[str, Any]) -> Fabric:
    nodes = raw["nodes"]
    return Fabric(**raw | {"nodes": None if nodes is None else tuple(nodes)})
