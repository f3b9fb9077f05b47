"""Are answers put beside each other rightly: scaling, what they share, the best of many?"""

import pytest

from broadgauge.catalog.catalog import shipped_catalog
from broadgauge.predict.answering.answers import Answers, answer
from broadgauge.predict.answering.labels import tell_apart
from broadgauge.predict.asking.combinations import expand

PROPERTIES = {
    "model": ["llama3-8b"],
    "gpu": ["h100-sxm"],
    "network": ["pod", "roce-400g*8"],
    "nodes": [1, 2, 4],
}


@pytest.fixture(scope="module")
def answers() -> Answers:
    return answer(expand(PROPERTIES, shipped_catalog()).cases, lambda case: 2.0)


def test_scaling_is_over_the_smallest_cluster(answers: Answers) -> None:
    alone, *others = answers.answers
    assert alone.scaling_ratio is None
    for each in others:
        prediction = each.prediction
        a_gpu = prediction.tokens_per_s / prediction.case.gpus
        base = alone.prediction.tokens_per_s / alone.prediction.case.gpus
        assert each.scaling_ratio == pytest.approx(a_gpu / base)


def test_what_varies_labels_and_what_does_not_is_common(answers: Answers) -> None:
    assert answers.common["model"] == "llama3-8b"
    assert answers.common["GPUs a node"] == "8"
    assert [dict(each.label) for each in answers.answers][1] == {"network": "pod", "nodes": "2"}
    # The global batch grows with the cluster: it is told as an assumption, not in each label.
    assert all("global batch" not in each.label for each in answers.answers)


def test_the_curve_is_of_the_largest_cluster(answers: Answers) -> None:
    (curve,) = answers.curves
    assert (curve.case.nodes, curve.case.fabric.name) == (4, "roce-400g*8")
    assert list(curve.step_times_s) == sorted(curve.step_times_s, reverse=True)


def test_of_many_the_best_that_fit_are_shown() -> None:
    properties = {**PROPERTIES, "model": ["llama3-8b", "llama3-70b"], "micro_batch": [1.0, 64.0]}
    cases = expand({**properties, "recompute": ["none"]}, shipped_catalog()).cases
    whole = answer(cases, lambda case: None, with_curves=False)
    best = answer(cases, lambda case: None, most=3, with_curves=False)
    fitting = [each.prediction for each in whole.answers if each.prediction.memory.is_fitting]
    assert 0 < len(fitting) < len(cases)
    rates = sorted((each.tokens_per_s for each in fitting), reverse=True)
    assert [each.prediction.tokens_per_s for each in best.answers] == pytest.approx(rates[:3])
    assert best.num_cases == len(cases)
    by_case = {each.prediction.case: each.scaling_ratio for each in whole.answers}
    for each in best.answers:
        assert each.scaling_ratio == by_case[each.prediction.case]


def test_cases_without_a_difference_are_named_by_their_size() -> None:
    cases = expand({"model": ["gpt2"], "gpu": ["a40"]}, shipped_catalog()).cases
    _, labels = tell_apart(cases, [0])
    assert labels == [{"nodes": "1"}]


def test_a_case_scales_against_the_same_recomputation() -> None:
    """One node without recomputation is the base of two without, and with of with."""
    properties = {
        **PROPERTIES,
        "network": ["roce-400g*8"],
        "nodes": [1, 2],
        "recompute": ["none", "full"],
    }
    cases = expand(properties, shipped_catalog()).cases
    answers = answer(cases, lambda case: None, with_curves=False).answers
    rates = {
        (each.prediction.case.recompute, each.prediction.case.nodes): each.prediction.tokens_per_s
        for each in answers
    }
    for each in answers:
        case = each.prediction.case
        if case.nodes == 2:
            expected = rates[case.recompute, 2] / 2 / rates[case.recompute, 1]
            assert each.scaling_ratio == pytest.approx(expected)


def test_a_case_scales_against_the_same_passes() -> None:
    properties = {**PROPERTIES, "network": ["roce-400g"], "nodes": [1, 2], "accumulation": [1, 16]}
    answers = answer(
        expand(properties, shipped_catalog()).cases, lambda case: None, with_curves=False
    )
    by = {(a.prediction.case.nodes, a.prediction.case.micro_batches): a for a in answers.answers}
    for passes in (1, 16):
        rates = [by[nodes, passes].prediction.tokens_per_s / nodes for nodes in (1, 2)]
        assert by[2, passes].scaling_ratio == pytest.approx(rates[1] / rates[0])


def test_no_label_says_none() -> None:
    properties = {**PROPERTIES, "nodes": [2], "strategy": ["fsdp", "megatron"]}
    cases = expand(properties, shipped_catalog()).cases
    _, labels = tell_apart(cases, range(len(cases)))
    assert all("ZeRO" not in label for label in labels)  # it follows from the strategy
    properties = {
        **PROPERTIES,
        "nodes": [2],
        "strategy": ["megatron"],
        "gradient_bytes": [None, 2.0],
    }
    cases = expand(properties, shipped_catalog()).cases
    _, labels = tell_apart(cases, range(len(cases)))
    assert {label["bytes of a gradient"] for label in labels} == {"as usual", "2"}


def test_what_does_not_fit_has_no_curve() -> None:
    properties = {**PROPERTIES, "model": ["llama3-405b"]}
    answers = answer(expand(properties, shipped_catalog()).cases, lambda case: None)
    assert not any(each.prediction.memory.is_fitting for each in answers.answers)
    assert answers.curves == ()
