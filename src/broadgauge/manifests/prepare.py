"""Which Job fetches model and data set onto a volume, before any training?"""

from collections.abc import Iterator

from broadgauge.manifests import names, security
from broadgauge.manifests.config_maps import PROGRAM_KEY, config_map, file_keys
from broadgauge.manifests.expansion import not_expanded
from broadgauge.manifests.files import ManifestFile
from broadgauge.manifests.job import JobPods
from broadgauge.manifests.pod_parts import (
    OF_ANY_USER,
    plain_variables,
    pod_frame,
    secret_variables,
)
from broadgauge.manifests.prepared import (
    PREPARE_FILES,
    TOKENS,
    Preparation,
    filled_volume,
    order_text,
)
from broadgauge.manifests.resources import cpu_quantity
from broadgauge.manifests.volumes import PROGRAM, mounted_claim
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.messages.prepare_order import VARIABLE
from broadgauge.specs.kubernetes.pod_prepare import PodPrepare
from broadgauge.specs.kubernetes.pod_volumes import SCRATCH
from broadgauge.specs.kubernetes.settings import NO_SIDECAR

FOLDER = "35-prepare"
_TRIES = 6
"""Of a pod, each after twice the pause of the one before, from 10 s on: Kubernetes' own number."""
_LASTING = 2
"""The exit code where another try does not help (agent/volume/telling.py)."""
_LITTLE = {"cpu": "100m", "memory": str(256 << 20)}
"""A pod that requests nothing is the first to be evicted, and a quota on requests refuses it."""


def prepare_file(job: JobPods) -> ManifestFile | None:
    """None: all is there already. `job`: any of the experiment's."""
    prepare, found = job.settings.prepare, job.preparation
    if prepare is None or found is None:
        return None
    objects = (*_config_maps(job, found), _job(job, prepare, found))
    return ManifestFile(
        path=f"{FOLDER}/prepare.yaml",
        comment=f"A Job that puts {_words(found)} onto the volume {prepare.volume}, once: what is "
        "there already, by the checksum of what is asked for in its folder's name, is left alone, "
        "and what a killed pod has begun is gone on with. The pods of 40-job wait for it.\n"
        "From the experiment's `kubernetes.prepare`.",
        objects=objects,
    )


def _words(found: Preparation) -> str:
    order = found.order
    words = [f"the {each.kind} {each.source}" for each in order.fetched]
    if order.command is not None:
        words.append("what your command makes")
    return " and ".join(words)


def _config_maps(job: JobPods, found: Preparation) -> Iterator[Manifest]:
    """What runs there, and the files that the user's command needs."""
    labels = names.experiment_labels(job)
    name = found.order.maker
    yield config_map(names.metadata(job, name, labels), {PROGRAM_KEY: found.program})
    if found.files:
        keys = file_keys(found.files)
        data = {keys[path]: content for path, content in found.files.items()}
        yield config_map(names.metadata(job, f"{name}-files", labels), data)


def _job(job: JobPods, prepare: PodPrepare, found: Preparation) -> Manifest:
    """A failure that lasts ends it; any other is tried again."""
    lasting = {"containerName": "prepare", "operator": "In", "values": [_LASTING]}
    labels = names.experiment_labels(job)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": names.metadata(job, found.order.maker, labels),
        "spec": {
            "backoffLimit": _TRIES,
            "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": lasting}]},
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": {**job.settings.annotations, NO_SIDECAR: "false"},
                },
                "spec": _pod(job, prepare, found),
            },
        },
    }


def _pod(job: JobPods, prepare: PodPrepare, found: Preparation) -> Manifest:
    """Where trainings may run, too: these nodes have the volume and can pull the image."""
    settings = job.settings
    volumes, mounts = zip(*_volumes(job, prepare, found), strict=True)
    container: Manifest = {"name": "prepare", "image": prepare.image or settings.image}
    if settings.image_pull_policy is not None:
        container["imagePullPolicy"] = settings.image_pull_policy
    container |= {
        "command": [not_expanded(settings.python), f"{PROGRAM}/{PROGRAM_KEY}", "prepare"],
        "env": _variables(job, prepare, found),
        "resources": _resources(prepare),
        "securityContext": security.of_helper(settings),
        "volumeMounts": list(mounts),
    }
    return pod_frame(job) | {"containers": [container], "volumes": list(volumes)}


def _volumes(
    job: JobPods, prepare: PodPrepare, found: Preparation
) -> Iterator[tuple[Manifest, Manifest]]:
    """Each with its mount."""
    name = found.order.maker
    program = {"name": "broadgauge-program", "configMap": {"name": name}}
    yield program, {"name": program["name"], "mountPath": PROGRAM, "readOnly": True}
    if found.files:
        keys = file_keys(found.files)
        items = [{"key": keys[path], "path": path} for path in keys]
        own = {"name": f"{name}-files", "items": items}
        files = {"name": "broadgauge-files", "configMap": own}
        yield files, {"name": files["name"], "mountPath": PREPARE_FILES, "readOnly": True}
    scratch: Manifest = {"name": "broadgauge-scratch", "emptyDir": {}}
    yield scratch, {"name": scratch["name"], "mountPath": SCRATCH}
    claim = mounted_claim(job.settings, filled_volume(job.settings, prepare))
    yield claim.volume, claim.mount


def _variables(job: JobPods, prepare: PodPrepare, found: Preparation) -> list[Manifest]:
    """Of the secrets those that sources ask for; all of them where a command of the user's runs."""
    plain = OF_ANY_USER | prepare.environment | {VARIABLE: order_text(found.order)}
    secrets = {
        name: ref
        for name, ref in job.settings.secrets.items()
        if name in TOKENS or prepare.command is not None
    }
    return plain_variables(plain, but=secrets) + secret_variables(secrets)


def _resources(prepare: PodPrepare) -> Manifest:
    asked: dict[str, str] = {}
    if prepare.cpus is not None:
        asked["cpu"] = cpu_quantity(prepare.cpus)
    if prepare.memory_bytes is not None:
        asked["memory"] = str(prepare.memory_bytes)
    return {"requests": _LITTLE | asked, **({"limits": asked} if asked else {})}
