"""Which kinds of objects does Broadgauge make or read in a cluster, and under which paths?"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A kind of object, as the API server serves it."""

    group: str
    """Empty: the core group."""
    version: str
    kind: str
    plural: str

    @property
    def api_version(self) -> str:
        """As in a manifest."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None) -> str:
        """Of all of them; None: of the whole cluster."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        where = "" if namespace is None else f"/namespaces/{namespace}"
        return f"{root}{where}/{self.plural}"

    def words(self, namespace: str | None) -> str:
        """For messages: `pytorchjobs.kubeflow.org in namespace training`."""
        name = f"{self.plural}.{self.group}" if self.group else self.plural
        return name if namespace is None else f"{name} in namespace {namespace}"


def _core(kind: str, plural: str) -> Resource:
    return Resource(group="", version="v1", kind=kind, plural=plural)


NODES = _core("Node", "nodes")
NAMESPACES = _core("Namespace", "namespaces")
PODS = _core("Pod", "pods")
EVENTS = _core("Event", "events")
CONFIG_MAPS = _core("ConfigMap", "configmaps")
SECRETS = _core("Secret", "secrets")
SERVICES = _core("Service", "services")
CLAIMS = _core("PersistentVolumeClaim", "persistentvolumeclaims")
JOBS = Resource(group="batch", version="v1", kind="Job", plural="jobs")
PYTORCH_JOBS = Resource(group="kubeflow.org", version="v1", kind="PyTorchJob", plural="pytorchjobs")
TRAIN_JOBS = Resource(
    group="trainer.kubeflow.org", version="v1alpha1", kind="TrainJob", plural="trainjobs"
)
TRAINING_RUNTIMES = Resource(
    group="trainer.kubeflow.org",
    version="v1alpha1",
    kind="TrainingRuntime",
    plural="trainingruntimes",
)
ATTACHMENTS = Resource(
    group="k8s.cni.cncf.io",
    version="v1",
    kind="NetworkAttachmentDefinition",
    plural="network-attachment-definitions",
)
SERVICE_ACCOUNTS = _core("ServiceAccount", "serviceaccounts")
PRIORITY_CLASSES = Resource(
    group="scheduling.k8s.io", version="v1", kind="PriorityClass", plural="priorityclasses"
)
RUNTIME_CLASSES = Resource(
    group="node.k8s.io", version="v1", kind="RuntimeClass", plural="runtimeclasses"
)
STORAGE_CLASSES = Resource(
    group="storage.k8s.io", version="v1", kind="StorageClass", plural="storageclasses"
)
KUEUE_QUEUES = Resource(
    group="kueue.x-k8s.io", version="v1beta1", kind="LocalQueue", plural="localqueues"
)
WORKLOADS = Resource(group="kueue.x-k8s.io", version="v1beta1", kind="Workload", plural="workloads")
REVIEWS = Resource(
    group="authorization.k8s.io",
    version="v1",
    kind="SelfSubjectAccessReview",
    plural="selfsubjectaccessreviews",
)
"""May whoever asks do this? Everybody may ask."""

JOB_KINDS = (PYTORCH_JOBS, TRAIN_JOBS, JOBS)
LISTED = (
    *JOB_KINDS,
    *(PODS, TRAINING_RUNTIMES, SERVICES, CONFIG_MAPS, ATTACHMENTS),
)
"""What a run makes and deletes, those that own others first. Claims stay: they hold data. Secrets
are asked for by name: a list would show all of the namespace."""
MADE = (*LISTED, SECRETS, CLAIMS)


def resource_of(body: dict[str, Any]) -> Resource:
    """Of a manifest of ours."""
    for resource in MADE:
        if (resource.api_version, resource.kind) == (body["apiVersion"], body["kind"]):
            return resource
    raise AssertionError(f"no kind of ours: {body['apiVersion']} {body['kind']}")
