"""Which rights does it take to run an experiment on Kubernetes, or to apply what is rendered?"""

from dataclasses import replace

from broadgauge.engine.plan import make_plan
from broadgauge.manifests.files import ManifestFile
from broadgauge.manifests.rights import rights_file
from broadgauge.running.experiments import LoadedExperiment
from broadgauge.running.rendering.devices import pod_devices
from broadgauge.running.rendering.experiment import render_experiment
from broadgauge.specs.kubernetes.settings import SecretRef
from broadgauge.specs.secrets.values import declared

_LOOKED_UP = SecretRef(secret="of-the-run", key="value")
"""For a variable that `run` puts into a Secret of its own: rights are of kinds, not of names."""


def rights_of(loaded: LoadedExperiment) -> ManifestFile:
    """Raises InputError where no namespace is named, or it could not be rendered."""
    experiment = loaded.experiment
    plan = make_plan(experiment, {"kubernetes": pod_devices(experiment)})
    secrets = dict.fromkeys(declared(plan.cases), _LOOKED_UP) | experiment.kubernetes.secrets
    settings = experiment.kubernetes.model_copy(update={"secrets": secrets})
    with_secrets = experiment.model_copy(update={"kubernetes": settings})
    found = render_experiment(replace(loaded, experiment=with_secrets))
    return rights_file(found.jobs, found.rendered.objects)
