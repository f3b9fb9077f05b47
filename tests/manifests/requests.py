"""Requests for jobs from the text of an experiment, as a run makes them."""

from typing import Any

from broadgauge.catalog.fabrics import pod_networks
from broadgauge.engine.plan import make_plan
from broadgauge.manifests.labels import JobKind
from broadgauge.manifests.request import JobRequest
from broadgauge.platforms.kubernetes.devices import kubernetes_devices
from broadgauge.specs.experiment import Experiment

KINDS: tuple[JobKind, ...] = ("pytorchjob", "trainjob", "jobset", "job")
VNIC = {
    "attachment": "host-device",
    "devices": ["ens13", "ens14"],
    "ipam": {"kind": "whereabouts", "ranges": ["10.0.1.0/24", "10.0.2.0/24"]},
}
ROCE = {"attachment": "existing", "definitions": "n", "transport": "roce"}


def experiment_of(
    *, networks: list[dict[str, Any]] | None = None, shape: str = "2x2", **settings: Any
) -> Experiment:
    """On Kubernetes; `settings` of its key `kubernetes`."""
    data = {
        "name": "demo",
        "platform": "kubernetes",
        "kubernetes": settings,
        "cluster": {"shapes": [shape], "device": "cuda"},
        "networks": networks or [{"name": "pod", "kubernetes": "pod"}],
        "workloads": [{"kind": "collectives"}],
    }
    return Experiment.model_validate(data)


def request_of(experiment: Experiment, kind: JobKind = "pytorchjob", **changed: Any) -> JobRequest:
    """A job for all cases of the experiment."""
    plan = make_plan(experiment, {"kubernetes": kubernetes_devices(experiment)})
    num_pods = max(case.nodes for case in plan.cases)
    networks = pod_networks(experiment.networks)
    given: dict[str, Any] = {
        "name": "demo",
        "run": "demo-1",
        "experiment": experiment,
        "cases": plan.cases,
        "networks": networks,
        "kind": kind,
        "num_pods": num_pods,
        "gpus_per_pod": 2,
        "memory_bytes": 16 << 30,
        "program": b"PK\x03\x04\xff",
        "orders": b"\x1f\x8b\x08",
    }
    return JobRequest(**(given | changed))
