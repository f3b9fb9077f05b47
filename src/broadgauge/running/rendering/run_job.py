"""What do the pods of a run have in common, whichever case's launch is in them?"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from broadgauge.agent import bundle
from broadgauge.manifests.job import gpus_of
from broadgauge.manifests.memory_need import MemoryNeed
from broadgauge.manifests.names import (
    JOB,
    MOST_LABEL_CHARACTERS,
    MOST_NAME_CHARACTERS,
    RUN,
    word_of,
)
from broadgauge.manifests.nothing_secret import refuse_secrets
from broadgauge.manifests.run_job import RunJob
from broadgauge.manifests.user_files import user_files
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
from broadgauge.running.rendering.host_memory import host_memory
from broadgauge.running.rendering.pod_attachments import attach_for_run
from broadgauge.running.rendering.pod_environment import pod_cpus
from broadgauge.running.rendering.pod_preparation import prepare_for_pods
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.kubernetes.settings import JobKind, Kubernetes, SecretRef

KEEP_S = 900.0
"""GPUs are held meanwhile: long enough to open a laptop again."""
MEET_S = 1800.0
"""Others may wait for a node, or for their image, long after the first."""


def run_job_of(
    loaded: LoadedExperiment,
    cases: Sequence[Case],
    *,
    kind: JobKind,
    namespace: str | None,
    run: str,
    name: str,
    keep_s: float = KEEP_S,
    meet_s: float = MEET_S,
    program: bytes | None = None,
) -> RunJob:
    """With a `partial` of the first two, the `MakeRunJob` of a platform. `cases`: of this
    experiment, those that run on Kubernetes, all in the same pods. `program`: the zip file that
    these run; None: `run_program`. Raises InputError."""
    experiment = loaded.experiment
    _check(experiment)
    assert len(name) <= MOST_NAME_CHARACTERS, name
    known: Kubernetes = experiment.kubernetes
    settings = known.model_copy(update={"job": kind, "namespace": namespace})
    networks = attach_for_run(settings, cases, name, loaded.folder)
    refuse_gpus(networks.attachments.resources, settings)
    secrets = _secrets(known, cases)
    word = known.name or word_of(experiment.name)
    feeds = any(is_fed(known, case) for case in cases)
    return RunJob(
        name=name,
        prefix=name,
        experiment=word[:MOST_LABEL_CHARACTERS].strip("-"),
        marks={RUN: run, JOB: name},
        shared_marks={RUN: run, JOB: name},
        run=run,
        cases=tuple(cases),
        kind=kind,
        settings=settings,
        num_pods=max(case.nodes for case in cases),
        ranks_per_pod=max(case.ranks_per_node for case in cases),
        gpus_per_pod=max(gpus_of(settings, case) for case in cases),
        volumes=tuple(
            each
            for each in known.volumes
            if any(each in known.volumes_of(case.workload.name) for case in cases)
        ),
        secrets=secrets,
        looked_up=_looked_up(known, cases, secrets),
        program=run_program() if program is None else program,
        files=user_files(_named_files(settings, cases, loaded.folder), settings, loaded.folder),
        cpus=_cpus(experiment, cases),
        memory_need=_memory(settings, cases),
        attachments=networks.attachments,
        definitions=networks.definitions,
        needs_locked_memory=networks.needs_locked_memory,
        address_map=networks.address_map,
        topology=networks.topology,
        preparation=prepare_for_pods(known, word, loaded.folder) if feeds else None,
        keep_s=keep_s,
        meet_s=meet_s,
    )


def run_program() -> bytes:
    """The zip file that pods of a run have: agent and leader."""
    return bundle.build(bundle.RUN_POD_PARTS)


def _check(experiment: Experiment) -> None:
    """Raises InputError."""
    check_workloads(experiment)
    if experiment.kubernetes.allocation == "per_case":
        raise InputError(
            "kubernetes.allocation: `per_case`, and a run has one job for all of its cases",
            hint="a run for each network that excludes another, or `broadgauge render`, which "
            "writes a job a case",
        )


def _named_files(settings: Kubernetes, cases: Sequence[Case], folder: Path) -> Iterator[str]:
    """Of the user's, words that may be files of the experiment's folder. Raises InputError for one
    that would be missed, and for a secret in what the orders say."""
    for case in cases:
        kind = in_running(case.workload)
        refuse_secrets(case, kind.own_words)
        check_storage(settings, case)
        own, subfolder = where(settings, kind.folder, case)
        if own.working_folder is None:
            check_needed(case, kind.needed_files, folder / subfolder)
            yield from files_below(subfolder, kind.named_files)


def _secrets(settings: Kubernetes, cases: Sequence[Case]) -> dict[str, SecretRef]:
    """That the experiment has in Secrets of the cluster."""
    return {
        name: ref for case in cases for name, ref in settings.secrets_of(case.workload.name).items()
    }


def _looked_up(
    settings: Kubernetes, cases: Sequence[Case], refs: dict[str, SecretRef]
) -> tuple[str, ...]:
    """Secrets that come from whoever runs it. Raises InputError for one that comes from both."""
    found: dict[str, None] = {}
    for case in cases:
        of_cluster = settings.secrets_of(case.workload.name)
        for name, value in case.environment.items():
            if isinstance(value, str) or name in of_cluster:
                continue
            if name in refs:
                raise InputError(
                    f"kubernetes.secrets.{name}.workloads: {case.workload.name} is not among them "
                    "and has the variable from your environment, and the pods of a run have one "
                    "value of it",
                    hint="the same Secret for both, or another name for one",
                )
            found[name] = None
    return tuple(found)


def _cpus(experiment: Experiment, cases: Sequence[Case]) -> float | None:
    """No limit where one case has none: GPUs would wait for it."""
    each = [pod_cpus(experiment, case) for case in cases]
    known = [cpus for cpus in each if cpus is not None]
    return max(known) if len(known) == len(each) else None


def _memory(settings: Kubernetes, cases: Sequence[Case]) -> MemoryNeed:
    """Of the case that needs most: launches come one after another."""
    needs = [host_memory(settings, case) for case in cases]
    most = max(needs, key=lambda need: need.known_bytes)
    unknown = dict.fromkeys(what for need in needs for what in need.unknown)
    return MemoryNeed(parts=most.parts, unknown=tuple(unknown))
