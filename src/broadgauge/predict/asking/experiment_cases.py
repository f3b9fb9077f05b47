"""Which trainings does an experiment file mean, on GPUs that need not be here?"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from broadgauge.catalog.catalog import Catalog
from broadgauge.predict.asking.combinations import AskedTrainings
from broadgauge.predict.asking.from_catalog import fabric_named, usual_gpus_per_node
from broadgauge.predict.asking.question import fault_of
from broadgauge.predict.asking.workload_case import fabric_of, training_case, why_unknown
from broadgauge.predict.case import Fabric, TrainingCase, own_gpu_of
from broadgauge.predict.kinds import left_out_words, training_of
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.machines.cluster import split_shape
from broadgauge.specs.networks.network import AnyNetwork, Network
from broadgauge.specs.workloads.workload import TrainWorkload


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacements:
    """What is taken in the place of what the file says; empty: as it says."""

    nodes: Sequence[int] = ()
    networks: Sequence[str] = ()
    """Of the catalog: `roce-400g`, `pod=0.48GB/s`."""
    gpus_per_node: Sequence[int] = ()


Shape = tuple[int, int]
"""Nodes, GPUs a node."""
NetworkAndFabric = tuple[AnyNetwork | None, Fabric]


def experiment_cases(
    experiment: Experiment, gpus: Sequence[str], instead: Replacements, catalog: Catalog
) -> AskedTrainings:
    """Every training of the file on each GPU. Raises InputError where there is none."""
    assumed = dict.fromkeys(_nics_words(instead, catalog))
    left_out: dict[str, int] = {}
    cases: dict[TrainingCase, None] = {}
    for gpu in (catalog.gpu(name).name for name in gpus):
        for case, reason in _all_cases(experiment, gpu, instead, catalog, assumed):
            fault = fault_of(case) if reason is None else (reason, None)
            if fault is None:
                cases[case] = None
            else:
                left_out[fault[0]] = left_out.get(fault[0], 0) + 1
    assumed |= dict.fromkeys(_inferred_words(experiment, cases))
    others = [each for each in experiment.workloads if training_of(each) is None]
    for workload in others:
        left_out[left_out_words(workload)] = 1
    if not cases:
        reasons = "; ".join(left_out)
        raise InputError(
            f"{experiment.name}: there is no training to predict: {reasons}",
            hint="a workload of `kind: train`; or ask by flags: --model llama3-8b",
        )
    return AskedTrainings(
        cases=tuple(cases),
        assumed=tuple(assumed),
        left_out=tuple(left_out.items()),
        network=next((case.fabric for case in cases if case.nodes > 1), None),
        tokens=None if experiment.cost is None else experiment.cost.tokens,
    )


def _nics_words(instead: Replacements, catalog: Catalog) -> Iterator[str]:
    for name in (each.partition("=")[0] for each in instead.networks):
        yield f"NICs a node: {catalog.network(name).nics} ({name})"


def _inferred_words(experiment: Experiment, cases: Iterable[TrainingCase]) -> Iterator[str]:
    """Which rates does the file itself call inferred?"""
    asked = {case.fabric.name for case in cases}
    names = [
        network.name
        for network in experiment.networks
        if isinstance(network, Network) and network.rate_inferred_from and network.name in asked
    ]
    if names:
        yield f"inferred rates, as the file says: {', '.join(names)}"


def _all_cases(
    experiment: Experiment,
    gpu: str,
    instead: Replacements,
    catalog: Catalog,
    assumed: dict[str, None],
) -> Iterator[tuple[TrainingCase, str | None]]:
    """Each case, and why the file leaves it out, if it does."""
    for workload in filter(None, map(training_of, experiment.workloads)):
        for shape in _shapes(experiment, gpu, instead, catalog, assumed):
            for network, fabric in _ways(experiment, workload, shape, instead, catalog):
                case = training_case(
                    workload, gpu=gpu, nodes=shape[0], ranks_per_node=shape[1], fabric=fabric
                )
                case = replace(case, own_gpu=own_gpu_of(catalog.gpu(gpu)))
                reason = _skipped(experiment, workload, network, shape)
                yield case, reason or why_unknown(workload, *shape)
                if isinstance(network, Network):
                    assumed |= dict.fromkeys(_network_words(network, fabric))


def _network_words(network: Network, fabric: Fabric) -> Iterator[str]:
    yield f"NICs a node: {network.num_nics} ({network.name})"
    if fabric.node_gbps is None:
        yield f"{network.name} has no rate: its transport's is guessed"
    elif network.rate_gbps is None:
        yield f"what a transport usually carries of the NICs' line rate ({network.name})"


def _shapes(
    experiment: Experiment,
    gpu: str,
    instead: Replacements,
    catalog: Catalog,
    assumed: dict[str, None],
) -> list[Shape]:
    """`auto` is a whole node; `all` are the ranks of the largest shape."""
    texts = [split_shape(text) for text in experiment.cluster.shapes]
    usual, why = usual_gpus_per_node(catalog.gpu(gpu), catalog)
    found: dict[Shape, None] = {}
    for whole in instead.gpus_per_node or (usual,):
        if instead.nodes:
            numbered = [(nodes, str(whole)) for nodes in instead.nodes]
        else:
            numbered = [(nodes, ranks.replace("auto", str(whole))) for nodes, ranks in texts]
        if whole == usual and numbered != texts and not instead.gpus_per_node:
            assumed[f"GPUs a node: {usual} ({why})"] = None
        largest = max((n * int(ranks) for n, ranks in numbered if ranks.isdigit()), default=whole)
        for nodes, ranks in numbered:
            found[nodes, int(ranks) if ranks.isdigit() else max(1, largest // nodes)] = None
    return list(found)


def _ways(
    experiment: Experiment,
    workload: TrainWorkload,
    shape: Shape,
    instead: Replacements,
    catalog: Catalog,
) -> list[NetworkAndFabric]:
    """The networks between the nodes; one node has none."""
    if shape[0] == 1:
        return [(None, Fabric())]
    if instead.networks:
        return [(None, fabric_named(name, catalog)) for name in instead.networks]
    named = [
        network.on_nodes(shape[0])
        for network in experiment.networks
        if isinstance(network, Network)
        and (workload.networks is None or network.name in workload.networks)
    ]
    return [(network, fabric_of(network)) for network in named]


def _skipped(
    experiment: Experiment, workload: TrainWorkload, network: AnyNetwork | None, shape: Shape
) -> str | None:
    """Which rule of the file leaves this case out? None: no rule."""
    case = Case(
        workload=workload,
        network=network,
        nodes=shape[0],
        ranks_per_node=shape[1],
        device="cuda",
        backend="nccl",
        environment={},
    )
    return next((rule.reason for rule in experiment.skip_if if rule.matches(case)), None)
