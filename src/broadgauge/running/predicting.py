"""What is asked of the predictor, by flags or from Python, and what does it answer?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from broadgauge.advise.recommendations.network_choice import recommend
from broadgauge.advise.recommendations.recommendation import Recommendation
from broadgauge.catalog.catalog import Catalog
from broadgauge.predict.answering.answers import MOST_OVER, Answers, answer
from broadgauge.predict.answering.known import KnownSystem, read_known
from broadgauge.predict.answering.on_storages import on_storages, split_storage
from broadgauge.predict.answering.prices import prices_of
from broadgauge.predict.asking.combinations import AskedTrainings, expand
from broadgauge.predict.asking.experiment_cases import Replacements, experiment_cases
from broadgauge.predict.case import TrainingCase
from broadgauge.predict.facts.knowledge import Knowledge
from broadgauge.predict.predictor import predict_table
from broadgauge.running.experiments import load
from broadgauge.specs.errors import InputError

MOST_SHOWN = 40
"""Cases that are all answered; of more, the best."""
BEST_SHOWN = 20
PAYS_RATIO = 0.1
EXAMPLE = (
    "broadgauge predict --model llama3-8b --gpu h100-sxm --nodes 2,4,8 --network pod,roce-400g"
)
OF_CLUSTER = ("gpu", "gpus_per_node", "nodes", "network")
"""What may be said beside an experiment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Trainings, on a cluster that need not be there."""

    properties: dict[str, Sequence[Any]]
    """As `predict/asking/combinations.py` has it."""
    catalog: Catalog
    experiment: str | None = None
    """Whose trainings are meant: a file, or the name of an example."""
    system_file: Path | None = None
    measured_file: Path | None = None
    usd_per_gpu_hour: float | None = None
    """Instead of the catalog's price."""
    tokens_count: float | None = None
    """Of a whole training, whose days and dollars are wanted; None: as an experiment says."""
    pays_ratio: float = PAYS_RATIO
    """What a better network must bring to be recommended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the predictor says, and what it took for granted."""

    answers: Answers
    assumed: tuple[str, ...]
    notes: tuple[str, ...]
    recommendations: tuple[Recommendation, ...]
    cases: tuple[TrainingCase, ...]
    """All that were asked for."""
    knowledge: Knowledge | None


def reply_to(
    question: Question,
    *,
    is_cut: bool = True,
    with_curves: bool = True,
    with_sweeps: bool = True,
    most_over: int = MOST_OVER,
) -> Reply:
    """Predictions of all cases; `is_cut`: of very many the best.

    `with_sweeps`: recommendations also say from where on a network would pay. `most_over`: of how
    many cases that don't fit the nearest settings are looked for. Raises InputError.
    """
    catalog = question.catalog
    known = read_known(
        question.system_file,
        question.measured_file,
        question.properties,
        catalog,
        has_experiment=question.experiment is not None,
    )
    properties, storages = split_storage(question.properties, catalog)
    asked = _asked(replace(question, properties=properties), known)
    if storages is not None:
        cases = on_storages(asked.cases, storages, known.knowledge)
        told = (*asked.assumed, *storages.assumed)
        asked = replace(asked, cases=cases, assumed=told)
    tokens = asked.tokens if question.tokens_count is None else question.tokens_count
    prices, price_words = prices_of(asked.cases, catalog, question.usd_per_gpu_hour)
    notes = [f"{number} × left out: {why}" for why, number in asked.left_out]
    answers = answer(
        asked.cases,
        prices,
        known.knowledge,
        most=BEST_SHOWN if is_cut and len(asked.cases) > MOST_SHOWN else None,
        with_curves=with_curves,
        tokens_count=tokens,
        network=asked.network,
        most_over=most_over,
    )
    is_whole = len(answers.answers) == answers.num_cases <= MOST_SHOWN
    found = _recommendations(answers, known, question, with_sweeps=with_sweeps) if is_whole else ()
    return Reply(
        answers=answers,
        assumed=(*asked.assumed, *price_words, *known.words, *_of_training(tokens)),
        notes=(*notes, *catalog.replaced_words()),
        recommendations=found,
        cases=asked.cases,
        knowledge=known.knowledge,
    )


def _of_training(tokens: float | None) -> tuple[str, ...]:
    """What days and dollars leave out."""
    if tokens is None:
        return ()
    return ("days and dollars without restarts, evaluation or a wait for GPUs",)


def _recommendations(
    answers: Answers, known: KnownSystem, question: Question, *, with_sweeps: bool
) -> tuple[Recommendation, ...]:
    """What follows of those that fit."""
    predictions = [each.prediction for each in answers.answers]
    predictions = [each for each in predictions if each.memory.is_fitting]
    if not predictions:
        return ()
    if not with_sweeps:
        return recommend(predictions, pays_ratio=question.pays_ratio)
    return recommend(
        predictions,
        lambda cases: predict_table(cases, known.knowledge).evaluation.step_s,
        pays_ratio=question.pays_ratio,
    )


def _asked(question: Question, known: KnownSystem) -> AskedTrainings:
    """The trainings meant. Raises InputError."""
    properties = dict(question.properties)
    if known.gpu is not None:
        _check_measured(properties, known.gpu, question.catalog)
    if known.gpus_per_node is not None:
        properties["gpus_per_node"] = (known.gpus_per_node,)
    if question.experiment is not None:
        return _of_experiment(question.experiment, properties, question.catalog)
    if "model" not in properties:
        raise InputError("no training is named", hint=EXAMPLE)
    if "gpu" not in properties and "node" not in properties:
        raise InputError(
            "no GPU is named", hint="--gpu h100-sxm, or --node p5.48xlarge, for example"
        )
    return expand(properties, question.catalog)


def _check_measured(properties: dict[str, Sequence[Any]], gpu: str, catalog: Catalog) -> None:
    """A system file speaks of its own GPU, which it also names. Raises InputError."""
    if "node" not in properties:
        properties.setdefault("gpu", (gpu,))
    named = [catalog.gpu(name).name for name in properties.get("gpu", ())]
    others = [name for name in named if name != gpu]
    others += [
        catalog.node(n).gpu for n in properties.get("node", ()) if catalog.node(n).gpu != gpu
    ]
    if others:
        raise InputError(
            f"the system file is of {gpu}, and {others[0]} is asked",
            hint="leave --system out, or ask for its own GPU",
        )


def _of_experiment(
    name: str, properties: dict[str, Sequence[Any]], catalog: Catalog
) -> AskedTrainings:
    """The trainings of a file, on the cluster that was asked for. Raises InputError."""
    others = [field for field in properties if field not in OF_CLUSTER]
    if others:
        raise InputError(
            f"{others[0].replace('_', ' ')} is for the experiment {name} to say",
            hint="--gpu, --gpus-per-node, --nodes and --network go with an experiment",
        )
    if "gpu" not in properties:
        raise InputError(f"{name} names no GPU", hint=f"broadgauge predict {name} --gpu h100-sxm")
    instead = Replacements(
        nodes=properties.get("nodes", ()),
        networks=properties.get("network", ()),
        gpus_per_node=properties.get("gpus_per_node", ()),
    )
    return experiment_cases(load(name, ()).experiment, properties["gpu"], instead, catalog)
