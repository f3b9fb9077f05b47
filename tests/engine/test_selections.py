"""Proves specs/selector.py in the plan: what `skip_if` leaves out, and what speaks of no case."""

from typing import Any

import pytest
from tests.engine.making import COLLECTIVES, TRAIN, a_machine, an_experiment, devices_of

from broadgauge.engine.plan import make_plan
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.plan import Plan

NETWORKS = [{"name": "slow-a", "rate_gbps": 0.1}, {"name": "slow-b", "rate_gbps": 0.2}]
PATH = {"name": "loopback", "path": "sockets"}
MATRIX = {
    "networks": [*NETWORKS, {"name": "reference"}, PATH],
    "workloads": [TRAIN, {**COLLECTIVES, "name": "small"}],
    "cluster": {"shapes": ["1x1", "1x2", "2x1", "2x2"], "backend": "gloo"},
}


def planned(**changes: Any) -> Plan:
    return make_plan(an_experiment(**{**MATRIX, **changes}), devices_of(a_machine()))


def labels(plan: Plan) -> set[str]:
    return {case.label for case in plan.cases}


@pytest.mark.parametrize(
    ("rule", "is_meant"),
    [
        ({"workload": "small"}, lambda case: case.workload.name == "small"),
        ({"workload": "s*"}, lambda case: case.workload.name == "small"),
        ({"network": "slow-*"}, lambda case: case.plain_network_name.startswith("slow-")),
        ({"network": "slow-?"}, lambda case: case.plain_network_name.startswith("slow-")),
        ({"network": ["slow-a", "r*"]}, lambda c: c.plain_network_name in "slow-a reference"),
        ({"network": "one node"}, lambda case: case.network is None),
        ({"network": "loopback"}, lambda case: case.path is not None),
        ({"shape": "2x1"}, lambda case: case.shape == "2x1"),
        ({"shape": "1x*"}, lambda case: case.nodes == 1),
        ({"backend": "gloo", "nodes": 1}, lambda case: case.nodes == 1),
        ({"nodes": 2}, lambda case: case.nodes == 2),
        ({"nodes": [1, 2], "workload": "train"}, lambda case: case.workload.name == "train"),
        ({"ranks_per_node": 2}, lambda case: case.ranks_per_node == 2),
        ({"world_size": 2}, lambda case: case.world_size == 2),
        (
            {"world_size": 2, "network": "slow-a", "workload": "train"},
            lambda c: c.label == "train 2x1 slow-a",
        ),
    ],
)
def test_a_rule_leaves_out_what_matches_all_of_its_keys(
    rule: dict[str, Any], is_meant: Any
) -> None:
    everything = planned()
    left = planned(skip_if=[rule])
    meant = {case.label for case in everything.cases if is_meant(case)}
    assert meant
    assert labels(left) == labels(everything) - meant
    noted = {note.split(" is left out")[0] for note in left.notes if "`skip_if` names it" in note}
    assert meant <= noted
    assert not any("matches no case" in note for note in left.notes)


def test_the_reason_is_the_authors() -> None:
    plan = planned(skip_if=[{"shape": "2x2", "reason": "four ranks swamp two cores"}])
    assert "train 2x2 reference is left out: four ranks swamp two cores" in plan.notes


def test_any_of_several_rules_is_enough() -> None:
    plan = planned(skip_if=[{"nodes": 2}, {"workload": "small"}])
    assert {case.label for case in plan.cases} == {"train 1x1 one node", "train 1x2 loopback"}


@pytest.mark.parametrize(
    "rule", [{"workload": "trian"}, {"network": "SLOW-*"}, {"nodes": 3}, {"backend": "nccl"}]
)
def test_a_rule_about_nothing_is_noted(rule: dict[str, Any]) -> None:
    plan = planned(skip_if=[{"shape": "2x2"}, rule])
    (note,) = [note for note in plan.notes if note.startswith("skip_if")]
    assert note.startswith("skip_if[1] matches no case: ")


def test_a_rule_whose_cases_another_rule_left_out_is_not_idle() -> None:
    plan = planned(skip_if=[{"nodes": 2}, {"shape": "2x2"}])
    assert not any("matches no case" in note for note in plan.notes)


def test_nothing_left_is_an_error_with_the_reasons() -> None:
    with pytest.raises(InputError, match=r"nothing is left to run: .*too slow"):
        planned(skip_if=[{"workload": "*", "reason": "too slow"}])


@pytest.mark.parametrize(
    ("rules", "changes", "hint"),
    [
        ([{"shape": "8x8"}, {"workload": "*"}], {}, "skip_if[1] matches every case: a narrower"),
        ([{"nodes": 1}, {"nodes": 2}], {}, "narrower rules than skip_if[0] and skip_if[1]"),
        (
            [],
            {"cluster": {"shapes": ["1x1"], "device": "cpu"}, "workloads": [COLLECTIVES]},
            "a shape with two ranks or more",
        ),
    ],
)
def test_nothing_left_names_what_to_change(
    rules: list[dict[str, Any]], changes: dict[str, Any], hint: str
) -> None:
    with pytest.raises(InputError) as refused:
        planned(skip_if=rules, **changes)
    assert (refused.value.hint or "").startswith(hint)
    assert "left out: left out" not in refused.value.message


def a_hypothesis(**changes: Any) -> dict[str, Any]:
    known = {"name": "h1", "statement": "x", "at_most": 1, "cases": {"network": "slow-*"}}
    return {**known, "over": {"network": "reference"}, **changes}


def a_figure(**changes: Any) -> dict[str, Any]:
    case = {"workload": "train", "network": "slow-a", "shape": "2x1"}
    known = {"label": "l", "metric": "step_time_s", "value": 1, "source": "s", "cases": case}
    return {**known, **changes}


def idle(plan: Plan) -> list[str]:
    return [note for note in plan.notes if " matches " in note]


def test_selectors_that_match_are_not_noted() -> None:
    assert idle(planned(hypotheses=[a_hypothesis()], published=[a_figure()])) == []


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        (
            {"hypotheses": [a_hypothesis(cases={"network": "fast"})]},
            "hypothesis h1: `cases` matches no case that is run: network fast",
        ),
        (
            {"hypotheses": [a_hypothesis(over={"network": "slow-a", "shape": "4x1"})]},
            "hypothesis h1: `over` matches no case that is run: network slow-a, shape 4x1",
        ),
        (
            {"hypotheses": [a_hypothesis()], "skip_if": [{"network": "reference"}]},
            "hypothesis h1: `over` matches no case that is run: network reference",
        ),
        (
            {"published": [a_figure(), a_figure(cases={"network": "fast"})]},
            "published[1] (l): `cases` matches no case that is run",
        ),
        (
            {"published": [a_figure(cases={"network": "slow-a"})]},
            "published[0] (l): `cases` matches 4 cases, and one is meant",
        ),
        (
            {"published": [a_figure(over={"network": "fast"})]},
            "published[0] (l): `over` matches no case that is run",
        ),
    ],
)
def test_selectors_that_match_nothing_are_noted(changes: dict[str, Any], note: str) -> None:
    assert idle(planned(**changes)) == [note]


def test_each_case_is_matched_by_its_own_words() -> None:
    """The plain reference: a selector of a case's own words matches that case."""
    from broadgauge.specs.selector import CaseSelector

    def words(case: Case) -> CaseSelector:
        return CaseSelector(
            workload=case.workload.name,
            network=case.plain_network_name,
            shape=case.shape,
            backend=case.backend,
        )

    cases = planned().cases
    for case in cases:
        assert [other.key for other in cases if words(case).matches(other)] == [case.key]
