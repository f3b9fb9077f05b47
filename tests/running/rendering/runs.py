"""Jobs of runs, made of experiments as `run --on kubernetes` makes them."""

import gzip
from pathlib import Path
from typing import Any

from tests.running.rendering.experiments import EXPERIMENT

from broadgauge.engine.plan import make_plan
from broadgauge.manifests.run_job import RunJob, order_key, run_objects
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.running.experiments import LoadedExperiment, load_text
from broadgauge.running.rendering.devices import pod_devices
from broadgauge.running.rendering.experiment import ON_KUBERNETES
from broadgauge.running.rendering.run_job import run_job_of
from broadgauge.specs.kubernetes.settings import JobKind

RUN_LABEL = "small-0a1b2c"
ORDERS = {order_key(0): gzip.compress(b'{"jobs": []}', mtime=0)}


def run_of(
    loaded: LoadedExperiment, kind: JobKind = "job", name: str = RUN_LABEL, **more: Any
) -> RunJob:
    """Of all cases that its plan has."""
    experiment = loaded.experiment
    plan = make_plan(experiment, {"kubernetes": pod_devices(experiment)})
    return run_job_of(
        loaded, plan.cases, kind=kind, namespace="training", run=RUN_LABEL, name=name, **more
    )


def small_run(
    folder: Path, *overrides: str, text: str = EXPERIMENT, kind: JobKind = "job"
) -> RunJob:
    """The experiment as if it stood in this folder; `overrides` are `--set` texts."""
    loaded = load_text(text, folder / "experiment.yaml", (*overrides, ON_KUBERNETES))
    return run_of(loaded, kind, program=b"zip")


def objects_of_run(run: RunJob) -> tuple[Manifest, ...]:
    """All but the Secret."""
    return run_objects(run, ORDERS)


def templates_of(run: RunJob) -> list[Manifest]:
    """Of its pods: one, or a PyTorchJob's master's and workers'."""
    spec = objects_of_run(run)[-1]["spec"]
    match run.kind:
        case "job":
            return [spec["template"]]
        case "pytorchjob":
            return [each["template"] for each in spec["pytorchReplicaSpecs"].values()]
        case "trainjob":
            (job,) = objects_of_run(run)[-2]["spec"]["template"]["spec"]["replicatedJobs"]
            return [job["template"]["spec"]["template"]]
