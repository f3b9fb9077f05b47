"""What is a recommendation, and in which words does it show its arithmetic?"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from broadgauge.predict.answering.labels import tell_apart, told_beside_place
from broadgauge.predict.case import TrainingCase
from broadgauge.predict.prediction import Prediction
from broadgauge.specs.units import show_ratio, show_time

PAYS_RATIO = 0.10
"""A network, a NIC or a node that brings less than this is not worth its price, where nobody says
otherwise."""

SUFFICIENT_RATIO = 0.25
"""Of a step that may wait for a network that suffices: three quarters of the GPUs' time is used."""


class RecommendationRule(StrEnum):
    """What a recommendation is about."""

    SUFFICES = "network suffices"
    PAYS = "better network pays"
    LITTLE = "better network brings little"
    NICS = "more NICs or faster ones"
    SLOWER = "more nodes are slower"
    BATCH = "batch size"
    PLACE = "one node or several"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """What follows from predictions."""

    rule: RecommendationRule
    is_worth_it: bool
    """Does what the rule is about pay? Of SUFFICES: does even the best of the networks suffice?"""
    about: str
    """The network, or what else is chosen."""
    words: str
    arithmetic: tuple[str, ...]
    gain_ratio: float
    """Of two steps or rates, minus 1."""
    cautions: tuple[str, ...] = ()


def grouped(
    predictions: Sequence[Prediction], key: Callable[[TrainingCase], object]
) -> list[list[Prediction]]:
    found: dict[object, list[Prediction]] = {}
    for prediction in predictions:
        found.setdefault(key(prediction.case), []).append(prediction)
    return list(found.values())


def network_name(prediction: Prediction) -> str:
    fabric = prediction.case.fabric
    return fabric.name or fabric.transport


Told = Callable[[TrainingCase], str]
"""What tells a case from the others beside its cluster: `, global batch 256`, or nothing."""


def told_of(predictions: Sequence[Prediction]) -> Told:
    """Of each of these."""
    cases = [each.case for each in predictions]
    _, labels = tell_apart(cases, range(len(cases)))
    told = told_beside_place(cases, labels)
    found = {
        case: "".join(f", {each}" for each in words)
        for case, words in zip(cases, told, strict=True)
    }
    strategies = {case.strategy for case in cases}
    return lambda case: (f", {case.strategy}" if len(strategies) > 1 else "") + found[case]


def where(case: TrainingCase, told: Told = lambda _case: "") -> str:
    nodes = "1 node" if case.nodes == 1 else f"{case.nodes} nodes"
    return f"{case.model.name} on {nodes} of {case.gpus_per_node} {case.gpu}{told(case)}"


def step_words(prediction: Prediction) -> str:
    return show_time(prediction.step_time_s.value)


def network_step_words(prediction: Prediction) -> str:
    return f"{network_name(prediction)}: {exposed_words(prediction)}"


def waiting_ratio(prediction: Prediction) -> float:
    """Share of a step that waits for the network between nodes."""
    return prediction.parts.exposed_network_s / prediction.step_time_s.value


def exposed_words(prediction: Prediction) -> str:
    """`1.02 s a step over pod, of which 35 ms (3.5 %) wait for the network`."""
    waits = show_time(prediction.parts.exposed_network_s)
    share = show_ratio(waiting_ratio(prediction), 2)
    step = f"{step_words(prediction)} a step over {network_name(prediction)}"
    return f"{step}, of which {waits} ({share}) wait for the network"


def cautions(one: Prediction, other: Prediction) -> Iterator[str]:
    """Is the difference within what is not known?"""
    a, b = one.step_time_s, other.step_time_s
    if max(a.low, b.low) <= min(a.high, b.high) and abs(a.value / b.value - 1) > PAYS_RATIO:
        yield "the 80 % intervals overlap: measure before buying"
    yield from not_fitting(one, other)


def not_fitting(*predictions: Prediction) -> Iterator[str]:
    if any(not each.memory.is_fitting for each in predictions):
        yield "it does not fit in the GPUs' memory"
