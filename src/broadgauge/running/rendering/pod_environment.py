"""Which variables do the ranks of a rendered job start with?

As on every platform (platforms/rank_environment.py): what the platform sets, then the case's own.
torchrun sets its contract itself, the pod's entrypoint what it finds of the network, and NCCL's log
stands in the pod's: `broadgauge doctor` reads it there.
"""

from collections.abc import Iterable, Mapping, Sequence

from broadgauge.manifests.attachments import TOPOLOGY_KEY
from broadgauge.manifests.nothing_secret import TO_A_SECRET
from broadgauge.manifests.volumes import TOPOLOGY
from broadgauge.platforms.meant_transport import face_variables
from broadgauge.platforms.paths import NCCL_VARIABLES
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.kubernetes.settings import Kubernetes
from broadgauge.specs.networks.pod_networks import AttachedNetwork
from broadgauge.specs.secrets.variables import FromEnvironment

LOOPBACK = "lo"
NCCL_LOG = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,NET,ENV,GRAPH"}


def pod_environment(case: Case, settings: Kubernetes, cpus: float | None) -> dict[str, str]:
    """Without secrets, and without what the pod looks up itself. `cpus`: of a pod. Raises
    InputError for a secret that no Secret is named for."""
    check_secrets(case.environment, settings.secrets_of(case.workload.name))
    own = {name: value for name, value in case.environment.items() if isinstance(value, str)}
    found = _platform_variables(case, cpus)
    if settings.topology_file is not None and case.device == "cuda":
        found["NCCL_TOPO_FILE"] = f"{TOPOLOGY}/{TOPOLOGY_KEY}"
    return {**found, **own}


def pod_cpus(experiment: Experiment, case: Case) -> float | None:
    """Of a pod. Where CPUs compute there is always a limit, and as many threads."""
    settings, cluster = experiment.kubernetes, experiment.cluster
    if settings.cpus is not None:
        return settings.cpus
    if cluster.cores_per_node != "auto":
        return float(cluster.cores_per_node)
    return float(case.ranks_per_node) if case.device == "cpu" else None


def network_variables(face: AttachedNetwork, interfaces: Sequence[str]) -> dict[str, str]:
    """What a user's own job, without our entrypoint, is told of a pod's network, and of its
    interfaces there. NCCL's log proves what it did.

    Source: docs.nvidia.com/deeplearning/nccl, NCCL_SOCKET_IFNAME (`=`: these and no others); torch
    2.11, ProcessGroupGloo (a list of interfaces is used in turn).
    """
    names = ",".join(interfaces)
    return {
        "GLOO_SOCKET_IFNAME": names,
        "NCCL_SOCKET_IFNAME": f"={names}",
        **NCCL_LOG,
        **face_variables(face),
    }


def _platform_variables(case: Case, cpus: float | None) -> dict[str, str]:
    """Of a command both libraries' variables: which one it takes is its script's to say. By which
    interfaces and adapters several nodes send is looked up in the pod (agent/pod/resolve.py)."""
    found = {}
    if cpus is not None:
        found["OMP_NUM_THREADS"] = str(max(1, int(cpus) // case.ranks_per_node))
    network = dict(NCCL_LOG)
    if case.link is None:
        network |= {"GLOO_SOCKET_IFNAME": LOOPBACK, "NCCL_SOCKET_IFNAME": f"={LOOPBACK}"}
    if not case.workload.is_under_torchrun:
        of_backend = "NCCL_" if case.backend == "nccl" else "GLOO_"
        network = {key: value for key, value in network.items() if key.startswith(of_backend)}
    found |= network
    return found if case.path is None else {**found, **NCCL_VARIABLES[case.path.path]}


def check_secrets(variables: Mapping[str, str | FromEnvironment], known: Iterable[str]) -> None:
    """A variable that is a secret can't come from the environment of whoever renders. Raises
    InputError."""
    for name, value in variables.items():
        if not isinstance(value, str) and name not in known:
            raise InputError(
                f"environment.{name} is a secret, and no Secret of the cluster is named for it",
                hint=TO_A_SECRET.replace("HF_TOKEN", name),
            )
