"""Which rights does it take to apply, follow and remove these jobs, or to `run` them, and no more?

A Role of the namespace: no right in the cluster is needed. Source: Kubernetes, "Using RBAC
Authorization"; `kubectl apply` reads an object, then creates or patches it.
"""

from collections.abc import Sequence

from broadgauge.manifests import names
from broadgauge.manifests.files import ManifestFile
from broadgauge.manifests.job import JobPods, PodJob
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.errors import InputError

Right = tuple[str, str, str]
"""Verb, API group, and resource: `pods/log`."""
GROUP = "rbac.authorization.k8s.io"
_OURS = ("get", "list", "watch", "create", "patch", "delete")
_MADE = ("create", "list", "delete")
"""Without which nothing is made, found again, or removed."""
_CLAIMS = ("get", "list", "watch", "create", "patch")
"""They hold data: who runs jobs need not be able to delete it."""
_SECRETS = ("get", "create", "delete")
"""Of a run's token and variables, each by its name: to list them would be to read all others."""
_TO_READ: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("pods", ("get", "list", "watch")),
    ("pods/log", ("get",)),
    ("events", ("get", "list", "watch")),
)
"""Where pods are and why they wait; what a run's leader tells, which is a container's log."""
_KUEUE = "kueue.x-k8s.io"
_PLURALS = {"NetworkAttachmentDefinition": "network-attachment-definitions"}
"""Where it is no `s` behind the kind."""


def rights_file(jobs: Sequence[PodJob], objects: Sequence[Manifest]) -> ManifestFile:
    """ServiceAccount, Role and RoleBinding, of the kinds among these objects. Raises InputError
    where no namespace is named."""
    job = jobs[0]
    space = job.settings.namespace
    if space is None:
        raise InputError(
            "--rbac: rights are of a namespace, and the experiment names none",
            hint="--set kubernetes.namespace=training",
        )
    name = f"{job.prefix}-runner"
    about = names.metadata(job, name, names.experiment_labels(job))
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about}
    role = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Role",
        "metadata": about,
        "rules": rights_to_run(job, objects),
    }
    binding = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": about,
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": space}],
    }
    return ManifestFile(
        path="rights.yaml",
        comment="What whoever applies, follows and removes the jobs may do, in this namespace "
        "alone; the pods' own account has no token.\n"
        "From the kinds of objects that are rendered. Bound to a ServiceAccount: `kubectl create "
        f"token {name}` acts as it; or name yourself in `subjects`: {{kind: User, name: …, "
        f"apiGroup: {GROUP}}}.",
        objects=(account, role, binding),
    )


def rights_to_run(job: JobPods, objects: Sequence[Manifest]) -> list[Manifest]:
    """Rules of a Role, for these objects of a job."""
    return [*rules(objects), *_reader_rules(job), *_queue_rules(job)]


def needed_rights(own: Sequence[Manifest], lasting: Sequence[Manifest]) -> frozenset[Right]:
    """Those without which a run can't be made, followed or removed; without the others it may know
    less. `own`: what is deleted with it, the job the last. `lasting`: what it makes and leaves."""
    job = own[-1]
    return frozenset(
        (
            *(("create", _group(each), plural(each["kind"])) for each in lasting),
            *((verb, _group(each), plural(each["kind"])) for each in own for verb in _MADE),
            ("get", _group(job), plural(job["kind"])),
            ("patch", "", "configmaps"),
            *(("create", "", "secrets"), ("delete", "", "secrets")),
            *(("list", "", "pods"), ("watch", "", "pods"), ("get", "", "pods/log")),
        )
    )


def rules(objects: Sequence[Manifest]) -> list[Manifest]:
    """By API group and kind, in the order of the objects; then pods and their logs, to read, and
    what `run` needs beside: a Secret of its own, whose values are in no file."""
    kinds = dict.fromkeys((_group(each), plural(each["kind"])) for each in objects)
    made = [
        _rule(group, kind, _CLAIMS if kind == "persistentvolumeclaims" else _OURS)
        for group, kind in kinds
    ]
    read = [_rule("", kind, verbs) for kind, verbs in _TO_READ]
    return [*made, *read, _rule("", "secrets", _SECRETS)]


def _reader_rules(job: JobPods) -> list[Manifest]:
    """A Job reads what a run of another kind kept on a volume."""
    is_needed = job.settings.results is not None and job.kind != "job"
    return [_rule("batch", "jobs", _OURS)] if is_needed else []


def _queue_rules(job: JobPods) -> list[Manifest]:
    """Kueue says in its Workload why a job is not admitted."""
    if job.settings.queue is None:
        return []
    return [_rule(_KUEUE, "workloads", ("get", "list", "watch"))]


def plural(kind: str) -> str:
    """Of a kind, as its CRD names it."""
    return _PLURALS.get(kind, f"{kind.lower()}s")


def _group(manifest: Manifest) -> str:
    group, slash, _ = manifest["apiVersion"].partition("/")
    return group if slash else ""


def _rule(group: str, kind: str, verbs: Sequence[str]) -> Manifest:
    return {"apiGroups": [group], "resources": [kind], "verbs": list(verbs)}
