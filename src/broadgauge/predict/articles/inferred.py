"""Which line rate does a published throughput imply? For networks whose rate no article states.

An article says how much slower a training was over a network, and seldom what the network carried.
The rate is looked for at which the example's own training, with its batch, strategy and shapes on
the article's GPUs, is predicted to be as much slower. That is no measurement of the article's
network: of batch and rate only the product follows from a throughput.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from broadgauge.predict.articles.one_length import of_one_length
from broadgauge.predict.articles.wanted_rates import (
    NO_LIMIT,
    ONE_NODE,
    PUBLISHED_STEP,
    WANTED,
    PublishedRatio,
    WantedRate,
)
from broadgauge.predict.asking.workload_case import fabric_of, training_case
from broadgauge.predict.case import Fabric, TrainingCase
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.kinds import packed_or_not
from broadgauge.predict.predictor import predict_table
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.machines.cluster import split_shape
from broadgauge.specs.networks.network import Network
from broadgauge.specs.units import show_rate

LEAST_GBPS, MOST_GBPS = 0.01, 10_000.0
"""Where a rate is looked for. At the most a step waits for no link any more."""
DIGITS = 3
"""Of a rate: enough for a ratio to 1 %, and not how well it is known."""
REACHED_RATIO = 1e-3
"""How near a single ratio must be met; else no finite rate gives it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredRate:
    """What one network would have to carry."""

    wanted: WantedRate
    rate_gbps: float
    """Of each NIC, with Ethernet headers, to DIGITS: the least error over all points."""
    predicted_ratios: tuple[float, ...]
    """At that rate, point by point."""
    alone_gbps: tuple[float | None, ...]
    """What each point alone would take; None: no finite rate gives it."""

    @property
    def words(self) -> str:
        """`rate_inferred_from` of the example."""
        wanted = self.wanted
        figures = "; ".join(point.figures for point in wanted.points)
        if len(wanted.points) == 1:
            found = f"the rate at which this training is predicted so on {wanted.gpu}"
        else:
            predicted = _listed([f"{ratio:.2f}" for ratio in self.predicted_ratios])
            published = _listed([f"{point.ratio:.2f}" for point in wanted.points])
            alone = _listed(
                ["none" if rate is None else show_rate(rate, 2) for rate in self.alone_gbps]
            )
            found = (
                f"no one rate gives them all on {wanted.gpu}; this one has the least error and "
                f"gives {predicted} times one node for {published}; each alone takes {alone}"
            )
        return " ".join(
            filter(
                None,
                (f"{figures}: {found}.", f"Assumed: {wanted.assumed}.", wanted.remark, CAVEAT),
            )
        )


CAVEAT = (
    "A throughput tells batch and rate together only, so this is no measurement of that network."
)


def inferred_rates(example: Experiment) -> tuple[InferredRate, ...]:
    """The rates of an example that carries an article's figures; none: it is no such example."""
    names = {network.name for network in example.networks}
    wanted = WANTED[example.name]() if example.name in WANTED else ()
    return tuple(inferred_rate(example, each) for each in wanted if each.network in names)


def inferred_rate(example: Experiment, wanted: WantedRate) -> InferredRate:
    """The rate with the least sum of squared errors, of logarithms, over all points."""
    rate_gbps = float(f"{_best(example, wanted, wanted.points):.{DIGITS}g}")
    here = np.array([rate_gbps])
    return InferredRate(
        wanted=wanted,
        rate_gbps=rate_gbps,
        predicted_ratios=tuple(
            float(_ratios(example, wanted, point.nodes, here)[0]) for point in wanted.points
        ),
        alone_gbps=tuple(_alone(example, wanted, point) for point in wanted.points),
    )


def _alone(example: Experiment, wanted: WantedRate, point: PublishedRatio) -> float | None:
    """The rate that gives this one; None: no finite rate does."""
    rate_gbps = _best(example, wanted, [point])
    missed = math.sqrt(_errors(example, wanted, [point], np.array([rate_gbps]))[0])
    return rate_gbps if missed < REACHED_RATIO else None


def _best(example: Experiment, wanted: WantedRate, points: Sequence[PublishedRatio]) -> float:
    """Where is the error least? Grids of logarithms, each around the best point of the last."""
    lowest, highest = low, high = math.log(LEAST_GBPS), math.log(MOST_GBPS)
    best = low
    for _ in range(4):
        grid = np.linspace(low, high, 121)
        best = float(grid[int(np.argmin(_errors(example, wanted, points, np.exp(grid))))])
        step = float(grid[1] - grid[0])
        low, high = max(lowest, best - step), min(highest, best + step)
    return math.exp(best)


def _errors(
    example: Experiment, wanted: WantedRate, points: Sequence[PublishedRatio], rates_gbps: Times
) -> Times:
    """Squared, of logarithms, all points together, at each rate."""
    logs = [
        np.log(_ratios(example, wanted, point.nodes, rates_gbps) / point.ratio) for point in points
    ]
    return np.asarray(np.sum(np.square(logs), axis=0))


def _listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return f"{', '.join(words[:-1])} and {words[-1]}"


def predicted_ratio(
    example: Experiment, gpu: str, network: str, nodes: int, over: str = ONE_NODE
) -> float:
    """Throughput over this network at the rate that the example gives it, over the reference's."""
    wanted = WantedRate(network=network, gpu=gpu, over=over, points=(), assumed="")
    rate_gbps = _network(example, network).rate_gbps
    assert rate_gbps is not None, network
    return float(_ratios(example, wanted, nodes, np.array([rate_gbps]))[0])


def _ratios(example: Experiment, wanted: WantedRate, nodes: int, rates_gbps: Times) -> Times:
    """Predicted throughput over the reference's, at each rate of a NIC."""
    network = _network(example, wanted.network)
    asked = [_case(example, wanted.gpu, nodes, _at(network, float(r))) for r in rates_gbps]
    if wanted.over == PUBLISHED_STEP:
        assert wanted.step_time_s is not None
        tokens = asked[0].global_batch * asked[0].seq_len
        return np.asarray(predict_table(asked).tokens_per_s / (tokens / wanted.step_time_s))
    if wanted.over == ONE_NODE:
        reference = _case(example, wanted.gpu, 1, None)
    elif wanted.over == NO_LIMIT:
        reference = _case(example, wanted.gpu, nodes, _at(network, MOST_GBPS))
    else:
        reference = _case(example, wanted.gpu, nodes, _network(example, wanted.over))
    tokens_per_s = predict_table([reference, *asked]).tokens_per_s
    return np.asarray(tokens_per_s[1:] / tokens_per_s[0])


def _at(network: Network, rate_gbps: float) -> Network:
    changed: Network = network.model_copy(update={"rate_gbps": rate_gbps})
    return changed


def _network(example: Experiment, name: str) -> Network:
    (found,) = (each for each in example.networks if each.name == name)
    assert isinstance(found, Network)
    return found


def _case(example: Experiment, gpu: str, nodes: int, network: Network | None) -> TrainingCase:
    """The example's training on so many of the article's nodes."""
    (train,) = filter(None, map(packed_or_not, example.workloads))
    ranks = next(ranks for _, ranks in map(split_shape, example.cluster.shapes))
    fabric = Fabric() if network is None else fabric_of(network.on_nodes(nodes))
    case = training_case(train, gpu=gpu, nodes=nodes, ranks_per_node=int(ranks), fabric=fabric)
    return of_one_length(case, train)
