"""Which cases does an experiment have? Workloads x shapes x networks, resolved."""

from broadgauge.engine.shapes import ResolvedCluster, Shape
from broadgauge.specs.case import Case
from broadgauge.specs.errors import ExperimentError, InputError, Problem
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.network import Network
from broadgauge.specs.workload import CollectivesWorkload, Workload

MOST_COLLECTIVE_ROWS = 160
"""Of one trial: some 335 bytes each, so that its record stays below 64 KiB."""


def expand_cases(
    experiment: Experiment, cluster: ResolvedCluster
) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """Every case once, by shape, workload and network in the file's order; and the notes."""
    _check(experiment)
    cases: dict[str, Case] = {}
    notes: list[str] = []
    for shape in cluster.shapes:
        for workload in experiment.workloads:
            for network in _networks(experiment, workload, shape):
                case = _case(experiment, cluster, shape=shape, workload=workload, network=network)
                if isinstance(workload, CollectivesWorkload) and case.world_size == 1:
                    notes.append(f"{case.label} is left out: one rank has no communication")
                    continue
                first = cases.setdefault(case.key, case)
                if first is not case:
                    notes.append(f"{case.label} is the same as {first.label}: it is run once")
    if not cases:
        raise InputError(
            "nothing is left to run: " + "; ".join(notes),
            hint="a shape with two ranks or more, such as `2x1` or `1x2`",
        )
    if experiment.networks and all(case.network is None for case in cases.values()):
        notes.append("no shape has several nodes: the networks are not used")
    return tuple(cases.values()), tuple(notes)


def _networks(
    experiment: Experiment, workload: Workload, shape: Shape
) -> tuple[Network | None, ...]:
    """The networks between this shape's nodes; None alone where there is one node."""
    if shape.nodes == 1 or experiment.platform == "local":
        return (None,)
    if workload.networks is None:
        return experiment.networks
    return tuple(network for network in experiment.networks if network.name in workload.networks)


def _case(
    experiment: Experiment,
    cluster: ResolvedCluster,
    *,
    shape: Shape,
    workload: Workload,
    network: Network | None,
) -> Case:
    of_network = {} if network is None else network.environment
    return Case(
        workload=workload,
        network=network,
        nodes=shape.nodes,
        ranks_per_node=shape.ranks_per_node,
        device=cluster.device,
        backend=cluster.backend,
        environment={**experiment.environment, **of_network, **workload.environment},
    )


def _check(experiment: Experiment) -> None:
    """Raises ExperimentError for trials too large for a record."""
    problems: list[Problem] = []
    for place, workload in enumerate(experiment.workloads):
        if isinstance(workload, CollectivesWorkload):
            rows = len(workload.ops) * len(workload.dtypes) * len(workload.sizes_bytes())
            if rows > MOST_COLLECTIVE_ROWS:
                message = (
                    f"{rows} measurements in one trial (ops x dtypes x sizes), "
                    f"and {MOST_COLLECTIVE_ROWS} fit in its record"
                )
                hint = "a larger `factor`, or the ops in two workloads"
                problems.append(Problem(f"workloads.{place}.sizes", message, hint))
    if problems:
        raise ExperimentError(problems)
