"""What is a pod of the job? One a node, with one container, in which the agent starts the ranks."""

import json
from collections.abc import Iterator

from broadgauge.manifests import environment, labels, profiles, security
from broadgauge.manifests.config_maps import PROGRAM_KEY
from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.volumes import ADDRESSES, PROGRAM, mounted, of_daemons
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.errors import InputError
from broadgauge.specs.kubernetes import Toleration

NETWORKS_ANNOTATION = "k8s.v1.cni.cncf.io/networks"
CPUS_PER_GPU_RANK = 2
"""A rank's own thread launches kernels, and NCCL has one that sends (its proxy) and one of torch
that looks after it: two are busy at most. Source: NCCL 2.28, src/proxy.cc; torch 2.11,
ProcessGroupNCCL. Loader workers are not counted: no workload of ours has any."""
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
"""Volcano, pkg/apis/scheduling/v1beta1, KubeGroupNameAnnotationKey."""


def pod_template(request: JobRequest) -> Manifest:
    """`metadata` and `spec`, for all job kinds."""
    return {"metadata": pod_metadata(request), "spec": pod_spec(request)}


def bare_pod(request: JobRequest) -> Manifest:
    """One pod of the job, as its operator would make it but for its own additions."""
    about = pod_metadata(request)
    space = {} if (name := request.settings.namespace) is None else {"namespace": name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{request.name}-rehearsed", **space, **about},
        "spec": pod_spec(request),
    }


def pod_metadata(request: JobRequest) -> Manifest:
    """Labels that runs are found by, and the networks."""
    own = labels.labels_of(request.run, request.name, request.settings.labels)
    return {"labels": own, "annotations": annotations(request)}


def annotations(request: JobRequest) -> dict[str, str]:
    """The user's, and ours. Raises InputError where both name networks."""
    found = {**request.settings.annotations, "sidecar.istio.io/inject": "false"}
    found |= profiles.annotations(request)
    attached = [_attachment(request, *each) for each in _attachments(request)]
    if attached and NETWORKS_ANNOTATION in request.settings.annotations:
        raise InputError(
            f"kubernetes.annotations: `{NETWORKS_ANNOTATION}` is written from `networks`",
            hint="an entry of `networks` with `attachment: existing` for each of its definitions",
        )
    if attached:
        found[NETWORKS_ANNOTATION] = json.dumps(attached, indent=2)
    if request.settings.queue is not None and request.settings.queue.volcano is not None:
        found[VOLCANO_GROUP] = request.name
    return found


def _attachments(request: JobRequest) -> Iterator[tuple[str, str]]:
    for each in request.interfaces.found:
        yield each.definition, each.name


def _attachment(request: JobRequest, definition: str, interface: str) -> dict[str, str]:
    """Source: NetworkAttachmentDefinition standard 1.3, 4.1.1 (network selection element)."""
    namespace, _, name = definition.rpartition("/")
    space = namespace or request.settings.namespace
    return {"name": name, **({} if space is None else {"namespace": space}), "interface": interface}


def pod_spec(request: JobRequest) -> Manifest:
    """The pod's own."""
    settings = request.settings
    found: Manifest = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": security.of_pod(request),
        "affinity": one_a_node(request),
    }
    if settings.service_account is not None:
        found["serviceAccountName"] = settings.service_account
    if settings.image_pull_secrets:
        found["imagePullSecrets"] = [{"name": name} for name in settings.image_pull_secrets]
    if settings.priority_class is not None:
        found["priorityClassName"] = settings.priority_class
    if settings.runtime_class is not None:
        found["runtimeClassName"] = settings.runtime_class
    if settings.queue is not None and settings.queue.volcano is not None:
        found["schedulerName"] = "volcano"
    found |= placement(request)
    first = [] if request.address_map is None else [_address_container(request)]
    first += profiles.daemons(request)
    if first:
        found["initContainers"] = first
    found["containers"] = [container(request)]
    found["volumes"] = [each.volume for each in mounted(request)] + of_daemons(request)
    return found


def one_a_node(request: JobRequest) -> Manifest:
    """Two pods of a job never share a node: its NICs and GPUs are measured."""
    term = {
        "labelSelector": {"matchLabels": {labels.JOB: request.name}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def placement(request: JobRequest) -> Manifest:
    """On which nodes: labels they must have, taints that don't matter."""
    settings = request.settings
    found: Manifest = {}
    if settings.node_selector:
        found["nodeSelector"] = dict(settings.node_selector)
    if settings.tolerations:
        found["tolerations"] = [_toleration(each) for each in settings.tolerations]
    return found


def _toleration(toleration: Toleration) -> Manifest:
    form = toleration.model_dump(mode="json", exclude_none=True)
    return {"operator": form.pop("operator"), **form}


def command(request: JobRequest, program: str) -> list[str]:
    """Kubernetes replaces `$(NAME)` in it, and `$$` is a `$`."""
    python = request.settings.python.replace("$", "$$")
    return [python, f"{PROGRAM}/{PROGRAM_KEY}", program]


def container(request: JobRequest) -> Manifest:
    """Of the ranks."""
    found: Manifest = {
        "name": labels.container_name(request.kind),
        "image": request.settings.image,
        **pull_policy(request),
        "command": command(request, "pod"),
        "env": environment.variables(request),
    }
    asked = resources(request)
    if asked:
        found["resources"] = asked
    found["securityContext"] = security.of_container(request)
    found["volumeMounts"] = [each.mount for each in mounted(request)]
    return found


def pull_policy(request: JobRequest) -> Manifest:
    """Empty: Kubernetes' own choice."""
    policy = request.settings.image_pull_policy
    return {} if policy is None else {"imagePullPolicy": policy}


def cpu_quantity(cpus: float) -> str:
    """`1500m`, `8`."""
    milli = round(cpus * 1000)
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def resources(request: JobRequest) -> Manifest:
    """Requests, and limits as high where the experiment says how much: nobody else's work is to
    disturb what is measured. What is only predicted is no limit, which would end a pod."""
    settings = request.settings
    said: dict[str, str] = {}
    predicted: dict[str, str] = {}
    if settings.cpus is not None:
        said["cpu"] = cpu_quantity(settings.cpus)
    elif not request.gpus_per_pod:
        said["cpu"] = str(request.ranks_per_pod)
    else:
        predicted["cpu"] = str(CPUS_PER_GPU_RANK * request.ranks_per_pod)
    need_bytes = request.memory_need.total_bytes
    if request.memory_bytes is not None:
        said["memory"] = str(request.memory_bytes)
    elif need_bytes is not None:
        predicted["memory"] = str(need_bytes)
    if request.gpus_per_pod:
        said[settings.gpu_resource] = str(request.gpus_per_pod)
    for name, number in of_networks(request).items():
        said[name] = str(number)
    said |= profiles.resources(request)
    return {"requests": predicted | said, **({"limits": said} if said else {})}


def of_networks(request: JobRequest) -> dict[str, int]:
    """Extended resources of the NICs: as many as the network that needs most."""
    found: dict[str, int] = {}
    for each in request.interfaces.found:
        if each.resource is not None:
            found[each.resource] = found.get(each.resource, 0) + 1
    for network in request.networks:
        attached = network.kubernetes
        if attached is None or not attached.is_pod_network:
            continue
        counts: dict[str, int] = {}
        for nic in range(network.on_nodes(request.num_pods).num_nics):
            resource = attached.resource(nic)
            if resource is not None:
                counts[resource] = counts.get(resource, 0) + 1
        for resource, number in counts.items():
            found[resource] = max(found.get(resource, 0), number)
    return found


def _address_container(request: JobRequest) -> Manifest:
    """The only one that may change addresses; it ends before the ranks' container starts."""
    shown = ("broadgauge-program", "broadgauge-addresses")
    mounts = [each.mount for each in mounted(request) if each.mount["name"] in shown]
    assert {each["mountPath"] for each in mounts} == {PROGRAM, ADDRESSES}
    return {
        "name": "addresses",
        "image": request.settings.init_image or request.settings.image,
        **pull_policy(request),
        "command": command(request, "addresses"),
        "env": environment.of_address_container(request),
        "securityContext": security.of_address_container(),
        "volumeMounts": mounts,
    }
