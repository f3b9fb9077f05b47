"""What does a program read of a ladder?"""

from dataclasses import asdict

from broadgauge.advise.ladders.ladder import Ladder
from broadgauge.advise.ladders.next_step import next_step
from broadgauge.predict.sensitivity.ladder import LadderAnswer, Sensitivity
from broadgauge.report.words.ladder import answers
from broadgauge.specs.estimate import Estimate

Json = dict[str, object]


def ladder_json(ladder: Ladder) -> Json:
    """One ladder; what is not known is null with the reason beside it."""
    step = next_step(ladder)
    return {
        "label": ladder.label,
        "metric": ladder.metric,
        "is_inverse_of_metric": ladder.is_inverse,
        "rates_are_what": ladder.rates_words or None,
        "why_unknown": ladder.why or None,
        **(_found(ladder.found) if ladder.found is not None else {}),
        "answers": dict(answers(ladder)),
        "counted_bytes": _estimate(ladder.counted_bytes),
        "counted_how": ladder.counted_how or None,
        "step_without_communication_s": _estimate(ladder.off_step_s),
        "network_costs": [asdict(cost) for cost in ladder.costs],
        "predicted": {
            "rungs": [asdict(each) for each in ladder.predicted],
            **(_found(ladder.predicted_found) if ladder.predicted_found is not None else {}),
        },
        "disagreements": list(ladder.disagreements),
        "not_in_the_curve": [
            {"network": each.summary.case.network_name, "why": each.why, "step_s": each.step_s}
            for each in ladder.left_out
        ],
        "rates_that_would_show_more_gbps": list(step.rates_gbps),
        "launches_that_would_show_more": step.launches,
        "notes": list(ladder.notes),
    }


def _found(found: Sensitivity) -> Json:
    return {
        "form": found.curve.form.value,
        "possible_forms": [form.value for form in found.possible_forms],
        "curve": asdict(found.curve),
        "critical_bytes": _answer(found.critical_bytes),
        "fast_bytes": _answer(found.fast_bytes),
        "base_s": _answer(found.base_s),
        "curve_base_s": _estimate(found.curve_base_s),
        "enough_gbps": _answer(found.enough_gbps),
        "knee_gbps": _answer(found.knee_gbps),
        "gain_ratio": found.gain_ratio,
        "is_extrapolated": found.is_extrapolated,
        "rungs": [asdict(rung) | {"off_ratio": rung.off_ratio} for rung in found.rungs],
    }


def _answer(answer: LadderAnswer) -> Json:
    return {
        "estimate": _estimate(answer.estimate),
        "at_least": answer.at_least,
        "at_most": answer.at_most,
        "why_unknown": answer.why or None,
        "lack": None if answer.lack is None else answer.lack.value,
    }


def _estimate(estimate: Estimate | None) -> Json | None:
    return None if estimate is None else asdict(estimate)
