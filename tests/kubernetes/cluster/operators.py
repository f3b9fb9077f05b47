"""The real operators of jobs, as processes beside a control plane, with their admission webhooks.

Each answers on a port of 127.0.0.1, by which address the API server asks it (`clientConfig.url`),
with the API server's own certificate for that address. So there is no Service, no Secret and no
certificate to wait for; what judges a manifest is the operator's own.

An operator that listens need not have all webhooks yet, and the API server hears of them by a
watch: `start` returns when each refused a bad object by its own name, or changed what it changes.
"""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import ruamel.yaml
from tests.kubernetes import samples
from tests.kubernetes.cluster.api import FIELD_MANAGER, Api, Manifest, RefusedError
from tests.kubernetes.cluster.control_plane import ControlPlane, free_ports
from tests.kubernetes.cluster.processes import Process
from tests.kubernetes.cluster.programs import manifests, program
from tests.kubernetes.cluster.waiting import wait_until

_CERTIFICATES = "k8s-webhook-server/serving-certs"
"""Below the temporary folder: where controller-runtime looks, unless it is told."""
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One of them, by its release."""

    name: str
    """Of its program."""
    module: str
    """Go's, whose files it is installed by."""
    crds: str
    """Folder of its kinds' schemas in the release."""
    webhooks: str
    """Path of their configurations in the release."""
    configuration: Mapping[str, Any]
    """What its file says beside ports."""
    refused: Mapping[str, Manifest]
    """A bad object by the webhook that refuses it."""
    lacks_defaults: Callable[[Api], str | None]
    """What is not as its webhook would change it, None once it is."""
    left_out: tuple[str, ...] = ()
    """Webhooks that are not installed."""


def jobs_not_indexed(api: Api) -> str | None:
    """Of a JobSet, unless it says otherwise."""
    (jobs,) = api.create(samples.job_set(), dry_run=True)["spec"]["replicatedJobs"]
    mode = jobs["template"]["spec"].get("completionMode")
    return None if mode == "Indexed" else f"its jobs' completionMode is {mode}"


def patches_not_dated(api: Api) -> str | None:
    """Of a TrainJob. Its runtime has to be there, and to have been seen by the webhook."""
    runtime = samples.training_runtime()
    if api.read(runtime) is None:
        api.create(runtime)
    try:
        (patch,) = api.create(samples.patched_train_job(), dry_run=True)["spec"]["runtimePatches"]
    except RefusedError as refusal:
        return str(refusal)
    return None if "time" in patch else "its patch has no time"


JOBSET = Operator(
    name="jobset",
    module="sigs.k8s.io/jobset",
    crds="config/components/crd/bases",
    webhooks="config/components/webhook/manifests.yaml",
    configuration={
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "internalCertManagement": {"enable": False},
    },
    refused={"vjobset.kb.io": samples.refused_job_set()},
    lacks_defaults=jobs_not_indexed,
    left_out=("mpod.kb.io", "vpod.kb.io"),  # each pod of the cluster would wait for them
)
TRAINER = Operator(
    name="trainer",
    module="github.com/kubeflow/trainer/v2",
    crds="manifests/base/crds",
    webhooks="manifests/base/webhook/manifests.yaml",
    configuration={
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
        "certManagement": {"enable": False},
    },
    refused={
        "validator.trainjob.trainer.kubeflow.org": samples.train_job(runtime="is-nowhere"),
        "validator.trainingruntime.trainer.kubeflow.org": samples.training_runtime(container="x"),
        "validator.clustertrainingruntime.trainer.kubeflow.org": samples.training_runtime(
            container="x", kind="ClusterTrainingRuntime"
        ),
    },
    lacks_defaults=patches_not_dated,
)
OPERATORS = (JOBSET, TRAINER)


def start(control_plane: ControlPlane) -> None:
    """Their kinds, their processes, their webhooks; they end with the control plane."""
    api = control_plane.api()
    kinds = [kind for operator in OPERATORS for kind in _install_kinds(api, operator)]
    for version, kind in kinds:  # without any of theirs an operator ends at once
        wait_until(lambda v=version, k=kind: api.is_served(v, k), f"{kind} to be served")
    started = [(operator, _launch(control_plane, api, operator)) for operator in OPERATORS]
    for operator, process in started:
        for webhook, manifest in operator.refused.items():
            process.wait_until_ready(lambda w=webhook, m=manifest: passes(api, w, m))
        process.wait_until_ready(lambda o=operator: o.lacks_defaults(api))


def passes(api: Api, webhook: str, manifest: Manifest) -> str | None:
    """What a bad object got instead of the refusal by this webhook; None once that is it.

    The API server refuses it in the name of a webhook that does not answer, too, in other words.
    """
    try:
        accepted = api.create(manifest, dry_run=True)
    except RefusedError as refusal:
        is_denied = f'admission webhook "{webhook}" denied the request' in refusal.message
        return None if is_denied else str(refusal)
    return f"{accepted['kind']} passes {webhook}"


def _install_kinds(api: Api, operator: Operator) -> Iterator[tuple[str, str]]:
    """apiVersion and kind of each."""
    for path in sorted((manifests(operator.module) / operator.crds).glob("*_*.yaml")):
        # As it is: parsing these files takes longer than all else here.
        content = {"content_type": "application/yaml", "fieldManager": FIELD_MANAGER}
        spec = api.request("POST", _CRDS, path.read_bytes(), **content)["spec"]
        for version in spec["versions"]:
            yield f"{spec['group']}/{version['name']}", spec["names"]["kind"]


def _webhooks(operator: Operator) -> Iterator[Manifest]:
    """The configurations of the release, each with the webhooks that are installed."""
    text = (manifests(operator.module) / operator.webhooks).read_text()
    for configuration in filter(None, ruamel.yaml.YAML(typ="safe", pure=True).load_all(text)):
        wanted = [
            each for each in configuration["webhooks"] if each["name"] not in operator.left_out
        ]
        yield configuration | {"webhooks": wanted}


def _launch(control_plane: ControlPlane, api: Api, operator: Operator) -> Process:
    webhook_port, health_port = free_ports(2)
    authority = base64.b64encode(control_plane.certificate.read_bytes()).decode()
    for configuration in _webhooks(operator):
        for each in configuration["webhooks"]:
            path = each["clientConfig"]["service"]["path"]
            each["clientConfig"] = {
                "url": f"https://127.0.0.1:{webhook_port}{path}",
                "caBundle": authority,
            }
        configuration["metadata"]["name"] = f"{operator.name}-{configuration['metadata']['name']}"
        api.create(configuration)
    folder = control_plane.folder / operator.name
    certificates = folder / _CERTIFICATES
    certificates.mkdir(parents=True)
    for name, kept in {"tls.crt": "apiserver.crt", "tls.key": "apiserver.key"}.items():
        (certificates / name).symlink_to(control_plane.folder / "certificates" / kept)
    configuration = {
        **operator.configuration,
        "kind": "Configuration",
        "webhook": {"port": webhook_port, "host": "127.0.0.1"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health_port}"},
        "metrics": {"bindAddress": "0"},
        "leaderElection": {"leaderElect": False},
    }
    (folder / "config.yaml").write_text(json.dumps(configuration))
    return control_plane.processes.start(
        operator.name,
        [program(operator.name), f"--config={folder / 'config.yaml'}"],
        {"KUBECONFIG": str(control_plane.kubeconfig), "TMPDIR": str(folder)},
    )
