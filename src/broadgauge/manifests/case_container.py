"""What runs in a pod of one case? Our entrypoint, which starts torchrun."""

from broadgauge.manifests import names
from broadgauge.manifests.asked_network import asked_network
from broadgauge.manifests.config_maps import CASE_KEY, PROGRAM_KEY
from broadgauge.manifests.expansion import not_expanded
from broadgauge.manifests.fabric_parts import rank_mounts
from broadgauge.manifests.job import PodJob
from broadgauge.manifests.pod_parts import OF_ANY_USER, plain_variables, secret_variables
from broadgauge.manifests.pod_template import PodContents, rank_container
from broadgauge.manifests.volumes import CASE, FILES, PROGRAM, mounted, mounted_case
from broadgauge.manifests.waiting import prepared_variables
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.messages.asked_network import network_word
from broadgauge.specs.kubernetes.pod_volumes import WORK

FIRST_PORT = 29_500
"""Of the ranks' rendezvous: torchrun's default."""
OWN_WORKLOAD = (f"{PROGRAM}/{PROGRAM_KEY}", "measure", f"{CASE}/{CASE_KEY}")
"""What torchrun is given where the ranks are ours (probes/without_agent.py)."""


def case_contents(job: PodJob) -> PodContents:
    """Of each of its pods."""
    all_mounted = mounted(job, mounted_case(job))
    mounts = [each.mount for each in all_mounted] + rank_mounts(job.attachments.fabrics)
    container = rank_container(job, "pod", entrypoint_arguments(job), _variables(job), mounts)
    return PodContents(containers=(container,), volumes=tuple(each.volume for each in all_mounted))


def entrypoint_arguments(job: PodJob) -> list[str]:
    """Of `broadgauge.zip pod` (agent/pod/main.py)."""
    working = job.settings.working_folder
    words = [
        *("--nodes", str(job.num_pods)),
        *("--ranks-per-node", str(job.ranks_per_pod)),
        *("--leader", names.leader_address(job)),
        *("--port", str(FIRST_PORT)),
        *("--launches", str(job.launches)),
        *("--folder", WORK if working is None else working),
    ]
    if job.files:
        words += ["--files", FILES]
    if job.subfolder:
        words += ["--subfolder", job.subfolder]
    network = asked_network(job, job.case)
    if network is not None:
        words += ["--network", network_word(network)]
    return [not_expanded(word) for word in (*words, "--", *job.arguments)]


def _variables(job: PodJob) -> list[Manifest]:
    plain = OF_ANY_USER | prepared_variables(job) | dict(job.environment)
    return plain_variables(plain, but=job.secrets) + secret_variables(job.secrets)
