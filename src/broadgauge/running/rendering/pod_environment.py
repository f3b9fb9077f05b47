"""Which variables do the ranks of a rendered job start with?

As on every platform (platforms/rank_environment.py): what the platform sets, then the case's own.
torchrun sets its contract itself, and NCCL's log stands in the pod's: `broadgauge doctor` reads it
there.
"""

from collections.abc import Iterable

from broadgauge.manifests.nothing_secret import TO_A_SECRET
from broadgauge.platforms.meant_transport import face_variables
from broadgauge.platforms.paths import NCCL_VARIABLES
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.kubernetes import Kubernetes
from broadgauge.specs.pod_networks import AttachedNetwork

LOOPBACK = "lo"
NCCL_LOG = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,NET,ENV,GRAPH"}


def pod_environment(case: Case, settings: Kubernetes) -> dict[str, str]:
    """Without secrets. Raises InputError for one that no Secret is named for."""
    _check_secrets(case, settings.secrets)
    own = {name: value for name, value in case.environment.items() if isinstance(value, str)}
    return {**_platform_variables(case, settings), **own}


def network_variables(face: AttachedNetwork) -> dict[str, str]:
    """What ranks of any backend are told of a pod's network. NCCL's log proves what it did."""
    return {
        "GLOO_SOCKET_IFNAME": face.interface,
        "NCCL_SOCKET_IFNAME": f"={face.interface}",
        **NCCL_LOG,
        **face_variables(face),
    }


def _platform_variables(case: Case, settings: Kubernetes) -> dict[str, str]:
    found = {}
    if settings.cpus is not None:
        found["OMP_NUM_THREADS"] = str(max(1, int(settings.cpus) // case.ranks_per_node))
    if case.link is None:
        network = {"GLOO_SOCKET_IFNAME": LOOPBACK, "NCCL_SOCKET_IFNAME": f"={LOOPBACK}", **NCCL_LOG}
    else:
        assert case.link.kubernetes is not None, "the plan leaves out networks without this face"
        network = network_variables(case.link.kubernetes)
    is_nccl = case.backend == "nccl"
    found |= {name: value for name, value in network.items() if name.startswith("NCCL_") == is_nccl}
    return found if case.path is None else {**found, **NCCL_VARIABLES[case.path.path]}


def _check_secrets(case: Case, known: Iterable[str]) -> None:
    """A variable that is a secret can't come from the environment of whoever renders."""
    for name, value in case.environment.items():
        if not isinstance(value, str) and name not in known:
            raise InputError(
                f"environment.{name} is a secret, and no Secret of the cluster is named for it",
                hint=TO_A_SECRET.replace("HF_TOKEN", name),
            )
