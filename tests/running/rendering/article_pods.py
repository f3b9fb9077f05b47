"""Pods as those of the articles: what our entrypoint finds there, and what theirs set.

What the articles' pods are like is transcribed from "Network performance in distributed training:
Maximizing GPU utilization on OpenShift" (2025-10-16; its entrypoint, its address map, and TOPSAIL,
which it names, for the interfaces' names) and "Accelerate model training on OpenShift AI with
NVIDIA GPUDirect RDMA" (2025; its overlay `sft-roce`).
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.agent.hardware import machines
from tests.agent.hardware.machines import CX6_VF, CX7, switch_path
from tests.agent.pod import pods
from tests.running.rendering.experiments import asked_by, objects_of, variables_of

from broadgauge.agent.pod.address_map import parse_map
from broadgauge.agent.pod.resolve import ResolvedNetwork, resolve
from broadgauge.manifests.attachments import NETWORKS as ANNOTATION
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.running.experiments import examples_folder, load
from broadgauge.running.rendering.experiment import (
    ON_KUBERNETES,
    RenderedExperiment,
    render_experiment,
)

SRIOV = [f"enp{number}s0" for number in range(163, 243, 10)]
"""The article's instance has eight, of which it names enp223s0; enp163s0 is the last adapter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArticlePod:
    """A pod of one case, with the network that it found."""

    environment: dict[str, str]
    """Of its ranks."""
    resolved: ResolvedNetwork

    def of(self, *prefixes: str) -> dict[str, str]:
        """Variables that begin so."""
        return {key: value for key, value in self.environment.items() if key.startswith(prefixes)}


def template(example: str, network: str, *overrides: str) -> Manifest:
    """Of the master's pods of the article's own command on this network of several nodes."""
    found = _rendered(example, overrides)
    jobs = zip(found.jobs, objects_of(found, "PyTorchJob"), strict=True)
    (job,) = [
        each
        for job, each in jobs
        if job.case.network_name == network
        and job.num_pods > 1
        and job.case.workload.name == "as-published"
    ]
    master: Manifest = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    return master


@cache
def _rendered(example: str, overrides: tuple[str, ...]) -> RenderedExperiment:
    """Once for all networks of it."""
    return render_experiment(load(example, (ON_KUBERNETES, *overrides)))


def pod_of(root: Path, pod: Manifest) -> ArticlePod:
    """What its entrypoint finds on this tree of files."""
    (container,) = pod["spec"]["containers"]
    asked = asked_by(container)
    assert asked is not None
    manifest = {key: str(value) for key, value in variables_of(container).items()}
    facts = pods.facts_of(root, status_of(pod, addresses_of(root)), **manifest)
    resolved = resolve(asked, facts)
    return ArticlePod(environment=manifest | resolved.variables, resolved=resolved)


def status_of(pod: Manifest, addresses: dict[str, str]) -> str:
    """What Multus says of a pod that was given what its annotation asks for."""
    asked: list[dict[str, Any]] = json.loads(pod["metadata"]["annotations"][ANNOTATION])
    entries = [
        {
            "name": f"{each.get('namespace', 'own')}/{each['name']}",
            "interface": each["interface"],
            "ips": [addresses[each["interface"]]],
            "dns": {},
        }
        for each in asked
    ]
    return pods.status(*entries)


def addresses_of(root: Path) -> dict[str, str]:
    """Those that the tree's builder gave to its interfaces."""
    found: dict[str, str] = json.loads((root / "addresses.json").read_text())
    return found


def h100_pod(root: Path, example: str) -> None:
    """Eight H100, eight virtual NICs, and eight virtual functions whose adapters count downwards,
    with RoCE v2 and IPv4 in row 3; addresses are those of the example's map."""
    map_file = examples_folder() / f"address-maps/{example}.txt"
    rows = [row for row in parse_map(map_file.read_text()) if row.host == "worker-0"]
    machine = pods.pod(root, gpus=8)
    addresses = {}
    for row in rows:
        addresses[row.interface] = str(row.address.ip)
        if row.device not in SRIOV:
            machine.nic(row.interface, is_pair=True, address=str(row.address))
            continue
        place = SRIOV.index(row.device)
        device = machine.pci(switch_path(0x10 + 0x10 * place, 1), CX6_VF, kind="0x020000")
        machine.nic(row.interface, device=device, driver="mlx5_core", address=str(row.address))
        name = f"mlx5_{len(SRIOV) - 1 - place}"
        gids = machines.roce_gids(str(row.address.ip))
        machine.hca(name, device, layer="Ethernet", gids=gids)
        pods.verbs_file(machine, name, place)
    (root / "addresses.json").write_text(json.dumps(addresses))


def a40_pod(root: Path) -> None:
    """Two A40, and a macvlan over the node's NIC, whose adapter all pods of the node share: its
    table has the node's address before the pod's."""
    machine = pods.pod(root, gpus=2)
    machine.nic("net1", devtype="macvlan", address="192.168.2.5/24", is_pair=True)
    for number, gids in enumerate((pods.table(2), pods.table(2, "10.6.0.4", "192.168.2.5"))):
        device = machine.pci(switch_path(0x10 + 0x10 * number, 1), CX7, kind="0x020000")
        machine.hca(f"mlx5_{number}", device, layer="Ethernet", gids=gids)
        pods.verbs_file(machine, f"mlx5_{number}", number)
    (root / "addresses.json").write_text(json.dumps({"net1": "192.168.2.5"}))
