"""How are the files of a rendered experiment applied, by hand and with nothing of ours?"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from broadgauge.manifests.claims import claims_file
from broadgauge.manifests.files import ManifestFile
from broadgauge.manifests.labels import MANAGED_BY, MANAGER, RUN, TOKEN_VARIABLE, secrets_name
from broadgauge.manifests.prepare import prepare_name
from broadgauge.manifests.prepared import prepared_paths
from broadgauge.manifests.request import JobRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFolder:
    """A job, and the folder of its files."""

    path: str
    request: JobRequest


def readme_file(jobs: Sequence[JobFolder], notes: Sequence[str]) -> ManifestFile:
    """For people; kubectl leaves it out."""
    lines = "\n".join(_lines(jobs, notes))
    return ManifestFile(path="README.md", comment="", text=f"{lines}\n")


def _lines(jobs: Sequence[JobFolder], notes: Sequence[str]) -> Iterator[str]:
    first = jobs[0].request
    space = first.settings.namespace
    kubectl = "kubectl" if space is None else f"kubectl --namespace {space}"
    yield f"# {first.experiment.name} on Kubernetes"
    yield ""
    yield "Rendered by Broadgauge from the experiment; render it again after changing that."
    if space is None:
        yield "No namespace is named in it: all goes where your kubeconfig's context points."
    yield ""
    yield "## To apply"
    yield ""
    yield "1. The Secret of each job, which no file may hold: a random token for its pods, and"
    yield "   the variables that the experiment declares as secrets, from your environment."
    yield ""
    for job in jobs:
        yield from (f"       {line}" for line in secret_lines(job.request, kubectl))
    yield ""
    yield from _steps(jobs, kubectl)
    if notes:
        yield ""
        yield "## To know"
        yield ""
        yield from (f"- {note}." for note in notes)


def _steps(jobs: Sequence[JobFolder], kubectl: str) -> Iterator[str]:
    first = jobs[0].request
    yield "2. Everything else, in the order of the folders' names. `--server-side`, since the"
    yield "   program is larger than the annotation that `kubectl apply` keeps otherwise."
    yield ""
    yield from (f"       {kubectl} {line}" for line in _apply_lines(jobs))
    yield ""
    for variable, path in prepared_paths(first).items():
        yield f"   Ranks find {path} as {variable}."
        yield ""
    yield "3. Look at it, keep what it says, and remove it. Claims stay: they hold your data."
    yield "   What it measures stands in the first pod's log (kubectl logs); a table and a report"
    yield "   are made by `broadgauge run`, which collects it. Kubernetes deletes finished jobs and"
    yield "   their logs in time (`kubernetes.ttl_s`)."
    yield ""
    yield f"       {kubectl} get pods --selector {RUN}={first.run}"
    helpers = ("jobs.batch",) if first.settings.prepare is not None else ()
    kinds = ",".join(dict.fromkeys((*_KINDS[first.kind], *helpers)))
    yield f"       {kubectl} delete {kinds} --selector {RUN}={first.run}"
    if any(_has_networks(job.request) for job in jobs):
        yield f"       {kubectl} delete --recursive --filename 20-networks"


def _apply_lines(jobs: Sequence[JobFolder]) -> Iterator[str]:
    """What has to end before the next begins is waited for."""
    first, apply = jobs[0].request, "apply --server-side --recursive --filename"
    prepares = first.settings.prepare is not None
    if len(jobs) == 1 and not prepares:
        yield f"{apply} ."
        return
    if any(_has_networks(job.request) for job in jobs):
        yield f"{apply} 20-networks"
    if claims_file(first) is not None:
        yield f"{apply} 30-storage"
    if prepares:
        yield f"{apply} 35-prepare"
        yield f"wait --for=condition=complete --timeout=24h job/{prepare_name(first)}"
    for job in jobs:
        yield f"{apply} {job.path}"
        if len(jobs) > 1:
            kind, condition = _KINDS[first.kind][0], _CONDITIONS[first.kind]
            what = f"{kind}/{job.request.name}"
            yield f"wait --for=condition={condition} --timeout=24h {what}"


def _has_networks(request: JobRequest) -> bool:
    return any(each.config is not None for each in request.interfaces.found)


_CONDITIONS = {
    "pytorchjob": "Succeeded",
    "trainjob": "Complete",
    "jobset": "Completed",
    "job": "Complete",
}
"""Of a job whose pods have all succeeded."""
_KINDS = {
    "pytorchjob": ("pytorchjobs.kubeflow.org", "configmaps", "secrets"),
    "trainjob": (
        "trainjobs.trainer.kubeflow.org",
        "trainingruntimes.trainer.kubeflow.org",
        "configmaps",
        "secrets",
    ),
    "jobset": ("jobsets.jobset.x-k8s.io", "configmaps", "secrets"),
    "job": ("jobs.batch", "services", "configmaps", "secrets"),
}
"""What is deleted by label; networks that nothing uses any more with their own folder."""


def secret_lines(request: JobRequest, kubectl: str) -> Iterator[str]:
    """One command. Values come by a pipe: they are in no argument, which others could list.

    In base64, since a value may have many lines; `tr`, since not every base64 leaves out its own.
    """
    labels = {MANAGED_BY: MANAGER, RUN: request.run}
    about = json.dumps({"name": secrets_name(request.name), "labels": labels})
    in_base64 = "base64 | tr -d '\\n'"
    random = "head -c 32 /dev/urandom | sha256sum | head -c 64"
    values = {TOKEN_VARIABLE: random}
    values |= {name: f'printf %s "${name}"' for name in request.secret_names}
    yield f"{{ printf '%s\\n' 'apiVersion: v1' 'kind: Secret' 'metadata: {about}' 'data:'"
    for name, value in values.items():
        yield f'  printf \'  %s: "%s"\\n\' {name} "$({value} | {in_base64})"'
    yield f"}} | {kubectl} create --filename -"
