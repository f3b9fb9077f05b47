"""What is each of the operators called in a cluster, and what has to be there before it starts?"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.kubernetes.cluster.objects import Manifest

ADMISSION = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Of 127.0.0.1, of one operator."""

    webhook: int
    health: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """What one of them is called in a cluster."""

    name: str
    """Of its files, and of its process."""
    namespace: str
    service: str
    secret: str
    webhooks: str
    """Path of their configurations in the release."""
    roles: str
    """Path of its ClusterRole in the release."""
    configuration_names: Mapping[str, str]
    """Of the webhooks', by kind, as the release's kustomization names them."""
    runtimes: tuple[str, ...] = ()
    """Paths of manifests that come with it."""
    only_labelled: Mapping[str, str] = field(default_factory=dict)
    """Label that a webhook's objects must have, by the webhook's name."""

    @property
    def user(self) -> str:
        """As whom it speaks to the API server."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"


TRAINING_OPERATOR = Operator(
    name="training-operator",
    namespace="kubeflow",
    service="training-operator",
    secret="training-operator-webhook-cert",
    webhooks="manifests/base/webhook/manifests.yaml",
    roles="manifests/base/rbac/role.yaml",
    configuration_names={
        "ValidatingWebhookConfiguration": "validator.training-operator.kubeflow.org"
    },
)
_JOBSET_POD = "jobset.sigs.k8s.io/jobset-name"
JOBSET = Operator(
    name="jobset",
    namespace="jobset-system",
    service="jobset-webhook-service",
    secret="jobset-webhook-server-cert",
    webhooks="config/components/webhook/manifests.yaml",
    roles="config/components/rbac/role.yaml",
    configuration_names={
        "MutatingWebhookConfiguration": "jobset-mutating-webhook-configuration",
        "ValidatingWebhookConfiguration": "jobset-validating-webhook-configuration",
    },
    only_labelled={"mpod.kb.io": _JOBSET_POD, "vpod.kb.io": _JOBSET_POD},
)
TRAINER = Operator(
    name="trainer",
    namespace="kubeflow-system",
    service="kubeflow-trainer-controller-manager",
    secret="kubeflow-trainer-webhook-cert",
    webhooks="manifests/base/webhook/manifests.yaml",
    roles="manifests/base/rbac/role.yaml",
    configuration_names={"ValidatingWebhookConfiguration": "validator.trainer.kubeflow.org"},
    runtimes=("manifests/base/runtimes/torch_distributed.yaml",),
)
OPERATORS = {each.name: each for each in (TRAINING_OPERATOR, JOBSET, TRAINER)}


def secret_manifest(operator: Operator) -> Manifest:
    """Empty: the operator fills it."""
    metadata = {"name": operator.secret, "namespace": operator.namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


def role_manifests(operator: Operator, released: Iterable[Manifest]) -> Iterator[Manifest]:
    """The release's ClusterRole, bound to the operator's user."""
    for role in released:
        if role["kind"] != "ClusterRole":
            continue
        name = f"{operator.name}-{role['metadata']['name']}"
        yield role | {"metadata": {"name": name}}
        group = "rbac.authorization.k8s.io"
        yield {
            "apiVersion": role["apiVersion"],
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": group, "kind": "User", "name": operator.user}],
        }


def webhook_manifest(operator: Operator, released: Manifest, ports: Ports) -> Manifest:
    """The release's configuration, as its kustomization would change it."""
    service = {"namespace": operator.namespace, "name": operator.service, "port": ports.webhook}
    webhooks = []
    for each in released["webhooks"]:
        path = {"path": each["clientConfig"]["service"]["path"]}
        webhook = each | {"clientConfig": {"service": service | path}}
        if label := operator.only_labelled.get(each["name"]):
            exists = {"key": label, "operator": "Exists"}
            webhook |= {"objectSelector": {"matchExpressions": [exists]}}
        webhooks.append(webhook)
    name = operator.configuration_names[released["kind"]]
    return released | {"metadata": {"name": name}, "webhooks": webhooks}


def configuration(operator: Operator, ports: Ports) -> dict[str, Any]:
    """The file that jobset and trainer read; `{}` for one that has options instead."""
    common: dict[str, dict[str, Any]] = {
        "webhook": {"port": ports.webhook, "host": "127.0.0.1"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{ports.health}"},
        "metrics": {"bindAddress": "0"},
        "leaderElection": {"leaderElect": False},
    }
    certificate = {
        "enable": True,
        "webhookServiceName": operator.service,
        "webhookSecretName": operator.secret,
    }
    head = {"kind": "Configuration"}
    if operator is JOBSET:
        head["apiVersion"] = "config.jobset.x-k8s.io/v1alpha1"
        return head | common | {"internalCertManagement": certificate}
    if operator is TRAINER:
        head["apiVersion"] = "config.trainer.kubeflow.org/v1alpha1"
        common["metrics"]["secureServing"] = False
        return head | common | {"certManagement": certificate}
    return {}


def arguments(operator: Operator, ports: Ports) -> list[str]:
    if operator is TRAINING_OPERATOR:
        return [
            f"--webhook-server-port={ports.webhook}",
            f"--health-probe-bind-address=127.0.0.1:{ports.health}",
            "--metrics-bind-address=0",
        ]
    return ["--config=/tmp/config.yaml"]
