"""Which objects must be there before a run, because its experiment names them?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from broadgauge.manifests.definitions import Interface
from broadgauge.platforms.kubernetes.resources import (
    ATTACHMENTS,
    CLAIMS,
    CONFIG_MAPS,
    KUEUE_QUEUES,
    PRIORITY_CLASSES,
    RUNTIME_CLASSES,
    SECRETS,
    SERVICE_ACCOUNTS,
    STORAGE_CLASSES,
    Resource,
)
from broadgauge.specs.kubernetes.pod_volumes import Volume
from broadgauge.specs.kubernetes.settings import Kubernetes

REFERRED = (SECRETS, CONFIG_MAPS, CLAIMS)
"""Kinds that pods name."""
_REFERENCES: dict[str, tuple[Resource, str]] = {
    "secretKeyRef": (SECRETS, "name"),
    "secretRef": (SECRETS, "name"),
    "secret": (SECRETS, "secretName"),
    "imagePullSecrets": (SECRETS, "name"),
    "configMapKeyRef": (CONFIG_MAPS, "name"),
    "configMapRef": (CONFIG_MAPS, "name"),
    "configMap": (CONFIG_MAPS, "name"),
    "persistentVolumeClaim": (CLAIMS, "claimName"),
}
"""By the key of a pod's specification. Source: Kubernetes API reference, PodSpec, Volume."""


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


def named_objects(
    settings: Kubernetes, interfaces: Sequence[Interface], namespace: str
) -> tuple[NamedObject, ...]:
    """Each once, in the order of the file's keys. `interfaces`: of the run's pods.

    Image, files and what a volume holds are seen in the pods only.
    """
    found = (
        *_in_namespace(settings, namespace),
        *_of_cluster(settings),
        *_of_networks(interfaces, namespace),
    )
    once: dict[tuple[Resource, str | None, str], NamedObject] = {}
    for each in found:
        once.setdefault((each.resource, each.namespace, each.name), each)
    return tuple(once.values())


def references_in(value: Any) -> Iterator[tuple[Resource, str]]:
    """Secrets, ConfigMaps and claims that the pods of these manifests ask for."""
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from references_in(each)
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        resource, name_key = _REFERENCES.get(key, (None, ""))
        for each in inner if isinstance(inner, list) else [inner]:
            if resource is not None and isinstance(each, dict) and name_key in each:
                yield resource, str(each[name_key])
        yield from references_in(inner)


def _in_namespace(settings: Kubernetes, namespace: str) -> Iterator[NamedObject]:
    named: list[tuple[str, Resource, str | None, str | None]] = [
        *(
            ("image_pull_secrets", SECRETS, name, "`kubectl create secret docker-registry …`")
            for name in settings.image_pull_secrets
        ),
        ("service_account", SERVICE_ACCOUNTS, settings.service_account, None),
        *(
            (f"secrets.{variable}", SECRETS, each.secret, "`kubectl create secret generic …`")
            for variable, each in settings.secrets.items()
        ),
        *map(_of_volume, settings.volumes),
    ]
    if settings.queue is not None:
        queue = settings.queue.kueue
        named.append(("queue.kueue", KUEUE_QUEUES, queue, "`kubectl get localqueues`"))
    for key, resource, name, hint in named:
        if name is not None:
            yield NamedObject(
                place=f"kubernetes.{key}",
                resource=resource,
                namespace=namespace,
                name=name,
                hint=hint,
            )


def _of_volume(volume: Volume) -> tuple[str, Resource, str | None, str | None]:
    """Without a name where it is made by us."""
    place = f"volumes.{volume.name}"
    if volume.config_map is not None:
        return place, CONFIG_MAPS, volume.config_map, "`kubectl create configmap …`"
    name = volume.claim_name if volume.size_bytes is None else None
    return place, CLAIMS, name, "name a claim that is there, or make one: `size_bytes: …`"


def _of_cluster(settings: Kubernetes) -> Iterator[NamedObject]:
    named = [
        ("priority_class", PRIORITY_CLASSES, settings.priority_class),
        ("runtime_class", RUNTIME_CLASSES, settings.runtime_class),
        *(
            (f"volumes.{each.name}", STORAGE_CLASSES, each.storage_class)
            for each in settings.volumes
        ),
    ]
    for key, resource, name in named:
        if name is not None:
            yield NamedObject(
                place=f"kubernetes.{key}", resource=resource, namespace=None, name=name
            )


def _of_networks(interfaces: Sequence[Interface], namespace: str) -> Iterator[NamedObject]:
    for interface in interfaces:
        if interface.config is not None:
            continue  # it is written by us
        space, _, name = interface.definition.rpartition("/")
        yield NamedObject(
            place=f"networks.{interface.network}.kubernetes.definitions",
            resource=ATTACHMENTS,
            namespace=space or namespace,
            name=name,
            hint="`kubectl get network-attachment-definitions -A` lists what is there",
        )
