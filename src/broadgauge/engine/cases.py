"""Which cases does an experiment have? Workloads x shapes x networks x storages x backends, all
resolved."""

from collections.abc import Iterator, Sequence

from broadgauge.engine.backends import why_not_run
from broadgauge.engine.kinds.registry import in_engine
from broadgauge.engine.networks import networks_here
from broadgauge.engine.selections import idle_notes
from broadgauge.engine.shapes import ResolvedCluster, Shape
from broadgauge.specs.case import Backend, Case
from broadgauge.specs.errors import ExperimentError, InputError, Problem
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.networks.network import AnyNetwork, Network, NodePath
from broadgauge.specs.storages.storage import Storage
from broadgauge.specs.workloads.workload import Workload


def expand_cases(
    experiment: Experiment, clusters: Sequence[ResolvedCluster]
) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """Every case once, by platform, shape, workload, network and backend in the file's order; and
    the notes.

    Raises InputError where the experiment needs what is not here, or where nothing is left of it.
    """
    notes: list[str] = []
    all_cases: list[Case] = []
    for cluster in clusters:
        _check(experiment, cluster)
        networks, network_notes = networks_here(experiment, cluster)
        notes += (*network_notes, *_elsewhere(experiment, cluster))
        all_cases += _all_cases(experiment, cluster, networks)
    matrix = tuple(all_cases)
    cases: dict[str, Case] = {}
    for case in matrix:
        reason = _why_left_out(experiment, case)
        if reason is not None:
            notes.append(f"{case.label} is left out: {reason}")
            continue
        first = cases.setdefault(case.key, case)
        if first is not case:
            notes.append(f"{case.label} is the same as {first.label}: it is run once")
    if not cases:
        raise InputError(
            "nothing is left to run: " + "; ".join(notes), hint=_what_to_change(experiment, matrix)
        )
    if any(isinstance(each, Network) for each in experiment.networks) and not any(
        case.link for case in cases.values()
    ):
        notes.append("no shape has several nodes: the networks between nodes are not used")
    notes += idle_notes(experiment, matrix, tuple(cases.values()))
    return tuple(cases.values()), tuple(dict.fromkeys(notes))


def _all_cases(
    experiment: Experiment, cluster: ResolvedCluster, networks: tuple[AnyNetwork, ...]
) -> Iterator[Case]:
    for shape in cluster.shapes:
        for _, workload in _workloads(experiment, cluster):
            for network in _networks(networks, workload, shape):
                for storage in _storages(experiment, workload):
                    for backend in cluster.backends:
                        way = (network, storage, backend)
                        yield _case(experiment, cluster, shape, workload, way)


def _workloads(experiment: Experiment, cluster: ResolvedCluster) -> Iterator[tuple[int, Workload]]:
    """Those that run on this platform, each with its place in the file."""
    for place, workload in enumerate(experiment.workloads):
        if workload.is_for((cluster.platform,)):
            yield place, workload


def _elsewhere(experiment: Experiment, cluster: ResolvedCluster) -> Iterator[str]:
    """What is said of those that don't."""
    here = [place for place, _ in _workloads(experiment, cluster)]
    for place, workload in enumerate(experiment.workloads):
        if place not in here:
            where = " and ".join(workload.platforms or ()) or "no platform"
            yield f"workload {workload.name} is left out on {cluster.platform}: it is for {where}"


def _networks(
    networks: tuple[AnyNetwork, ...], workload: Workload, shape: Shape
) -> tuple[AnyNetwork | None, ...]:
    """The networks between this shape's nodes, or the paths inside the one node.

    None alone where there is nothing to choose: one rank, or no path named.
    """
    named = tuple(
        each for each in networks if workload.networks is None or each.name in workload.networks
    )
    if shape.nodes > 1:
        return tuple(each.on_nodes(shape.nodes) for each in named if isinstance(each, Network))
    paths = tuple(each for each in named if isinstance(each, NodePath))
    return paths if paths and shape.world_size > 1 else (None,)


def _storages(experiment: Experiment, workload: Workload) -> tuple[Storage | None, ...]:
    """None alone where the workload asks for none."""
    names = workload.named_storages
    if names == ():
        return (None,)
    return tuple(each for each in experiment.storages if names is None or each.name in names)


def _case(
    experiment: Experiment,
    cluster: ResolvedCluster,
    shape: Shape,
    workload: Workload,
    way: tuple[AnyNetwork | None, Storage | None, Backend],
) -> Case:
    network, storage, backend = way
    of_network = {} if network is None else network.environment
    return Case(
        workload=workload,
        network=network,
        nodes=shape.nodes,
        ranks_per_node=shape.ranks_per_node,
        device=cluster.device,
        backend=backend,
        environment={**experiment.environment, **of_network, **workload.environment},
        storage=storage,
        platform=cluster.platform if len(experiment.platforms) > 1 else None,
    )


def _why_left_out(experiment: Experiment, case: Case) -> str | None:
    """Is this a case that nobody can or wants to run? None: it is run."""
    for rule in experiment.skip_if:
        if rule.matches(case):
            return rule.reason
    return why_not_run(case)


def _what_to_change(experiment: Experiment, matrix: tuple[Case, ...]) -> str:
    """Where every case was left out: by which rules, or else for want of ranks?"""
    meant = [[rule.matches(case) for case in matrix] for rule in experiment.skip_if]
    alone = next((place for place, of_rule in enumerate(meant) if matrix and all(of_rule)), None)
    if alone is not None:
        return f"skip_if[{alone}] matches every case: a narrower rule"
    if not matrix and any(workload.platforms is not None for workload in experiment.workloads):
        return "`platforms` of a workload: another platform beside those there are"
    if any(any(of_rule) for of_rule in meant):
        places = [f"skip_if[{place}]" for place, of_rule in enumerate(meant) if any(of_rule)]
        return f"narrower rules than {' and '.join(places)}, or other cases beside them"
    return "a shape with two ranks or more, such as `2x1` or `1x2`"


def _check(experiment: Experiment, cluster: ResolvedCluster) -> None:
    """Raises ExperimentError for trials too large for a record, and for what no case here can."""
    problems: list[Problem] = []
    for place, workload in _workloads(experiment, cluster):
        problems += in_engine(workload).problems(f"workloads.{place}", cluster)
    if problems:
        raise ExperimentError(problems)
