"""Which Job reads what a run's leader kept on a volume, when its pods are gone?"""

import secrets
from dataclasses import replace

from broadgauge.manifests import names, security
from broadgauge.manifests.config_maps import program_map
from broadgauge.manifests.expansion import not_expanded
from broadgauge.manifests.names import JOB, RUN
from broadgauge.manifests.pod_parts import OF_ANY_USER, plain_variables, pod_frame
from broadgauge.manifests.pod_template import SAYS_WHY, container
from broadgauge.manifests.run_job import RunJob
from broadgauge.manifests.volumes import mounted_claim, mounted_program, results_folder
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.kubernetes.settings import NO_SIDECAR

READER = "results"
"""The name of its container, whose log is heard as a leader's."""
_LITTLE = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}}


def reader_name(run: RunJob) -> str:
    """Another each time: a reader may fail, and the next one not."""
    return f"{run.name}-results-{secrets.token_hex(3)}"


def reader_objects(run: RunJob, name: str, after: int) -> tuple[Manifest, ...]:
    """The program that it runs, and the Job, which tells the events after this one in its log.

    The program is its own: the run's goes when its job does, perhaps just now.
    """
    own = replace(run, name=name, marks={RUN: run.run, JOB: name})
    return program_map(own), _job(own, after, results_folder(run))


def _job(own: RunJob, after: int, folder: str | None) -> Manifest:
    """Of one pod, which is numbered as all pods of a run are."""
    assert folder is not None, "asked of runs that keep their results"
    labels = names.job_labels(own)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": names.metadata(own, own.name, labels),
        "spec": {
            "completionMode": "Indexed",
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": 0,
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": {**own.settings.annotations, NO_SIDECAR: "false"},
                },
                "spec": _pod(own, folder, after),
            },
        },
    }


def _pod(own: RunJob, folder: str, after: int) -> Manifest:
    """It needs no GPU and no network but the pods'."""
    volume = own.settings.results_volume
    assert volume is not None
    program, claim = mounted_program(own), mounted_claim(own.settings, volume)
    reader = container(own, READER, "kept-events") | {
        **SAYS_WHY,
        "args": [not_expanded(folder), str(after)],
        "env": plain_variables(OF_ANY_USER),
        "resources": _LITTLE,
        "securityContext": security.of_helper(own.settings),
        "volumeMounts": [program.mount, claim.mount],
    }
    return pod_frame(own) | {"containers": [reader], "volumes": [program.volume, claim.volume]}
