"""What will be run, on which platforms, in which order? Pure: no clock, no environment."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from broadgauge.engine.against import (
    Against,
    baseline_cases,
    longer_limits,
    num_launches,
    only_in_baseline,
)
from broadgauge.engine.cases import expand_cases
from broadgauge.engine.expected_time import trial_s
from broadgauge.engine.kinds.registry import in_engine
from broadgauge.engine.schedule import (
    CoresPerNode,
    group_cases,
    schedule,
    side_by_side,
)
from broadgauge.engine.shapes import resolve_cluster
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.kubernetes.storage_places import words_in_pods
from broadgauge.specs.machines.cluster import Cluster
from broadgauge.specs.plan import BaselineRun, Plan
from broadgauge.specs.platforms import Devices, PlatformKind
from broadgauge.specs.time_limits import TimeLimits
from broadgauge.specs.units import show_time
from broadgauge.specs.workloads.training_config import TrainingConfig

DevicesByPlatform = Mapping[PlatformKind, Devices]
MOST_TRIALS = 100_000
"""At a second each more than a day, and a run folder of a few GB."""


def make_plan(
    experiment: Experiment,
    devices: DevicesByPlatform,
    *,
    working_folder: str = ".",
    against: Against | None = None,
) -> Plan:
    """What does this experiment mean on its platforms, with another's cases beside it if asked?

    `devices` of each of them. Raises InputError where it can't be.
    """
    own = _expanded(experiment, devices)
    trials = experiment.trials_per_launch
    groups = group_cases(own.cases, trials, own.cores_per_node)
    cases, notes = own.cases, own.notes
    launches, limits = experiment.launches, experiment.limits
    baseline: BaselineRun | None = None
    if against is not None:
        beside = _beside(own, against, devices, working_folder)
        launches, launch_notes = num_launches(experiment, against.experiment)
        baseline = against.run.model_copy(update={"only_there": beside.left_out})
        limits = longer_limits(limits, against.experiment.limits)
        first = len(groups)
        groups += group_cases(beside.cases, trials, beside.cores_per_node, first_number=first)
        cases, notes = (*cases, *beside.cases), (*notes, *beside.notes, *launch_notes)
    _check_size(len(cases) * launches * trials)
    planned = schedule(side_by_side(groups), launches, experiment.seed)
    return Plan(
        experiment_name=experiment.name,
        description=experiment.description,
        seed=experiment.seed,
        limits=limits,
        cases=cases,
        launches=planned,
        expected_s=round(sum(launch.expected_s for launch in planned), 3),
        working_folder=working_folder,
        hypotheses=experiment.hypotheses,
        published=experiment.published,
        cost=experiment.cost,
        baseline=baseline,
        notes=(
            *notes,
            *_model_notes(cases),
            *_storage_notes(cases),
            *_pod_storage_notes(experiment, cases),
            *_inferred_notes(cases),
            *_config_notes(cases),
            *_guess_notes(cases, trials),
            *_limit_notes(cases, limits),
        ),
    )


def _check_size(num_trials: int) -> None:
    """A typing error in a number must not fill the memory with a schedule."""
    if num_trials > MOST_TRIALS:
        raise InputError(
            f"{num_trials:,} trials (cases x launches x trials a launch) are more than "
            f"the {MOST_TRIALS:,} that one run takes",
            hint="fewer launches or cases; two experiments are two files",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expanded:
    """An experiment's cases on its platforms, and what to know of them."""

    cases: tuple[Case, ...]
    cores_per_node: CoresPerNode
    notes: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    """Labels of a baseline's cases that are not run."""


def _expanded(experiment: Experiment, devices: DevicesByPlatform) -> _Expanded:
    is_only = len(experiment.platforms) == 1
    clusters = [
        resolve_cluster(experiment.cluster, platform, devices[platform], is_only=is_only)
        for platform in experiment.platforms
    ]
    cases, notes = expand_cases(experiment, clusters)
    of_clusters = dict.fromkeys(note for cluster in clusters for note in cluster.notes)
    return _Expanded(
        cases=cases,
        cores_per_node={
            (None if is_only else cluster.platform, str(shape)): cluster.cores_per_node(shape)
            for cluster in clusters
            for shape in cluster.shapes
        },
        notes=(*of_clusters, *notes),
    )


def _beside(
    own: _Expanded, against: Against, devices: DevicesByPlatform, working_folder: str
) -> _Expanded:
    """The baseline's part of the plan. Raises InputError."""
    try:
        baseline = _expanded(against.experiment, devices)
    except InputError as error:
        message = f"the baseline {against.run.run} can't be run here: {error.message}"
        raise InputError(message, hint=error.hint) from error
    is_same_folder = against.run.working_folder == working_folder
    cases, notes = baseline_cases(
        own.cases,
        baseline.cases,
        is_same_folder=is_same_folder,
        is_gated=against.run.fail_above_ratio is not None,
    )
    known = [f"baseline: {note}" for note in baseline.notes if note not in own.notes]
    return _Expanded(
        cases=cases,
        cores_per_node=baseline.cores_per_node,
        notes=(*against.notes, *known, *notes),
        left_out=only_in_baseline(own.cases, baseline.cases),
    )


def without_emulation(experiment: Experiment, emulated: Devices) -> Experiment:
    """What of an experiment can run where nodes can't be emulated? Its other platforms' part."""
    others = tuple(platform for platform in experiment.platforms if platform != "emulated")
    if others in ((), ("local",)):
        return on_local_platform(experiment, emulated)
    rest: Experiment = experiment.model_copy(
        update={"platform": others if len(others) > 1 else others[0]}
    )
    return rest


def on_local_platform(experiment: Experiment, emulated: Devices) -> Experiment:
    """What of an experiment can run where nodes can't be emulated? Its one-node shapes.

    Where it has none: the ranks of its largest shape, on one node. `emulated`: what those nodes
    would have had.
    """
    shapes = resolve_cluster(experiment.cluster, "emulated", emulated).shapes
    on_one_node = [str(shape) for shape in shapes if shape.nodes == 1]
    if not on_one_node:
        on_one_node = [f"1x{max(shape.world_size for shape in shapes)}"]
    cluster = {**experiment.cluster.model_dump(exclude_unset=True), "shapes": tuple(on_one_node)}
    local: Experiment = experiment.model_copy(
        update={"platform": "local", "cluster": Cluster.model_validate(cluster)}
    )
    return local


def _model_notes(cases: tuple[Case, ...]) -> tuple[str, ...]:
    """Which known models are trained, and with how many of their layers? Each text once."""
    words = ((case.workload.name, case.workload.model_in_words) for case in cases)
    return tuple(dict.fromkeys(f"{name}: {model}" for name, model in words if model is not None))


def _storage_notes(cases: tuple[Case, ...]) -> tuple[str, ...]:
    """Which storages are not what their name may say? Each text once."""
    storages = (case.storage for case in cases if case.storage is not None)
    words = ((f"storage {each.name}", each.what_it_is) for each in storages)
    return tuple(dict.fromkeys(f"{name}: {what}" for name, what in words if what is not None))


def _pod_storage_notes(experiment: Experiment, cases: tuple[Case, ...]) -> tuple[str, ...]:
    """Which storages are no volume of the user's in pods? Each text once."""
    if "kubernetes" not in experiment.platforms:
        return ()
    words = (
        (each.storage.name, words_in_pods(each.storage, experiment.kubernetes, each.workload.name))
        for each in cases
        if each.storage is not None and each.platform in (None, "kubernetes")
    )
    texts = (f"storage {name} in pods: {what}" for name, what in words if what is not None)
    return tuple(dict.fromkeys(texts))


def _inferred_notes(cases: tuple[Case, ...]) -> tuple[str, ...]:
    """Which emulated rates are nobody's statement, and what do they come from? Each text once."""
    named: dict[str, dict[str, None]] = {}
    for link in (case.link for case in cases):
        if link is not None and link.rate_inferred_from is not None:
            named.setdefault(link.rate_inferred_from, {})[link.name] = None
    return tuple(
        f"rate of {', '.join(names)} is inferred: {text.strip()}" for text, names in named.items()
    )


def _config_notes(cases: tuple[Case, ...]) -> Iterator[str]:
    """Where does a training's config.json say something else than what is run?"""
    shapes: dict[tuple[str, str], dict[str, None]] = {}
    modules: dict[str, None] = {}
    for case in cases:
        config, module = case.workload.read_config, case.workload.ignored_module
        if config is None:
            continue
        if not _is_as_said(case, config):
            shapes.setdefault((config.file, config.shape_words), {})[case.shape] = None
        if module is not None:
            modules[f"{config.file} names {module}: `command` is run instead"] = None
    for (file, said), others in shapes.items():
        yield f"{file} says {said}: cases with another shape are {', '.join(others)}"
    yield from modules


def _is_as_said(case: Case, config: TrainingConfig) -> bool:
    return config.nnodes in (None, str(case.nodes)) and (
        config.nproc_per_node in (None, str(case.ranks_per_node))
    )


def _guess_notes(cases: tuple[Case, ...], trials_per_launch: int) -> tuple[str, ...]:
    """What should the owner of a command know of its times and trials?"""
    guessed = [case for case in cases if not in_engine(case.workload).is_duration_known]
    if not guessed:
        return ()
    names = dict.fromkeys(f"`{case.workload.name}`" for case in guessed)
    who = ", ".join(names) + (" is a command" if len(names) == 1 else " are commands")
    longest_s = max(trial_s(case) for case in guessed)
    notes = [f"{who} of yours: {show_time(longest_s)} a launch is a guess"]
    if trials_per_launch > 1:
        notes.append(f"{who}: one trial a launch, not {trials_per_launch}")
    return tuple(notes)


def _limit_notes(cases: tuple[Case, ...], limits: TimeLimits) -> Iterator[str]:
    """Which warm-ups may be ended as too long, as their times may be wrong by a factor of two?"""
    longest_s: dict[str, float] = {}
    for case in cases:
        warm_up_s = in_engine(case.workload).warm_up_s(case)
        if 2 * warm_up_s > limits.warm_up_s:
            longest_s[case.workload.name] = max(warm_up_s, longest_s.get(case.workload.name, 0.0))
    for name, seconds in longest_s.items():
        yield (
            f"{name}: its warm-up takes about {show_time(seconds)}, which "
            f"`limits: {{warm_up_s: {limits.warm_up_s:g}}}` may end"
        )
