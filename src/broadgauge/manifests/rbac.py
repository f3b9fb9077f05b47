"""Which rights does running an experiment need, and no more?

In the namespace a Role: what is made, watched and deleted there. Cluster-wide facts (nodes,
versions) are read by a ClusterRole that stands apart and is optional: without it they are unknown.
Source: Kubernetes, "Using RBAC Authorization".
"""

from broadgauge.manifests.claims import claims_file
from broadgauge.manifests.files import ManifestFile
from broadgauge.manifests.labels import JobKind, lasting_labels
from broadgauge.manifests.queues import is_suspended
from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.errors import InputError

_GROUP = "rbac.authorization.k8s.io"
_MAKE = ("create", "get", "list", "delete")
_OF_JOBS: dict[JobKind, tuple[tuple[str, str], ...]] = {
    "pytorchjob": (("kubeflow.org", "pytorchjobs"),),
    "trainjob": (
        ("trainer.kubeflow.org", "trainjobs"),
        ("trainer.kubeflow.org", "trainingruntimes"),
    ),
    "jobset": (("jobset.x-k8s.io", "jobsets"),),
    "job": (("batch", "jobs"), ("", "services")),
}
_FACTS = (
    ("", ("nodes", "namespaces")),
    ("apps", ("deployments",)),
    ("apiextensions.k8s.io", ("customresourcedefinitions",)),
    ("config.openshift.io", ("clusterversions",)),
    ("storage.k8s.io", ("storageclasses",)),
    ("scheduling.k8s.io", ("priorityclasses",)),
    ("node.k8s.io", ("runtimeclasses",)),
    ("k8s.cni.cncf.io", ("network-attachment-definitions",)),
    ("sriovnetwork.openshift.io", ("sriovnetworknodepolicies", "sriovnetworknodestates")),
    ("mellanox.com", ("nicclusterpolicies",)),
    ("nvidia.com", ("clusterpolicies",)),
)
"""What tells a cluster's hardware, versions and networks, and what a run names; read only."""


def rights_file(request: JobRequest) -> ManifestFile:
    """ServiceAccount, Role and RoleBinding. Raises InputError where no namespace is named."""
    name, space = f"{request.name}-runner", _namespace(request)
    about = {"name": name, "namespace": space, "labels": _labels(request)}
    role = {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "Role",
        "metadata": about,
        "rules": rules(request),
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about}
    binding = _binding("RoleBinding", "Role", name, space, about)
    return ManifestFile(
        path="10-rights.yaml",
        comment="What whoever runs the experiment may do, in its namespace alone.\n"
        "From the kinds of objects that the experiment makes. The pods' own account has no token.\n"
        "Bound to the ServiceAccount: to act as it, `kubectl create token` and a context with it;\n"
        "or name yourself in `subjects`: {kind: User, name: …, apiGroup: "
        f"{_GROUP}}}.",
        objects=(account, role, binding),
    )


def facts_file(request: JobRequest) -> ManifestFile:
    """A ClusterRole to read, and its binding. Raises InputError where no namespace is named."""
    name, space = f"{request.name}-facts", _namespace(request)
    about = {"name": name, "labels": _labels(request)}
    read = [
        {"apiGroups": [group], "resources": list(kinds), "verbs": ["get", "list"]}
        for group, kinds in _FACTS
    ]
    role = {"apiVersion": f"{_GROUP}/v1", "kind": "ClusterRole", "metadata": about, "rules": read}
    binding = _binding("ClusterRoleBinding", "ClusterRole", f"{request.name}-runner", space, about)
    return ManifestFile(
        path="20-facts.yaml",
        comment="Optional: what the cluster is, read and never changed (nodes, versions, "
        "networks).\nWithout it these facts are stored as unknown.",
        objects=(role, binding),
    )


def rules(request: JobRequest) -> list[Manifest]:
    """The least that a run needs, by the kinds of objects that it has."""
    settings = request.settings
    found = [_rule(group, kind, _MAKE) for group, kind in _OF_JOBS[request.kind]]
    found += [
        _rule("", "pods", ("get", "list", "watch", "patch", "delete")),
        _rule("", "pods/log", ("get",)),
        _rule("", "events", ("list",)),
        _rule("", "configmaps", (*_MAKE, "patch")),
        # No list, which would show them all. Who knows a name reads it as well by a job that mounts
        # it. `deletecollection` is no smaller right: it gives back what it deletes, in a dry run.
        _rule("", "secrets", ("create", "get", "delete")),
    ]
    interfaces = request.interfaces.found
    if interfaces:
        verbs = _MAKE if any(each.config is not None for each in interfaces) else ("get", "list")
        found.append(_rule("k8s.cni.cncf.io", "network-attachment-definitions", verbs))
    if settings.volumes:
        of_claims = ("get",) if claims_file(request) is None else ("create", "get")
        found.append(_rule("", "persistentvolumeclaims", of_claims))
    has_plain_jobs = settings.prepare is not None or settings.results is not None
    if has_plain_jobs and request.kind != "job":
        found.append(_rule("batch", "jobs", _MAKE))
    if settings.queue is not None and settings.queue.volcano is not None:
        found.append(_rule("scheduling.volcano.sh", "podgroups", _MAKE))
    if is_suspended(request):
        found.append(_rule("kueue.x-k8s.io", "workloads", ("list",)))
    return found


def _rule(group: str, kind: str, verbs: tuple[str, ...]) -> Manifest:
    return {"apiGroups": [group], "resources": [kind], "verbs": list(verbs)}


def _binding(kind: str, role: str, account: str, space: str, about: Manifest) -> Manifest:
    subject = {"kind": "ServiceAccount", "name": account, "namespace": space}
    reference = {"apiGroup": _GROUP, "kind": role, "name": about["name"]}
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": kind,
        "metadata": about,
        "roleRef": reference,
        "subjects": [subject],
    }


def _labels(request: JobRequest) -> dict[str, str]:
    return lasting_labels(request.experiment.name, request.settings.labels)


def _namespace(request: JobRequest) -> str:
    if request.settings.namespace is None:
        raise InputError(
            "--rbac: the rights are of a namespace, and the experiment names none",
            hint="--set kubernetes.namespace=training",
        )
    return request.settings.namespace
