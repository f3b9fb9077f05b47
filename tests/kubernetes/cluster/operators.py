"""The real operators of jobs, as processes beside a control plane, with their admission webhooks.

Each answers on a port of 127.0.0.1, by which address the API server asks it (`clientConfig.url`),
with the API server's own certificate for that address. So there is no Service, no Secret and no
certificate to wait for; what judges a manifest is the operator's own.

An operator that listens need not have all webhooks yet, and the API server hears of them by a
watch: `start` returns when each refused a bad object by its own name, or changed what it changes.
"""

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import ruamel.yaml
from tests.kubernetes import samples
from tests.kubernetes.cluster.api import Api, Manifest, RefusedError
from tests.kubernetes.cluster.control_plane import ControlPlane, free_ports
from tests.kubernetes.cluster.processes import Process
from tests.kubernetes.cluster.programs import manifests, program
from tests.kubernetes.cluster.waiting import wait_until

_CERTIFICATES = "k8s-webhook-server/serving-certs"
"""Below the temporary folder: where controller-runtime looks, unless it is told."""
_COMMON = {
    "kind": "Configuration",
    "health": {"healthProbeBindAddress": "0"},
    "metrics": {"bindAddress": "0"},
    "leaderElection": {"leaderElect": False},
}
_LONGEST_S = 30
"""That the API server lets a webhook take: a busy machine is no reason to refuse a manifest."""
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
    configuration: Mapping[str, Any] | None
    """What its file says beside ports; None of one that has options instead."""
    refused: Mapping[str, Manifest]
    """A bad object by the webhook that refuses it."""
    lacks_defaults: Callable[[Api], str | None] = lambda api: None
    """What is not as its webhook would change it, None once it is."""


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
TRAINING_OPERATOR = Operator(
    name="training-operator",
    module="github.com/kubeflow/training-operator",
    crds="manifests/base/crds",
    webhooks="manifests/base/webhook/manifests.yaml",
    configuration=None,
    refused={
        "validator.pytorchjob.training-operator.kubeflow.org": samples.pytorch_job(container="x")
    },
)
OPERATORS = (JOBSET, TRAINER, TRAINING_OPERATOR)


def start(control_plane: ControlPlane) -> None:
    """Their kinds, their processes, their webhooks; they end with the control plane."""
    api = control_plane.api()
    kinds = {
        operator.name: install_kinds(
            api, sorted((manifests(operator.module) / operator.crds).glob("*.yaml"))
        )
        for operator in OPERATORS
    }
    started = []
    for operator in OPERATORS:  # without any of its kinds an operator ends at once
        plurals = {spec["names"]["plural"] for spec in kinds[operator.name]}
        started.append((operator, _launch(control_plane, operator, plurals)))
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


def install_kinds(api: Api, definitions: Iterable[Path]) -> list[Manifest]:
    """What each of them specifies, once it is served."""
    specs = [
        # As it is: parsing these files takes longer than all else here.
        api.request("POST", _CRDS, path.read_bytes(), content_type="application/yaml")["spec"]
        for path in definitions
    ]
    for spec in specs:
        _wait_until_served(api, spec)
    return specs


def _wait_until_served(api: Api, spec: Manifest) -> None:
    kind = spec["names"]["kind"]
    for each in spec["versions"]:
        version = f"{spec['group']}/{each['name']}"
        wait_until(lambda v=version: api.is_served(v, kind), f"{kind} of {version} to be served")


def _launch(control_plane: ControlPlane, operator: Operator, plurals: Set[str]) -> Process:
    folder = control_plane.folder / operator.name
    certificates = folder / _CERTIFICATES
    certificates.mkdir(parents=True)
    for name, kept in {"tls.crt": "apiserver.crt", "tls.key": "apiserver.key"}.items():
        (certificates / name).symlink_to(control_plane.folder / "certificates" / kept)
    (port,) = free_ports(1)
    _install_webhooks(control_plane, operator, plurals, port)
    options = [f"--webhook-port={port}", f"--certificates={certificates}"]
    if operator.configuration is not None:
        path = folder / "config.yaml"
        path.write_text(json.dumps({**_COMMON, **operator.configuration, **_listening(port)}))
        options = [f"--config={path}"]
    return control_plane.processes.start(
        operator.name,
        [program(operator.name), *options],
        {"KUBECONFIG": str(control_plane.kubeconfig), "TMPDIR": str(folder)},
    )


def _listening(port: int) -> dict[str, Any]:
    return {"webhook": {"port": port, "host": "127.0.0.1"}}


def _install_webhooks(
    control_plane: ControlPlane, operator: Operator, plurals: Set[str], port: int
) -> None:
    """Those of the release that judge its kinds, and no other: JobSet's of pods are left out, for
    which each pod of the cluster would wait, and training operator's of other kinds of jobs."""
    authority = base64.b64encode(control_plane.certificate.read_bytes()).decode()
    text = (manifests(operator.module) / operator.webhooks).read_text()
    for configuration in filter(None, ruamel.yaml.YAML(typ="safe", pure=True).load_all(text)):
        webhooks = [
            each
            for each in configuration["webhooks"]
            if plurals.issuperset(chain.from_iterable(rule["resources"] for rule in each["rules"]))
        ]
        for each in webhooks:
            url = f"https://127.0.0.1:{port}{each['clientConfig']['service']['path']}"
            each["clientConfig"] = {"url": url, "caBundle": authority}
            each["timeoutSeconds"] = _LONGEST_S
        name = f"{operator.name}-{configuration['metadata']['name']}"
        control_plane.api().create(
            configuration | {"metadata": {"name": name}, "webhooks": webhooks}
        )
