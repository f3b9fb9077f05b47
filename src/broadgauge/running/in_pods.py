"""How does an experiment run in the pods of a cluster? From its file to the platform that does."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from broadgauge.platforms.kubernetes.extra import check_extra
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.running.experiments import LoadedExperiment
from broadgauge.running.rendering.run_job import run_job_of
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.secrets.values import Secrets

if TYPE_CHECKING:
    from broadgauge.platforms.kubernetes.platform import KubernetesPlatform


def kubernetes_platform(
    folders: LaunchFolders, experiment: Experiment, secrets: Secrets, cases: Sequence[Case]
) -> "KubernetesPlatform":
    """`cases`: of the whole plan. No cluster is asked yet. Raises PlatformError where what speaks
    to one is not installed; InputError."""
    check_extra()
    from broadgauge.platforms.kubernetes.platform import KubernetesPlatform

    own = [case for case in cases if case.platform in (None, "kubernetes")]
    _refuse_other_folder(folders, own)
    loaded = LoadedExperiment(experiment=experiment, source=experiment.name, folder=folders.working)
    make_job = partial(run_job_of, loaded, own)
    return KubernetesPlatform(folders, experiment, make_job, secrets=secrets.values_of(own))


def on_cluster(experiment: Experiment) -> tuple[Experiment, str]:
    """With the kind of job that the cluster can run, and words for it and where it is. Raises
    InputError where there is no kubeconfig; PlatformError where no cluster answers, or has not the
    kind that is asked for."""
    check_extra()
    from broadgauge.platforms.kubernetes.upcoming import chosen_kind

    chosen = chosen_kind(experiment.kubernetes)
    settings = experiment.kubernetes.model_copy(update={"job": chosen.kind})
    context = chosen.api.context
    of = "" if context is None else f" of context {context}"
    words = f"in namespace {chosen.namespace}{of}, {chosen.words}"
    return experiment.model_copy(update={"kubernetes": settings}), words


def _refuse_other_folder(folders: LaunchFolders, cases: Sequence[Case]) -> None:
    """Pods have the files of one folder. Raises InputError."""
    is_needed = any(case.arm == "baseline" and case.workload.is_under_torchrun for case in cases)
    if is_needed and folders.baseline != folders.working:
        raise InputError(
            f"--against: the baseline's commands run in {folders.baseline}, and the pods of a run "
            f"have the files of {folders.working} alone",
            hint="run both from one folder, or the two after each other and `broadgauge compare`",
        )
