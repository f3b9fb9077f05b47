"""Where in a user's manifest are the containers that train, and the pods that they are in?"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.errors import InputError

JobPart = tuple[str, str, dict[str, Any]]
"""Of a manifest: its place as a patch names it, the same in words, and what stands there."""
_GPU = re.compile(
    r"(^|[./-])v?gpu($|[./]|-(mem|core|count))|^nvidia\.com/(mig-|pgpu)|^amd\.com/(?!v?nic)|"
    r"^habana\.ai/"
)
"""Not all of a vendor's are GPUs: `nvidia.com/roce`, `amd.com/nic`.

Source: the READMEs of NVIDIA's, AMD's, Intel's and Habana's device plugins for Kubernetes.
"""


def containers_that_train(kind: str, name: str, document: Manifest) -> Iterator[JobPart]:
    """Those that train. Raises InputError where none can be told."""
    spec = document.get("spec")
    if kind == "TrainJob":
        trainer = spec.get("trainer") if isinstance(spec, dict) else None
        if not isinstance(trainer, dict):
            raise InputError(
                f"TrainJob {name}: it has no `spec.trainer`, whose variables would be set",
                hint="`trainer: {numNodes: …}`",
            )
        yield "/spec/trainer", "trainer", trainer
        return
    for place, what, template in pod_templates(kind, spec):
        pod = template["spec"]
        if pod.get("hostNetwork") is True:
            raise InputError(
                f"{kind} {name}: its pods are on their nodes' network (`hostNetwork: true`), which "
                "is not the pod network",
                hint="leave `hostNetwork` out",
            )
        containers = pod.get("containers")
        numbered = [
            (number, each)
            for number, each in enumerate(containers if isinstance(containers, list) else [])
            if isinstance(each, dict)
        ]
        training = [each for each in numbered if _asks_for_gpus(each[1])] or [
            each for each in numbered if len(numbered) == 1 or each[1].get("name") == "pytorch"
        ]
        if not training:
            raise InputError(
                f"{kind} {name}: which of its {len(numbered)} containers trains? None asks for "
                "GPUs, and none is named `pytorch`",
                hint="ask for GPUs under `resources.limits` of the one that does",
            )
        for number, each in training:
            words = f"{what}container {each.get('name', number)}"
            yield f"{place}/spec/containers/{number}", words, each


def pod_templates(kind: str, spec: Any) -> Iterator[JobPart]:
    """Templates of pods; empty where it has none. A TrainJob's are its runtime's."""
    if not isinstance(spec, dict) or kind == "TrainJob":
        return
    if kind == "Job":
        templates = [("/spec/template", "", spec.get("template"))]
    else:
        replicas = spec.get("pytorchReplicaSpecs")
        path = "/spec/pytorchReplicaSpecs"
        templates = [
            (f"{path}/{escaped(str(role))}/template", f"{role}, ", each.get("template"))
            for role, each in (replicas.items() if isinstance(replicas, dict) else ())
            if isinstance(each, dict)
        ]
    for place, what, template in templates:
        if isinstance(template, dict) and isinstance(template.get("spec"), dict):
            yield place, what, template


def escaped(word: str) -> str:
    """Source: RFC 6901, 3."""
    return word.replace("~", "~0").replace("/", "~1")


def is_gpu(resource: str) -> bool:
    """Is this what GPUs are asked for by?"""
    return _GPU.search(resource) is not None


def _asks_for_gpus(container: Mapping[str, Any]) -> bool:
    asked = container.get("resources")
    limits = asked.get("limits") if isinstance(asked, dict) else None
    return isinstance(limits, dict) and any(is_gpu(str(name)) for name in limits)
