"""What runs in the pods of a run? An agent, which starts the ranks of one launch after another, and
in a container of its own the leader: ranks never write to its log, and what ends them does not end
it."""

from collections.abc import Mapping
from dataclasses import dataclass

from broadgauge.manifests import names, security
from broadgauge.manifests.attachments import TOPOLOGY_KEY
from broadgauge.manifests.expansion import not_expanded
from broadgauge.manifests.fabric_parts import rank_mounts
from broadgauge.manifests.job import JobPods
from broadgauge.manifests.pod_parts import OF_ANY_USER, plain_variables, secret_variables
from broadgauge.manifests.pod_template import SAYS_WHY, PodContents, container, rank_container
from broadgauge.manifests.volumes import (
    FILES,
    ORDERS,
    TOPOLOGY,
    mounted,
    mounted_for_leader,
    results_folder,
)
from broadgauge.manifests.waiting import prepared_variables
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.messages.pod_start import (
    NODE_NAME_VARIABLE,
    POD_IP_VARIABLE,
    POD_NAME_VARIABLE,
    TOKEN_VARIABLE,
)
from broadgauge.specs.kubernetes.pod_volumes import SCRATCH, WORK
from broadgauge.specs.kubernetes.settings import SecretRef

LEADER = "leader"
"""The name of its container."""
LEADER_PORT = 29_510
"""Where agents find it: ranks meet on ports that are free when they start."""
TOKEN_KEY = "broadgauge.token"
"""Of the Secret; no variable has a dot in its name, and those are the other keys."""
TOPOLOGY_VARIABLE = "NCCL_TOPO_FILE"
_FIELDS = {
    POD_NAME_VARIABLE: "metadata.name",
    NODE_NAME_VARIABLE: "spec.nodeName",
    POD_IP_VARIABLE: "status.podIP",
}
GRACE_S = 10
"""An agent ends its ranks in 4 s; a process that is told to end as it starts does not hear it."""
_LEADER_RESOURCES = {
    "requests": {"cpu": "100m", "memory": "256Mi"},
    "limits": {"memory": "1Gi"},
}
"""It passes on what is said between launches' timed parts; what it keeps is on its disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedPods(JobPods):
    """Pods with an agent each, and a leader in the first."""

    looked_up: tuple[str, ...]
    """Variables of the ranks whose values the tool puts into the job's own Secret."""
    keep_s: float
    """How long the leader stays with nothing to do, for a tool to collect what it has."""
    meet_s: float
    """How long pods may come one after another before those missing are named."""


def run_contents(pods: LedPods, first_pod: int) -> PodContents:
    """A template that has the first pod has the leader; in others of it the leader ends at once."""
    all_mounted = mounted(pods)
    mounts = [each.mount for each in all_mounted] + rank_mounts(pods.attachments.fabrics)
    agent = rank_container(pods, "pod-agent", _agent_words(pods), _agent_variables(pods), mounts)
    if first_pod > 0:
        own = tuple(each.volume for each in all_mounted)
        return PodContents(containers=(agent,), volumes=own, grace_s=GRACE_S)
    for_leader = mounted_for_leader(pods)
    volumes = [each.volume for each in (*all_mounted, *for_leader)]
    leader = container(pods, LEADER, "pod-leader") | {
        **SAYS_WHY,
        "args": [not_expanded(word) for word in _leader_words(pods)],
        "env": [*_own_variables(pods), *plain_variables(OF_ANY_USER)],
        "resources": _LEADER_RESOURCES,
        "securityContext": security.of_helper(pods.settings),
        "volumeMounts": [each.mount for each in for_leader],
    }
    return PodContents(containers=(agent, leader), volumes=tuple(volumes), grace_s=GRACE_S)


def _words(pods: LedPods) -> list[str]:
    """Of both programs."""
    return [
        *("--nodes", str(pods.num_pods)),
        *("--leader", names.leader_address(pods)),
        *("--port", str(LEADER_PORT)),
        *("--scratch", SCRATCH),
        *("--meet-s", f"{pods.meet_s:g}"),
    ]


def _leader_words(pods: LedPods) -> list[str]:
    folder = results_folder(pods)
    results = [] if folder is None else ["--results", folder]
    return [*_words(pods), "--orders", ORDERS, *results, "--keep-s", f"{pods.keep_s:g}"]


def _agent_words(pods: LedPods) -> list[str]:
    """A command's own `working_directory` is its launches', and starts at this folder."""
    working = pods.settings.working_folder
    words = [*_words(pods), "--folder", WORK if working is None else working]
    if pods.files:
        words += ["--files", FILES]
    return [not_expanded(word) for word in words]


def _agent_variables(pods: LedPods) -> list[Manifest]:
    """Variables of a launch are in its order; here is what is the pod's: secrets, and where things
    lie in it."""
    plain = OF_ANY_USER | prepared_variables(pods)
    if pods.topology is not None:
        plain[TOPOLOGY_VARIABLE] = f"{TOPOLOGY}/{TOPOLOGY_KEY}"
    refs = {**pods.secrets, **_of_own_secret(pods, {name: name for name in pods.looked_up})}
    return [
        *_own_variables(pods),
        *plain_variables(plain, but=refs),
        *secret_variables(refs),
    ]


def _own_variables(pods: LedPods) -> list[Manifest]:
    """By which a program knows its pod, and proves whose it is."""
    fields = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for name, path in _FIELDS.items()
    ]
    return fields + secret_variables(_of_own_secret(pods, {TOKEN_VARIABLE: TOKEN_KEY}))


def _of_own_secret(pods: LedPods, keys: Mapping[str, str]) -> dict[str, SecretRef]:
    secret = names.secrets_name(pods)
    return {name: SecretRef(secret=secret, key=key) for name, key in keys.items()}
