"""Which files run an experiment on a cluster, whoever applies them? No cluster is asked, and
nothing of this machine but the experiment's own files."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from broadgauge.engine.backlog import Backlog
from broadgauge.engine.plan import make_plan
from broadgauge.manifests.attachments import attachments_file
from broadgauge.manifests.claims import claims_file
from broadgauge.manifests.files import ManifestFile, Rendered
from broadgauge.manifests.labels import JobKind, job_word
from broadgauge.manifests.notes import notes_on
from broadgauge.manifests.prepare import prepare_file
from broadgauge.manifests.rbac import facts_file, rights_file
from broadgauge.manifests.readme import JobFolder, readme_file
from broadgauge.manifests.rendering import job_files
from broadgauge.manifests.request import LONGEST_NAME
from broadgauge.messages.leader import Job, TakeJobs
from broadgauge.platforms.kubernetes.devices import kubernetes_devices
from broadgauge.platforms.kubernetes.job_place import JobPlace
from broadgauge.platforms.kubernetes.requests import JobMaker
from broadgauge.platforms.kubernetes.running_job import order_bytes
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.launch_plan import Programs
from broadgauge.platforms.led.orders import job_of, secret_names
from broadgauge.platforms.supervised import trial_order
from broadgauge.running.experiments import LoadedExperiment
from broadgauge.running.host_memory import host_memory
from broadgauge.specs.case import Case
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.plan import Plan, PlannedLaunch

ON_KUBERNETES = "platform=kubernetes"
"""A `--set` text: whatever platform the file names, its faces of Kubernetes are rendered."""
ALL_CASES = "all-cases"
LINGER_S = 5.0
"""Nobody who applies files brings further orders: pods end when all is run."""
_ONE_BY_ONE = (
    "each case has a job of its own (`allocation: per_case`): they are applied one after another, "
    "and their launches are not paired"
)
_OF_PYTORCH_JOBS = (
    "the rights are those of a PyTorchJob, since no cluster was asked which kind it has: `--job` "
    "names another"
)
_LONGEST_WORD = 30
"""Of a name that is followed by numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Allocation:
    """The cases of one job, and what it is called."""

    word: str
    """Its folder: `all-cases`, `train-2x8-vnic`."""
    name: str
    cases: tuple[Case, ...]


def render_experiment(loaded: LoadedExperiment, kind: JobKind | None = None) -> Rendered:
    """Networks, storage, and the jobs, in the order to apply.

    `kind`: instead of the experiment's own; `auto` is a PyTorchJob, since no cluster is asked.
    Raises InputError.
    """
    plan, jobs = _jobs(loaded, kind)
    notes = dict.fromkeys(note for job in jobs for note in notes_on(job.request))
    if len(jobs) > 1:
        notes[_ONE_BY_ONE] = None
    files = (*_shared(jobs), *(file for job in jobs for file in _below(job)))
    readme = readme_file(jobs, tuple(notes))
    return Rendered(files=(*files, readme), notes=(*plan.notes, *notes))


def render_rights(loaded: LoadedExperiment, kind: JobKind | None = None) -> Rendered:
    """The least that who runs it needs, and what tells more of the cluster. Raises InputError."""
    _, jobs = _jobs(loaded, kind)
    request = jobs[0].request
    is_guessed = kind is None and loaded.experiment.kubernetes.job == "auto"
    notes = (_OF_PYTORCH_JOBS,) if is_guessed else ()
    return Rendered(files=(rights_file(request), facts_file(request)), notes=notes)


def _jobs(loaded: LoadedExperiment, kind: JobKind | None) -> tuple[Plan, list[JobFolder]]:
    """What is planned, and the jobs that it is. Raises InputError."""
    experiment = loaded.experiment
    devices = kubernetes_devices(experiment)
    plan = make_plan(experiment, {"kubernetes": devices}, working_folder=str(loaded.folder))
    own = experiment.kubernetes.job
    chosen = kind or ("pytorchjob" if own == "auto" else own)
    jobs = [
        _job_folder(experiment, plan, each, loaded.folder, chosen)
        for each in _allocations(experiment, plan)
    ]
    return plan, jobs


def _allocations(experiment: Experiment, plan: Plan) -> list[_Allocation]:
    """One job for all cases, or one for each."""
    name = job_word(experiment.name, LONGEST_NAME)
    if experiment.allocation == "one":
        return [_Allocation(word=ALL_CASES, name=name, cases=plan.cases)]
    words = [_slug(case.label) for case in plan.cases]
    return [
        _Allocation(
            word=word if words.count(word) == 1 else f"{word}-{number}",
            name=f"{job_word(experiment.name, _LONGEST_WORD)}-{number}",
            cases=(case,),
        )
        for number, (word, case) in enumerate(zip(words, plan.cases, strict=True), start=1)
    ]


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _job_folder(
    experiment: Experiment, plan: Plan, allocation: _Allocation, folder: Path, kind: JobKind
) -> JobFolder:
    """Raises InputError."""
    own = set(secret_names(allocation.cases)) - set(experiment.kubernetes.secrets)
    maker = JobMaker(
        experiment,
        allocation.cases,
        LaunchFolders(logs=folder, working=folder),
        tuple(sorted(own)),
        host_memory,
    )
    place = JobPlace(
        context=None,
        namespace=experiment.kubernetes.namespace or "",
        run=job_word(experiment.name, LONGEST_NAME),
        name=allocation.name,
        kind=kind,
        number=0,
    )
    keys = {case.key for case in allocation.cases}
    launches = [each for each in plan.launches if each.trials[0].case_key in keys]
    backlog = Backlog(plan, ())
    jobs = tuple(_job(backlog, launch, maker, place) for launch in launches)
    orders = order_bytes(TakeJobs(generation=0, jobs=jobs))
    request = replace(maker.request(place, orders), linger_s=LINGER_S)
    return JobFolder(path=f"40-job/{allocation.word}", request=request)


def _job(backlog: Backlog, launch: PlannedLaunch, maker: JobMaker, place: JobPlace) -> Job:
    request = backlog.request(launch, launch.launch_id)
    return job_of(request, lambda case: maker.seats(case, place), trial_order, Programs())


def _shared(jobs: list[JobFolder]) -> list[ManifestFile]:
    """What is applied before the jobs: networks of each; claims and what fills them once."""
    found: list[ManifestFile] = []
    for job in jobs:
        networks = attachments_file(job.request)
        if networks is not None:
            word = job.path.rpartition("/")[2]
            path = networks.path if len(jobs) == 1 else f"20-networks/{word}.yaml"
            found.append(replace(networks, path=path))
    once = (claims_file(jobs[0].request), prepare_file(jobs[0].request))
    return [*found, *(each for each in once if each is not None)]


def _below(job: JobFolder) -> list[ManifestFile]:
    return [replace(each, path=f"{job.path}/{each.path}") for each in job_files(job.request)]
