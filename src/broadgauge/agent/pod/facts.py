"""What does a pod see of its networks, adapters, GPUs and limits? Read once, judged elsewhere."""

import os
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

ANNOTATIONS_FILE = Path("/broadgauge/podinfo/annotations")
"""Of the downward API: the pod's annotations, or the value of the network status alone."""
TOPOLOGY_FILE = "/var/run/nvidia-topologyd/virtualTopology.xml"
"""Which NCCL reads by itself. Source: NVIDIA/nccl, src/graph/topo.cc."""
_NET = "/sys/class/net"
_VERBS = "/sys/class/infiniband_verbs"


@dataclass(frozen=True, slots=True, kw_only=True)
class NicLinks:
    """What a network interface is joined to, beyond what `NicFacts` says."""

    mac: str | None = None
    """Lower-case."""
    lower: tuple[str, ...] = ()
    """Interfaces that it stands on (macvlan, ipvlan, vlan, bond), by `lower_*`; only those of the
    same network namespace can be seen, so in a pod usually none."""
    has_gateway: bool = False
    """Has it a route that leaves its own subnet?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """One pod, as one process in it sees it."""

    hardware: HardwareFacts
    links: Mapping[str, NicLinks] = field(default_factory=dict)
    """By interface."""
    verbs_files: Mapping[str, str] = field(default_factory=dict)
    """Adapter → its file for libibverbs, `/dev/infiniband/uverbs0`, be it there or not."""
    status: tuple[NetworkStatus, ...] | None = None
    """None: there is no status annotation, or it is not there yet, or not readable."""
    status_problem: str | None = None
    """Why it is not readable."""
    has_topology_file: bool = False
    """Is there a virtual machine's topology for NCCL?"""

    def nic(self, name: str) -> NicFacts | None:
        """By name; None: it is not here."""
        return next((nic for nic in self.hardware.nics if nic.name == name), None)

    def hca(self, name: str) -> HcaFacts | None:
        """By name; None: it is not here."""
        return next((hca for hca in self.hardware.hcas if hca.name == name), None)

    @property
    def gpus(self) -> tuple[GpuDevice, ...]:
        """Those that this container may use."""
        return tuple(gpu for gpu in self.hardware.gpus if gpu.is_usable is not False)


def read_pod_facts(
    root: Path = Path("/"),
    annotations: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> PodFacts:
    """Of the pod that this process runs in, or of a tree that a test has built.

    `annotations`: the downward API file's text; None: it is read below `root`.
    """
    tree = Tree(root)
    if annotations is None:
        annotations = tree.text(str(ANNOTATIONS_FILE)) or ""
    status, problem = _read_status(annotations)
    return PodFacts(
        hardware=read_machine_hardware(root, os.environ if environ is None else environ),
        links=_read_links(tree),
        verbs_files=_read_verbs_files(tree),
        status=status,
        status_problem=problem,
        has_topology_file=tree.exists(TOPOLOGY_FILE),
    )


def _read_status(text: str) -> tuple[tuple[NetworkStatus, ...] | None, str | None]:
    try:
        if text.lstrip().startswith("["):
            return parse_status(text), None
        return status_of(read_annotations(text)), None
    except StatusError as error:
        return None, str(error)


def _read_links(tree: Tree) -> dict[str, NicLinks]:
    """Source of the columns of /proc/net/route: proc_net(5)."""
    cells = [line.split() for line in tree.lines("/proc/net/route")[1:]]
    with_gateway = {row[0] for row in cells if len(row) > 2 and row[2].strip("0")}
    return {
        name: NicLinks(
            mac=(tree.text(_NET, name, "address") or "").lower() or None,
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
