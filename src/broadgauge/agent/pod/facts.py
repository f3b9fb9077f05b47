"""What does a pod see of its networks, adapters, GPUs and limits? Read once, judged elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from broadgauge.agent.hardware.reading import read_machine_hardware
from broadgauge.agent.hardware.tree import Tree
from broadgauge.agent.pod.status import (
    NetworkStatus,
    StatusError,
    parse_status,
    read_annotations,
    status_of,
)
from broadgauge.messages.hardware import GpuDevice, HardwareFacts, HcaFacts, NicFacts

ANNOTATIONS_FOLDER = "/broadgauge/podinfo"
ANNOTATIONS_FILE = f"{ANNOTATIONS_FOLDER}/annotations"
"""Of the downward API: all of the pod's annotations, or the value of the network status alone."""
TOPOLOGY_FILE = "/var/run/nvidia-topologyd/virtualTopology.xml"
"""Which NCCL reads by itself. Source: NVIDIA/nccl, src/graph/topo.cc."""
VERBS_LIBRARY = "libibverbs.so.1"
_LOADER_CACHE = "/etc/ld.so.cache"
_MOST_CACHE_BYTES = 16 << 20
_FABRIC_FILES = ("cxi", "hfi1_")
"""As files in /dev begin that Slingshot's and Omni-Path's libraries open."""
_NET = "/sys/class/net"
_VERBS = "/sys/class/infiniband_verbs"


@dataclass(frozen=True, slots=True, kw_only=True)
class NicLinks:
    """What a network interface is joined to, beyond what `NicFacts` says."""

    lower: tuple[str, ...] = ()
    """Interfaces that it stands on (macvlan, ipvlan, vlan, bond), by `lower_*`; only those of the
    same network namespace can be seen, so in a pod usually none."""
    has_gateway: bool = False
    """Has it a route that leaves its own subnet, in the main routing table? Policy routing's are
    not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """One pod, as one process in it sees it."""

    hardware: HardwareFacts
    links: Mapping[str, NicLinks] = field(default_factory=dict)
    """By interface."""
    verbs_files: Mapping[str, str] = field(default_factory=dict)
    """Adapter → its file for libibverbs, `/dev/infiniband/uverbs0`, be it there or not."""
    fabric_files: tuple[str, ...] = ()
    """In /dev, of fabrics beside RDMA's: `cxi0`, `hfi1_0`."""
    status: tuple[NetworkStatus, ...] | None = None
    """None: there is no status annotation, or it is not there yet, or not readable."""
    status_problem: str | None = None
    """Why it, or an entry of it, is not readable."""
    loader_has_verbs: bool = False
    """Is libibverbs in the loader's cache (ldconfig(8)), in whichever folder?"""
    has_topology_file: bool = False
    """Is there a virtual machine's topology for NCCL?"""

    def nic(self, name: str) -> NicFacts | None:
        """By name; None: it is not here."""
        return next((nic for nic in self.hardware.nics if nic.name == name), None)

    def hca(self, name: str) -> HcaFacts | None:
        """By name; None: it is not here."""
        return next((hca for hca in self.hardware.hcas if hca.name == name), None)

    @property
    def opened_files(self) -> set[str]:
        """Of libibverbs, those that this container may open."""
        rdma = self.hardware.rdma
        return set(rdma.device_files) - set(rdma.refused_files)

    @property
    def gpus(self) -> tuple[GpuDevice, ...]:
        """Those that this container may use."""
        return tuple(gpu for gpu in self.hardware.gpus if gpu.is_usable is not False)

    @property
    def given(self) -> dict[str, str]:
        """What the process has been given of NCCL's and Gloo's variables: by the manifest, in which
        stands what the user set, or by the image."""
        return {
            each.name: each.value
            for each in self.hardware.variables
            if each.place == "environment" and each.value
        }


def read_pod_facts(
    root: Path, environ: Mapping[str, str], annotations: str = ANNOTATIONS_FILE
) -> PodFacts:
    """Of the pod that this process runs in, or of a tree that a test has built.

    `annotations`: the downward API's file, below `root`.
    """
    tree = Tree(root)
    status, problem = read_status(tree.text(annotations) or "")
    return PodFacts(
        hardware=read_machine_hardware(root, environ),
        links=_read_links(tree),
        verbs_files=_read_verbs_files(tree),
        fabric_files=tuple(name for name in tree.names("/dev") if name.startswith(_FABRIC_FILES)),
        status=status,
        status_problem=problem,
        loader_has_verbs=VERBS_LIBRARY.encode()
        in (tree.data(_LOADER_CACHE, most_bytes=_MOST_CACHE_BYTES) or b""),
        has_topology_file=tree.exists(TOPOLOGY_FILE),
    )


def read_status(text: str) -> tuple[tuple[NetworkStatus, ...] | None, str | None]:
    """Of the file's text, and why it or some of it can't be read; None: there is none."""
    try:
        is_value = text.lstrip().startswith("[")
        found = parse_status(text) if is_value else status_of(read_annotations(text))
    except StatusError as error:
        return None, str(error)
    if found is None:
        return None, None
    return found.networks, "; ".join(found.left_out) or None


def _read_links(tree: Tree) -> dict[str, NicLinks]:
    """Source of the columns of /proc/net/route, the main table's: proc_net(5)."""
    cells = [line.split() for line in tree.lines("/proc/net/route")[1:]]
    with_gateway = {row[0] for row in cells if len(row) > 2 and row[2].strip("0")}
    return {
        name: NicLinks(
            lower=tuple(
                each.removeprefix("lower_")
                for each in tree.names(_NET, name)
                if each.startswith("lower_")
            ),
            has_gateway=name in with_gateway,
        )
        for name in tree.names(_NET)
    }


def _read_verbs_files(tree: Tree) -> dict[str, str]:
    """Source: Linux, Documentation/ABI/stable/sysfs-class-infiniband, `infiniband_verbs`."""
    found = ((tree.text(_VERBS, name, "ibdev"), name) for name in tree.names(_VERBS))
    return {hca: f"/dev/infiniband/{name}" for hca, name in found if hca}
