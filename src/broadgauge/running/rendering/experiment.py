"""Which jobs is an experiment on Kubernetes? No cluster is asked, and nothing of this machine but
the experiment's own files: the same file gives the same bytes."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from broadgauge import __version__
from broadgauge.agent import bundle
from broadgauge.engine.expected_time import start_s, trial_s
from broadgauge.engine.kinds.registry import in_engine
from broadgauge.engine.plan import make_plan
from broadgauge.manifests.case_container import OWN_WORKLOAD
from broadgauge.manifests.job import PodJob, gpus_of
from broadgauge.manifests.names import CASE, MOST_NAME_CHARACTERS, word_of
from broadgauge.manifests.nothing_secret import refuse_secrets
from broadgauge.manifests.rendering import Rendered, render_jobs
from broadgauge.manifests.user_files import user_files
from broadgauge.messages.codec import encode
from broadgauge.messages.pod_case import PodCase
from broadgauge.platforms.launch_plan import phase_limits
from broadgauge.platforms.supervised import trial_order
from broadgauge.running.experiments import LoadedExperiment
from broadgauge.running.kinds.registry import in_running
from broadgauge.running.rendering.case_needs import (
    check_needed,
    check_storage,
    check_workloads,
    files_below,
    is_fed,
    refuse_gpus,
    where,
)
from broadgauge.running.rendering.devices import pod_devices
from broadgauge.running.rendering.host_memory import host_memory
from broadgauge.running.rendering.pod_attachments import AttachedNetworks, attach_networks
from broadgauge.running.rendering.pod_environment import pod_cpus, pod_environment
from broadgauge.running.rendering.pod_preparation import prepare_for_pods
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.launching import TrialRequest
from broadgauge.specs.plan import Plan
from broadgauge.specs.secrets.token_forms import holds_token

ON_KUBERNETES = "platform=kubernetes"
"""A `--set` text: whatever platform the file names, its faces of Kubernetes are rendered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedExperiment:
    """Files, and what they will hold of the cluster."""

    rendered: Rendered
    jobs: tuple[PodJob, ...]
    notes: tuple[str, ...]
    """Of the plan: what of the experiment is not in the files, and why."""
    gpu_hours: float
    """Of all jobs, one after another."""
    is_guess: bool
    """Is a command of the user's among them, whose time nobody knows?"""

    @property
    def num_pods(self) -> int:
        """Of all jobs."""
        return sum(job.num_pods for job in self.jobs)

    @property
    def most_gpus(self) -> int:
        """That one job holds."""
        return max(job.num_gpus for job in self.jobs)


def render_experiment(loaded: LoadedExperiment) -> RenderedExperiment:
    """Raises InputError where it has nothing for Kubernetes, or would not be what it says."""
    experiment = loaded.experiment
    check_workloads(experiment)
    plan = make_plan(_to_be_run(experiment), {"kubernetes": pod_devices(experiment)})
    prefix = experiment.kubernetes.name or word_of(experiment.name)
    networks = attach_networks(experiment.kubernetes, plan.cases, prefix, loaded.folder)
    jobs = tuple(_jobs(loaded, plan, prefix, networks))
    hours = sum(_job_s(experiment, job.case) * job.num_gpus for job in jobs) / 3600
    return RenderedExperiment(
        rendered=render_jobs(jobs, networks.definitions),
        jobs=jobs,
        notes=(*plan.notes, *_not_in_pods(jobs)),
        gpu_hours=hours,
        is_guess=not all(in_engine(job.case.workload).is_duration_known for job in jobs),
    )


def _to_be_run(experiment: Experiment) -> Experiment:
    """Without what is said of results: nothing here asks whether all of its cases are run."""
    rest: Experiment = experiment.model_copy(update={"hypotheses": (), "published": ()})
    return rest


def _jobs(
    loaded: LoadedExperiment, plan: Plan, prefix: str, networks: AttachedNetworks
) -> Iterator[PodJob]:
    """One a case, in the plan's order. Raises InputError."""
    experiment = loaded.experiment
    words = [_word(case) for case in plan.cases]
    _check_distinct(words, plan.cases)
    prepared = prepare_for_pods(experiment.kubernetes, prefix, loaded.folder)
    for word, case in zip(words, plan.cases, strict=True):
        _check_name(f"{prefix}-{word}", case)
        kind = in_running(case.workload)
        refuse_secrets(case, kind.own_words)
        check_storage(experiment.kubernetes, case)
        settings, subfolder = where(experiment.kubernetes, kind.folder, case)
        named = files_below(subfolder, kind.named_files)
        if settings.working_folder is None:
            check_needed(case, kind.needed_files, loaded.folder / subfolder)
        cpus = pod_cpus(experiment, case)
        attached = networks.by_case[case.key]
        refuse_gpus(attached.resources, settings)
        is_mapped = any(each.is_mapped for each in attached.interfaces)
        yield PodJob(
            name=f"{prefix}-{word}",
            prefix=prefix,
            experiment=prefix,
            marks={CASE: word},
            word=word,
            case=case,
            kind=experiment.kubernetes.job,
            settings=settings,
            num_pods=case.nodes,
            ranks_per_pod=case.ranks_per_node,
            gpus_per_pod=gpus_of(settings, case),
            volumes=settings.volumes_of(case.workload.name),
            secrets=settings.secrets_of(case.workload.name),
            subfolder=subfolder,
            launches=experiment.launches,
            arguments=kind.torchrun_words or OWN_WORKLOAD,
            told=_told(experiment, case),
            program=bundle.build(kind.pod_parts),
            files=user_files(named, settings, loaded.folder),
            environment=pod_environment(case, settings, cpus),
            cpus=cpus,
            memory_need=host_memory(experiment.kubernetes, case),
            attachments=attached,
            needs_locked_memory=networks.needs_locked_memory[case.key],
            address_map=networks.address_map if is_mapped else None,
            topology=networks.topology,
            preparation=prepared if is_fed(settings, case) else None,
        )


def _word(case: Case) -> str:
    """`train-pod-2x8`, `train-1x8`; on CPUs and GPUs alike, with Gloo named where NCCL is usual."""
    network = "" if case.network is None else f"{case.plain_network_name}-"
    storage = f"{case.storage_name}-" if case.storage_name else ""
    backend = "-gloo" if case.device == "cuda" and case.backend == "gloo" else ""
    return word_of(f"{case.workload.name}-{network}{storage}{case.shape}{backend}")


def _check_distinct(words: Sequence[str], cases: Sequence[Case]) -> None:
    """Raises InputError. Numbers would change with the file's order, and no job can be renamed."""
    for place, word in enumerate(words):
        first = words.index(word)
        if first != place:
            raise InputError(
                f"{cases[first].label} and {cases[place].label} would both be the job `{word}`",
                hint="names of workloads and networks that differ in more than a dot or a hyphen",
            )


def _check_name(name: str, case: Case) -> None:
    """Raises InputError. Nothing is cut off: two names would become one."""
    if len(name) > MOST_NAME_CHARACTERS:
        raise InputError(
            f"{case.label}: the job would be named `{name}`, {len(name)} characters, and pods' "
            f"names have room for {MOST_NAME_CHARACTERS}",
            hint="`kubernetes.name`: a short one in place of the experiment's; or shorter names of "
            "workloads and networks",
        )
    if not name[0].isalpha():
        raise InputError(
            f"kubernetes.name: the job would be named `{name}`, and names of Services begin with "
            "a letter",
            hint=f"`kubernetes: {{name: run-{name.partition('-')[0]}}}`",
        )


def _told(experiment: Experiment, case: Case) -> bytes:
    """What the pods find as `case.json`. Raises InputError for a secret in its words."""
    limits = phase_limits(experiment.limits)
    is_ours = not case.workload.is_under_torchrun
    trials = tuple(
        trial_order(
            TrialRequest(trial_id=f"t{number}", case=case, seed=experiment.seed), limits
        ).command
        for number in range(experiment.trials_per_launch if is_ours else 0)
    )
    about = {
        "broadgauge": __version__,
        "experiment": experiment.name,
        "key": case.key,
        "label": case.label,
        "case": case.model_dump(mode="json", exclude_defaults=True),
    }
    told = PodCase(about=about, trials=trials, meet_s=limits.measure_s)
    text = json.dumps(encode(told), indent=2, ensure_ascii=False) + "\n"
    if holds_token(text):
        raise InputError(
            f"{case.label}: a description or another word of it has the form of a token, and a "
            "ConfigMap would hold it",
            hint="take it out of the experiment",
        )
    return text.encode()


def _job_s(experiment: Experiment, case: Case) -> float:
    """About how long do its pods live, once they run?"""
    trials = 1 if case.workload.is_under_torchrun else experiment.trials_per_launch
    return experiment.launches * (start_s(case) + trials * trial_s(case))


def _not_in_pods(jobs: tuple[PodJob, ...]) -> Iterator[str]:
    """What a workload says of this machine."""
    told: dict[str, None] = {}
    for job in jobs:
        for key in in_running(job.case.workload).left_on_this_machine:
            told[f"`{key}` of {job.case.workload.name} is this machine's, and no pod has it"] = None
    yield from told
