"""Which objects must be there before a run, because its experiment names them?"""

from collections.abc import Iterator
from dataclasses import dataclass

from broadgauge.manifests.request import JobRequest
from broadgauge.platforms.kubernetes.resources import (
    ATTACHMENTS,
    CLAIMS,
    CLUSTER_RUNTIMES,
    KUEUE_QUEUES,
    PRIORITY_CLASSES,
    RUNTIME_CLASSES,
    SECRETS,
    SERVICE_ACCOUNTS,
    STORAGE_CLASSES,
    VOLCANO_QUEUES,
    Resource,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedObject:
    """An object that is somebody else's, and where the experiment names it."""

    place: str
    resource: Resource
    namespace: str | None
    """None: it is the whole cluster's."""
    name: str
    hint: str | None = None

    @property
    def words(self) -> str:
        """`PersistentVolumeClaim data in namespace training`."""
        where = "" if self.namespace is None else f" in namespace {self.namespace}"
        return f"{self.resource.kind} {self.name}{where}"


def named_objects(request: JobRequest, namespace: str) -> tuple[NamedObject, ...]:
    """Each once, in the order of the file's keys. Raises InputError, as planning interfaces does.

    Image, files and what a volume holds are seen in the pods only.
    """
    found = (*_of_pods(request, namespace), *_of_networks(request, namespace))
    return tuple({(each.resource, each.namespace, each.name): each for each in found}.values())


def _of_pods(request: JobRequest, namespace: str) -> Iterator[NamedObject]:
    settings = request.settings
    in_namespace = [
        *(
            ("image_pull_secrets", SECRETS, name, "`kubectl create secret docker-registry …`")
            for name in settings.image_pull_secrets
        ),
        ("service_account", SERVICE_ACCOUNTS, settings.service_account, None),
        *(
            (f"secrets.{variable}", SECRETS, each.secret, "`kubectl create secret generic …`")
            for variable, each in settings.secrets.items()
        ),
        *(
            (
                f"volumes.{each.name}",
                CLAIMS,
                each.claim_name,
                "name a claim that is there, or make one: `size_bytes: …`",
            )
            for each in settings.volumes
            if each.size_bytes is None
        ),
    ]
    of_cluster = [
        ("priority_class", PRIORITY_CLASSES, settings.priority_class),
        ("runtime_class", RUNTIME_CLASSES, settings.runtime_class),
        *(
            (f"volumes.{each.name}", STORAGE_CLASSES, each.storage_class)
            for each in settings.volumes
        ),
    ]
    queue = settings.queue
    if queue is not None:
        in_namespace.append(("queue.kueue", KUEUE_QUEUES, queue.kueue, "`kubectl get localqueues`"))
        of_cluster.append(("queue.volcano", VOLCANO_QUEUES, queue.volcano))
    if request.kind == "trainjob":
        of_cluster.append(("runtime", CLUSTER_RUNTIMES, settings.runtime))
    for key, resource, name, hint in in_namespace:
        if name is not None:
            yield NamedObject(
                place=f"kubernetes.{key}",
                resource=resource,
                namespace=namespace,
                name=name,
                hint=hint,
            )
    for key, resource, name in of_cluster:
        if name is not None:
            yield NamedObject(
                place=f"kubernetes.{key}", resource=resource, namespace=None, name=name
            )


def _of_networks(request: JobRequest, namespace: str) -> Iterator[NamedObject]:
    for interface in request.interfaces.found:
        if interface.config is not None:
            continue  # it is written by us
        space, _, name = interface.definition.rpartition("/")
        yield NamedObject(
            place=f"networks.{interface.networks[0]}.kubernetes.definitions",
            resource=ATTACHMENTS,
            namespace=space or namespace,
            name=name,
            hint="`kubectl get network-attachment-definitions -A` lists what is there",
        )
