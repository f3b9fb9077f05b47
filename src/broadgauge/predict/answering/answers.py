"""What does a command answer? Predictions of its cases, put beside each other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from broadgauge.predict.answering.cost import usd_per_gigatoken
from broadgauge.predict.answering.knee import BandwidthCurve, bandwidth_curve
from broadgauge.predict.answering.labels import tell_apart
from broadgauge.predict.answering.settings import Key, scaling_ratios, setting_of
from broadgauge.predict.case import TrainingCase
from broadgauge.predict.facts.knowledge import Knowledge
from broadgauge.predict.prediction import Prediction
from broadgauge.predict.predictor import PredictionTable, predict, predict_table

MOST_CURVES = 4


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

    @property
    def exposed_s(self) -> float:
        """Waiting for communication with no compute running."""
        parts = self.prediction.parts
        return parts.exposed_network_s + parts.exposed_intra_node_s


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


Prices = Callable[[TrainingCase], float | None]
"""US dollars for a GPU and hour; None: not known."""


def answer(
    cases: Sequence[TrainingCase],
    prices: Prices,
    knowledge: Knowledge | None = None,
    *,
    most: int | None = None,
    with_curves: bool = True,
) -> Answers:
    """Predictions of all cases in their order, or of the `most` best. Raises InputError."""
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
        Answer(
            prediction=prediction,
            label=label,
            scaling_ratio=ratio,
            usd_per_gigatoken=usd_per_gigatoken(
                prediction.tokens_per_s, prediction.case.gpus, prices(prediction.case)
            ),
        )
        for prediction, label, ratio in zip(predictions, labels, scaling, strict=True)
    )
    fitting = [each.case for each in predictions if each.memory.is_fitting]
    asked = _curve_cases(fitting) if with_curves else []
    curves = tuple(
        bandwidth_curve(case, lambda many: predict_table(many, knowledge).evaluation.step_s)
        for case in asked[:MOST_CURVES]
    )
    return Answers(
        answers=answers,
        num_cases=len(cases),
        common=common,
        curves=curves,
        num_more_curves=max(0, len(asked) - MOST_CURVES),
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
