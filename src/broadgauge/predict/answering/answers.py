"""What does a command answer? Predictions of its cases, put beside each other."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from broadgauge.predict.answering.cost import WholeTraining, usd_per_gigatoken, whole_training
from broadgauge.predict.answering.knee import BandwidthCurve, bandwidth_curve
from broadgauge.predict.answering.labels import tell_apart
from broadgauge.predict.answering.making_fit import Setting, nearest_fits
from broadgauge.predict.answering.settings import Key, scaling_ratios, setting_of
from broadgauge.predict.case import Fabric, TrainingCase
from broadgauge.predict.facts.knowledge import Knowledge
from broadgauge.predict.prediction import Prediction
from broadgauge.predict.predictor import PredictionTable, predict, predict_table

MOST_CURVES = 4
MOST_OVER = 3


Prices = Callable[[TrainingCase], float | None]
"""US dollars for a GPU and hour; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One case's prediction, and what it is beside the others."""

    prediction: Prediction
    label: Mapping[str, str]
    """What tells it from the others: property → value, as printed."""
    scaling_ratio: float | None
    """Tokens/s a GPU over those of the smallest size of the same case; None: it is the smallest."""
    usd_per_gigatoken: float | None
    """None: no price is known."""
    whole: WholeTraining | None = None
    """None: nobody said how many tokens."""
    setting: Setting | None = None
    """It is near one that was asked for and does not fit; None: it was asked for itself."""

    @property
    def exposed_s(self) -> float:
        """Waiting for communication with no compute running."""
        parts = self.prediction.parts
        return parts.exposed_network_s + parts.exposed_intra_node_s


@dataclass(frozen=True, slots=True, kw_only=True)
class DoesNotFit:
    """A case that does not fit, and the nearest that do."""

    answer: Answer
    nearest: tuple[Answer, ...]
    """Those that are not among the answers anyway."""
    words: tuple[str, ...]
    """What would make it fit; empty: nothing that was tried is enough."""
    has_network: bool
    """Was one named that would join more nodes?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is asked of all cases alike."""

    prices: Prices
    tokens_count: float | None
    network: Fabric | None
    most_over: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """All of them."""

    answers: tuple[Answer, ...]
    num_cases: int
    """Of which `answers` are all, or the best."""
    common: Mapping[str, str]
    """What all cases share: property → value, as printed."""
    curves: tuple[BandwidthCurve, ...]
    """Step time against bandwidth, of the largest cluster of each setting that fits."""
    num_more_curves: int
    """Settings beyond MOST_CURVES."""
    over: tuple[DoesNotFit, ...] = ()
    """Those that don't fit, the first of them that miss by least."""


def answer(
    cases: Sequence[TrainingCase],
    prices: Prices,
    knowledge: Knowledge | None = None,
    *,
    most: int | None = None,
    with_curves: bool = True,
    tokens_count: float | None = None,
    network: Fabric | None = None,
    most_over: int = MOST_OVER,
) -> Answers:
    """Predictions of all cases in their order, or of the `most` best. Raises InputError.

    `tokens_count`: of a whole training, whose days and dollars are told. `network`: what would join
    nodes where a case that does not fit has one. `most_over`: of how many that don't fit the
    nearest settings are looked for.
    """
    asked = _Asked(prices=prices, tokens_count=tokens_count, network=network, most_over=most_over)
    is_cut = most is not None and len(cases) > most
    if is_cut:
        table = predict_table(cases, knowledge)
        rates = table.tokens_per_s
        shown = _best(table, most or 0)
        predictions = predict([cases[index] for index in shown], knowledge)
    else:
        predictions = predict(cases, knowledge)
        rates = np.array([each.tokens_per_s for each in predictions])
        shown = list(range(len(cases)))
    common, labels = tell_apart(cases, shown)
    scaling = scaling_ratios(cases, rates, shown)
    answers = tuple(
        _answer(prediction, asked, label=label, scaling_ratio=ratio)
        for prediction, label, ratio in zip(predictions, labels, scaling, strict=True)
    )
    fitting = [each.case for each in predictions if each.memory.is_fitting]
    curved = _curve_cases(fitting) if with_curves else []
    curves = tuple(
        bandwidth_curve(case, lambda many: predict_table(many, knowledge).evaluation.step_s)
        for case in curved[:MOST_CURVES]
    )
    return Answers(
        answers=answers,
        num_cases=len(cases),
        common=common,
        curves=curves,
        num_more_curves=max(0, len(curved) - MOST_CURVES),
        over=tuple(_over(answers, asked, knowledge)),
    )


def _answer(
    prediction: Prediction,
    asked: _Asked,
    *,
    label: Mapping[str, str],
    scaling_ratio: float | None = None,
    setting: Setting | None = None,
) -> Answer:
    case, tokens = prediction.case, asked.tokens_count
    price = asked.prices(case)
    return Answer(
        prediction=prediction,
        label=label,
        scaling_ratio=scaling_ratio,
        usd_per_gigatoken=usd_per_gigatoken(prediction.tokens_per_s, case.gpus, price),
        whole=None if tokens is None else whole_training(prediction, tokens, price),
        setting=setting,
    )


def over_bytes(answer: Answer) -> float:
    """By how much it does not fit."""
    use = answer.prediction.memory
    return max(0.0, use.total_bytes - use.capacity_bytes)


def _over(
    answers: Sequence[Answer], asked: _Asked, knowledge: Knowledge | None
) -> Iterator[DoesNotFit]:
    """Each setting that fits stands with the first case that it is near to."""
    known = {answer.prediction.case for answer in answers}
    over = [answer for answer in answers if not answer.prediction.memory.is_fitting]
    for answer in sorted(over, key=over_bytes)[: asked.most_over]:
        found = nearest_fits(answer.prediction.case, asked.network)
        new = [each for each in found if each.case not in known]
        known.update(each.case for each in new)
        predictions = predict([each.case for each in new], knowledge) if new else []
        nearest = tuple(
            _answer(prediction, asked, label=answer.label, setting=setting)
            for prediction, setting in zip(predictions, new, strict=True)
        )
        yield DoesNotFit(
            answer=answer,
            nearest=nearest,
            words=tuple(each.words for each in found),
            has_network=asked.network is not None,
        )


def _best(table: PredictionTable, most: int) -> list[int]:
    """The cases that fit, by tokens/s; where none does, those that miss by least."""
    over_bytes = table.memory.total_bytes - table.memory.capacity_bytes
    is_fitting = over_bytes <= 0
    if not is_fitting.any():
        order = np.argsort(over_bytes, kind="stable")
    else:
        rates = np.where(is_fitting, table.tokens_per_s, 0.0)
        order = np.argsort(-rates, kind="stable")[: int(is_fitting.sum())]
    return [int(index) for index in order[:most]]


def _curve_cases(cases: Sequence[TrainingCase]) -> list[TrainingCase]:
    """The largest cluster of each setting that has several nodes, over its fastest network."""
    largest: dict[Key, TrainingCase] = {}
    for case in cases:
        if case.nodes < 2:
            continue
        setting = setting_of(case)
        if setting not in largest or _rank(case) > _rank(largest[setting]):
            largest[setting] = case
    return list(largest.values())


def _rank(case: TrainingCase) -> tuple[int, float]:
    return case.nodes, case.fabric.node_gbps or 0.0
