"""How is a prediction handed to another program? As JSON, and as lines of CSV."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from broadgauge.advise.recommendations.recommendation import Recommendation
from broadgauge.catalog.catalog import Replaced
from broadgauge.predict.answering.answers import Answer, Answers
from broadgauge.predict.answering.knee import BandwidthCurve
from broadgauge.predict.answering.simple_estimates import explain
from broadgauge.predict.case import TrainingCase
from broadgauge.predict.prediction import Prediction
from broadgauge.report.predict.words import label_words, widened_words

MOST_FITTED = 40
"""Cases for which it is asked what would make them fit: those that miss by least."""


def to_json(
    answers: Answers,
    assumed: Sequence[str],
    notes: Sequence[str],
    found: Sequence[Recommendation] = (),
    replaced: Sequence[Replaced] = (),
    *,
    is_explained: bool = False,
) -> str:
    """One object. Seconds, bytes and ratios, with the unit in each name."""
    document = {
        "format": "broadgauge prediction",
        "common": dict(answers.common),
        "assumed": list(assumed),
        "notes": list(notes),
        "replaced": [asdict(each) for each in replaced],
        "cases": [_case(answer, is_explained=is_explained) for answer in answers.answers],
        "fits_with": _fits_with(answers),
        "nearest": [
            {"instead_of": label_words(over.answer), **_case(each, is_explained=is_explained)}
            for over in answers.over
            for each in over.nearest
        ],
        "bandwidth": [_curve(curve) for curve in answers.curves],
        "recommendations": [asdict(each) for each in found],
    }
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _fits_with(answers: Answers) -> list[dict[str, Any]]:
    """Of each case that does not fit: what would make it fit; null: nothing that was tried."""
    return [
        {
            "label": label_words(over.answer),
            "change": over.words[0] if over.words else None,
            "changes": list(over.words),
        }
        for over in answers.over
    ]


def to_csv(answers: Answers) -> str:
    """A header and a line a case; behind them those near one that does not fit, with `change`."""
    nearest = [each for over in answers.over for each in over.nearest]
    rows = [flat(answer) for answer in (*answers.answers, *nearest)]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _case(answer: Answer, *, is_explained: bool) -> dict[str, Any]:
    prediction = answer.prediction
    memory = prediction.memory
    return {
        "label": label_words(answer),
        "question": _question(prediction.case),
        "step_time_s": asdict(prediction.step_time_s),
        "interval_ratio": 0.8,
        "parts": asdict(prediction.parts),
        "overlapped_communication_s": prediction.overlapped_communication_s,
        "exposed_communication_s": answer.exposed_s,
        "network_bytes": prediction.network_bytes,
        "tokens_per_s": prediction.tokens_per_s,
        "mfu_ratio": prediction.mfu_ratio,
        "flops_per_token": prediction.flops_per_token,
        "scaling_ratio": answer.scaling_ratio,
        "bottleneck": str(prediction.bound),
        "most_uncertain": prediction.dominant or None,
        "narrowed_by": prediction.narrowed_by or None,
        "is_calibrated": prediction.is_calibrated,
        "is_outside": prediction.is_outside,
        "widened": _widened(prediction),
        "memory": {
            **asdict(memory),
            "total_bytes": memory.total_bytes,
            "is_fitting": memory.is_fitting,
        },
        "usd_per_gigatoken": answer.usd_per_gigatoken,
        "change": None if answer.setting is None else answer.setting.words,
        "training": _training(answer),
        **({"explanation": asdict(explain(prediction))} if is_explained else {}),
    }


def _training(answer: Answer) -> dict[str, Any] | None:
    """The whole of it; null: nobody said how many tokens."""
    whole = answer.whole
    return None if whole is None else asdict(whole)


def _widened(prediction: Prediction) -> dict[str, Any] | None:
    """For which kind of training, by how much, and why."""
    if prediction.widened is None:
        return None
    return {**asdict(prediction.widened), "why": widened_words(prediction)}


def _question(case: TrainingCase) -> dict[str, Any]:
    """All of the case; curves of the fabric by their number only."""
    question = asdict(case)
    question["fabric"]["curves"] = len(case.fabric.curves)
    if case.own_gpu is not None:
        question["own_gpu"] = case.own_gpu.model_dump(mode="json", by_alias=True)
    return question


def _curve(curve: BandwidthCurve) -> dict[str, Any]:
    return {
        "question": _question(curve.case),
        "carried_gbps": list(curve.rates_gbps),
        "step_time_s": list(curve.step_times_s),
        "floor_s": curve.floor_s,
        "knee_gbps": curve.knee_gbps,
    }


def flat(answer: Answer) -> dict[str, object]:
    """The same on one line, without what is only of use to a program."""
    prediction, case = answer.prediction, answer.prediction.case
    interval, parts, memory = prediction.step_time_s, prediction.parts, prediction.memory
    return {
        "model": case.model.name,
        "gpu": case.gpu,
        "nodes": case.nodes,
        "gpus_per_node": case.gpus_per_node,
        "network": case.fabric.name,
        "strategy": case.strategy,
        "data_parallel": case.data_parallel,
        "tensor_parallel": case.tensor_parallel,
        "pipeline_parallel": case.pipeline_parallel,
        "context_parallel": case.context_parallel,
        "seq_len": case.seq_len,
        "global_batch": case.global_batch,
        "micro_batch": case.micro_batch,
        "precision": case.precision,
        "recompute": case.recompute,
        "framework": case.framework,
        "step_time_s": interval.value,
        "step_time_low_s": interval.low,
        "step_time_high_s": interval.high,
        "tokens_per_s": prediction.tokens_per_s,
        "mfu_ratio": prediction.mfu_ratio,
        "scaling_ratio": answer.scaling_ratio,
        "exposed_network_s": parts.exposed_network_s,
        "exposed_intra_node_s": parts.exposed_intra_node_s,
        "bottleneck": str(prediction.bound),
        "memory_bytes": memory.total_bytes,
        "memory_capacity_bytes": memory.capacity_bytes,
        "is_fitting": "yes" if memory.is_fitting else "no",
        "usd_per_gigatoken": answer.usd_per_gigatoken,
        "lora": "yes" if case.lora else "no",
        "quantized_base": "yes" if case.quantized_base else "no",
        "cpu_offload": "yes" if case.cpu_offload else "no",
        "change": "" if answer.setting is None else answer.setting.words,
        **_flat_training(answer),
    }


def _flat_training(answer: Answer) -> dict[str, object]:
    """Days are for people: seconds and dollars, with their 80 % intervals."""
    whole = answer.whole
    time = None if whole is None else whole.time_s
    usd = None if whole is None else whole.usd
    return {
        "training_tokens_count": None if whole is None else whole.tokens_count,
        "training_time_s": None if time is None else time.value,
        "training_time_low_s": None if time is None else time.low,
        "training_time_high_s": None if time is None else time.high,
        "training_usd": None if usd is None else usd.value,
        "training_low_usd": None if usd is None else usd.low,
        "training_high_usd": None if usd is None else usd.high,
    }
