"""Which variables does a pod's container start with? What is the same for all of its launches."""

from broadgauge.manifests import labels
from broadgauge.manifests.kept_results import results_folder
from broadgauge.manifests.prepared import prepared_paths
from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.volumes import SCRATCH
from broadgauge.manifests.yaml_text import Manifest

LEADER_PORT = 29510


def variables(request: JobRequest) -> list[Manifest]:
    """Variables of ranks are in the orders, by launch; only secrets come in here, by reference."""
    settings = request.settings
    found = [
        _field("BROADGAUGE_NODE_NAME", "spec.nodeName"),
        _field("BROADGAUGE_POD_NAME", "metadata.name"),
        _field("BROADGAUGE_POD_IP", "status.podIP"),
        plain("BROADGAUGE_LEADER", labels.leader_address(request.kind, request.name)),
        plain("BROADGAUGE_LEADER_PORT", str(LEADER_PORT)),
        plain("BROADGAUGE_MEET_S", f"{settings.pending_limit_s:g}"),
        plain("BROADGAUGE_PREFLIGHT_S", f"{settings.preflight_s:g}"),
    ]
    if request.linger_s is not None:
        found.append(plain("BROADGAUGE_LINGER_S", f"{request.linger_s:g}"))
    if request.num_pods == 1:
        found.append(plain("BROADGAUGE_NODE", "0"))
    elif request.kind != "pytorchjob":  # its operator numbers master and workers
        index = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
        found.append(_field("BROADGAUGE_NODE", index))
    if settings.working_folder is not None:
        found.append(plain("BROADGAUGE_WORKING_FOLDER", settings.working_folder))
    if (folder := results_folder(request)) is not None:
        found.append(plain("BROADGAUGE_RESULTS", folder))
    found += [plain(name, path) for name, path in prepared_paths(request).items()]
    return found + of_any_user() + secrets(request)


def of_address_container(request: JobRequest) -> list[Manifest]:
    """What `broadgauge.zip addresses` reads."""
    mapped = [each.name for each in request.interfaces.found if each.is_mapped]
    return [
        _field("BROADGAUGE_NODE_NAME", "spec.nodeName"),
        plain("BROADGAUGE_ADDRESS_INTERFACES", ",".join(mapped)),
    ]


def of_any_user() -> list[Manifest]:
    """A random UID has no name and no home, which libraries ask for."""
    return [
        plain("HOME", SCRATCH),
        plain("TMPDIR", SCRATCH),
        plain("USER", "broadgauge"),
        plain("LOGNAME", "broadgauge"),
        plain("PYTHONUNBUFFERED", "1"),
    ]


def secrets(request: JobRequest, *, with_token: bool = True) -> list[Manifest]:
    """By reference: their values are in Secrets, and in no file. `with_token`: the run's own."""
    ours = labels.secrets_name(request.name)
    refs = {labels.TOKEN_VARIABLE: (ours, labels.TOKEN_VARIABLE)} if with_token else {}
    refs |= {name: (ours, name) for name in request.secret_names}
    refs |= {name: (ref.secret, ref.key) for name, ref in request.settings.secrets.items()}
    return [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
        for name, (secret, key) in refs.items()
    ]


def plain(name: str, value: str) -> Manifest:
    """`$(NAME)` is replaced by Kubernetes, and `$$` is a `$`."""
    return {"name": name, "value": value.replace("$", "$$")}


def _field(name: str, path: str) -> Manifest:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
