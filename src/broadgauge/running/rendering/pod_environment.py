"""Which variables do the ranks of a rendered job start with?

As on every platform (platforms/rank_environment.py): what the platform sets, then the case's own.
torchrun sets its contract itself, and NCCL's log stands in the pod's: `broadgauge doctor` reads it
there.
"""

from collections.abc import Iterable

from broadgauge.manifests.nothing_secret import TO_A_SECRET
from broadgauge.platforms.meant_transport import transport_variables
from broadgauge.platforms.paths import NCCL_VARIABLES
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.kubernetes import Kubernetes

LOOPBACK = "lo"


def pod_environment(case: Case, settings: Kubernetes) -> dict[str, str]:
    """Without secrets. Raises InputError for one that no Secret is named for."""
    _check_secrets(case, settings.secrets)
    own = {name: value for name, value in case.environment.items() if isinstance(value, str)}
    return {**_platform_variables(case, settings), **own}


def _platform_variables(case: Case, settings: Kubernetes) -> dict[str, str]:
    interface = _interface(case)
    found = {}
    if settings.cpus is not None:
        found["OMP_NUM_THREADS"] = str(max(1, int(settings.cpus) // case.ranks_per_node))
    if case.backend == "gloo":
        return found | {"GLOO_SOCKET_IFNAME": interface}
    found |= {
        "NCCL_SOCKET_IFNAME": f"={interface}",
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,NET,ENV,GRAPH",
        **transport_variables(case),
    }
    return found if case.path is None else {**found, **NCCL_VARIABLES[case.path.path]}


def _interface(case: Case) -> str:
    """Of the pod, by which ranks reach each other."""
    if case.link is None:
        return LOOPBACK
    assert case.link.kubernetes is not None, "the plan leaves out networks without this face"
    return case.link.kubernetes.interface


def _check_secrets(case: Case, known: Iterable[str]) -> None:
    """A variable that is a secret can't come from the environment of whoever renders."""
    for name, value in case.environment.items():
        if not isinstance(value, str) and name not in known:
            raise InputError(
                f"environment.{name} is a secret, and no Secret of the cluster is named for it",
                hint=TO_A_SECRET.replace("HF_TOKEN", name),
            )
