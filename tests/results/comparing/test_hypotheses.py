"""Is a hypothesis supported only where it is true, refuted only where it is false?"""

import random
from collections.abc import Iterable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.results import simulated_experiments as made
from tests.sharding import one_of

from broadgauge.results.comparing.hypotheses import HypothesisResult, HypothesisVerdict, evaluate
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.case import Case
from broadgauge.specs.hypothesis import Hypothesis
from broadgauge.specs.networks.network import NodePath
from broadgauge.specs.records.record import Finding, Record, Severity, Status
from broadgauge.specs.workloads.workload import CommandMetric, CommandWorkload

SUPPORTED, REFUTED, CANNOT_TELL = HypothesisVerdict
REFERENCE = made.network_case("reference")
(DRIFTING,) = (world for world in made.WORLDS if world.name == "drift 3")
"""The one world of each test that every commit simulates."""
SLOW = made.network_case("slow")
WIGGLE = (1.0, 1.01, 0.99, 1.005, 0.995)


def a_claim(**more: object) -> Hypothesis:
    facts = {
        "name": "h",
        "statement": "the network costs time",
        "cases": {"network": "slow"},
        "over": {"network": "reference"},
    }
    return Hypothesis.model_validate(facts | more)


def times(level: float, launches: int = 5) -> list[float]:
    """Around a level, within 1 %."""
    return [level * WIGGLE[launch % 5] for launch in range(launches)]


def again(run: RunSummary, records: Iterable[Record]) -> RunSummary:
    """The same run with other records."""
    return summarise_run(
        folder=run.folder, plan=run.plan, records=[*records], experiment_yaml="", environments={}
    )


def two_networks(ratio: float, launches: int = 5) -> RunSummary:
    skewed = [ratio * WIGGLE[(launch + 2) % 5] for launch in range(launches)]
    return made.run_of([REFERENCE, SLOW], [times(1.0, launches), skewed])


def wrong_share_is_small(wrong: int, repetitions: int) -> bool:
    """At most 5 %, by a one-sided binomial test at 1 %."""
    return stats.binomtest(wrong, repetitions, 0.05, alternative="greater").pvalue > 0.01


@pytest.mark.parametrize("world", one_of(made.WORLDS, DRIFTING), ids=lambda world: world.name)
@pytest.mark.parametrize("launches", one_of([3, 5, 10], 5))
@pytest.mark.parametrize("truth", one_of([1.02, 1.05, 1.08], 1.05))
def test_wrong_verdicts_are_rare(world: made.World, launches: int, truth: float) -> None:
    """`at least 1.05`, one case. On the bound it is true, and only refuting it is wrong."""
    runs = made.simulated_runs(
        world, [REFERENCE, SLOW], [1.0, truth], launches=launches, repetitions=400
    )
    counts = made.verdicts(a_claim(at_least=1.05), runs)
    wrong = counts[REFUTED] if truth >= 1.05 else counts[SUPPORTED]
    assert wrong_share_is_small(wrong, 400), counts


def four_networks(at_least: float) -> tuple[list[Case], Hypothesis]:
    cases = [REFERENCE, *(made.network_case(f"n{number}") for number in range(4))]
    return cases, a_claim(cases={"network": "n*"}, at_least=at_least)


@pytest.mark.parametrize("world", one_of(made.WORLDS, DRIFTING), ids=lambda world: world.name)
@pytest.mark.parametrize("launches", one_of([3, 5, 10], 5))
def test_many_true_cases_are_rarely_refuted(world: made.World, launches: int) -> None:
    """All four on the bound: without Bonferroni's correction some 8 % are refuted."""
    cases, claim = four_networks(at_least=1.05)
    runs = made.simulated_runs(
        world, cases, [1.0, *[1.05] * 4], launches=launches, repetitions=1000
    )
    counts = made.verdicts(claim, runs)
    assert wrong_share_is_small(counts[REFUTED], 1000), counts


@pytest.mark.parametrize("launches", one_of([3, 10], 3))
def test_one_false_case_of_many_is_rarely_missed(launches: int) -> None:
    """Three are far above the bound, the fourth just below: supporting would be wrong."""
    cases, claim = four_networks(at_least=1.05)
    runs = made.simulated_runs(
        made.WORLDS[0], cases, [1.0, 1.5, 1.5, 1.5, 1.049], launches=launches, repetitions=600
    )
    counts = made.verdicts(claim, runs)
    assert wrong_share_is_small(counts[SUPPORTED], 600), counts


@pytest.mark.parametrize("truth", one_of([0.97, 1.0, 1.03], 1.0))
@pytest.mark.parametrize("quantity", ["value", "efficiency"])
def test_values_and_efficiencies_are_rarely_wrong(quantity: str, truth: float) -> None:
    one, two = made.network_case("x", nodes=1), SLOW
    claim = a_claim(cases={"nodes": 2}, over=None, quantity=quantity, at_least=1.0)
    level = truth if quantity == "value" else 1 / truth
    runs = made.simulated_runs(
        made.WORLDS[0], [one, two], [1.0, level], launches=5, repetitions=400
    )
    counts = made.verdicts(claim, runs)
    wrong = counts[REFUTED] if truth >= 1 else counts[SUPPORTED]
    assert wrong_share_is_small(wrong, 400), counts


def test_power() -> None:
    """Five launches that scatter by 3 %: a truth 10 % from the bound is told in 8 of 10 runs."""
    for truth, right in ((0.945, REFUTED), (1.165, SUPPORTED)):
        runs = made.simulated_runs(
            made.WORLDS[0], [REFERENCE, SLOW], [1.0, truth], launches=5, repetitions=300
        )
        counts = made.verdicts(a_claim(at_least=1.05), runs)
        assert counts[right] >= 240, (truth, counts)


@pytest.mark.parametrize(
    ("bounds", "verdict"),
    [
        ({"at_least": 1.1}, SUPPORTED),
        ({"at_most": 1.3}, SUPPORTED),
        ({"at_least": 1.1, "at_most": 1.3}, SUPPORTED),
        ({"at_least": 1.3}, REFUTED),
        ({"at_most": 1.1}, REFUTED),
        ({"at_least": 1.0, "at_most": 1.1}, REFUTED),
        ({"at_least": 1.2}, CANNOT_TELL),
        ({"at_least": 1.1, "at_most": 1.2}, CANNOT_TELL),
    ],
)
def test_the_interval_decides(bounds: dict[str, float], verdict: HypothesisVerdict) -> None:
    result = evaluate(a_claim(**bounds), two_networks(1.2))
    assert result.verdict is verdict
    assert result.answers[0].estimate.value == pytest.approx(1.2, rel=0.01)
    assert result.answers[0].partner.case == REFERENCE
    assert bool(result.reason) is (verdict is CANNOT_TELL)


def test_launches_that_would_tell_are_named() -> None:
    result = evaluate(a_claim(at_least=1.195), two_networks(1.2))
    assert "the interval reaches across the bound: about" in result.reason
    assert "launches would tell" in result.reason


@pytest.mark.parametrize(
    ("launches", "verdict", "words"),
    [
        (1, CANNOT_TELL, "1 of the 3 launches"),
        (2, CANNOT_TELL, "2 of the 3 launches"),
        (3, SUPPORTED, "provisional below 5"),
        (5, SUPPORTED, ""),
    ],
)
def test_few_launches_are_said(launches: int, verdict: HypothesisVerdict, words: str) -> None:
    result = evaluate(a_claim(at_least=1.5), two_networks(9.0, launches))
    assert result.verdict is verdict
    said = " ".join((result.reason, *result.caveats))
    assert words in said
    assert said.count("launches") <= 1


def test_a_single_launch_never_decides_a_value() -> None:
    claim = a_claim(quantity="value", over=None, at_least=0.001)
    assert evaluate(claim, two_networks(1.2, 2)).verdict is CANNOT_TELL
    assert evaluate(claim, two_networks(1.2, 3)).verdict is SUPPORTED


def result_of_many(
    levels: dict[str, float], at_least: float, spread: float = 1.0
) -> HypothesisResult:
    cases = [REFERENCE, *(made.network_case(name) for name in levels)]
    spreads = [(w - 1) * spread for w in WIGGLE]
    values = [[level * (1 + s) for s in spreads] for level in levels.values()]
    run = made.run_of(cases, [times(1.0), *[v[2:] + v[:2] for v in values]])
    return evaluate(a_claim(cases={"network": "n*"}, at_least=at_least), run)


def test_all_cases_must_support_and_one_refutes() -> None:
    assert result_of_many({"n0": 1.3, "n1": 1.4}, 1.2).verdict is SUPPORTED
    refuted = result_of_many({"n0": 1.3, "n1": 1.1}, 1.2)
    assert refuted.verdict is REFUTED
    assert refuted.reason == "refuted by 1 of 2 cases: train 2x1 n1"
    unknown = result_of_many({"n0": 1.3, "n1": 1.2}, 1.2)
    assert unknown.verdict is CANNOT_TELL
    assert unknown.reason == "can't tell of 1 of 2 cases: train 2x1 n1"


def test_a_stray_among_many_does_not_refute() -> None:
    """The same figure refutes alone; among eight its interval is taken wider."""
    level = 1.2 / 1.02
    alone = result_of_many({"n0": level}, 1.2)
    many = result_of_many({f"n{i}": 1.5 for i in range(1, 8)} | {"n0": level}, 1.2)
    assert alone.verdict is REFUTED
    assert many.verdict is CANNOT_TELL
    stray = next(a for a in many.answers if a.summary.case.network_name == "n0")
    assert "at 99.38 % the interval reaches the bound" in stray.reason


def test_the_reference_itself_is_not_asked() -> None:
    claim = a_claim(cases={}, at_least=1.1)
    result = evaluate(claim, two_networks(1.2))
    assert [answer.summary.case for answer in result.answers] == [SLOW]
    alone = evaluate(a_claim(cases={"network": "reference"}, at_least=1.1), two_networks(1.2))
    assert alone.verdict is CANNOT_TELL
    assert "compared with" in alone.reason
    assert evaluate(a_claim(cases={"network": "no*"}, at_least=1), two_networks(1.2)).reason == (
        "no case is selected"
    )


def test_no_partner_or_several_are_never_guessed() -> None:
    run = made.run_of([REFERENCE, SLOW, made.network_case("third")], [times(1.0)] * 3)
    several = evaluate(a_claim(over={"network": ["reference", "third"]}, at_least=0.5), run)
    assert several.verdict is CANNOT_TELL
    assert "2 cases are `over: reference or third`: train 2x1 reference" in several.reason
    none = evaluate(a_claim(over={"network": "fast"}, at_least=0.5), run)
    assert none.reason.startswith("no case of this run is `over: fast`")


def test_the_partner_agrees_in_what_is_not_named() -> None:
    """The same shape on the reference, not just any case on it."""
    cases = [made.network_case(name, nodes) for name in ("reference", "slow") for nodes in (2, 4)]
    run = made.run_of(cases, [times(1.0), times(10.0), times(2.0), times(20.0)])
    result = evaluate(a_claim(at_least=1.5), run)
    assert [a.partner.case.shape for a in result.answers] == ["2x1", "4x1"]
    assert [a.estimate.value for a in result.answers] == pytest.approx([2.0, 2.0], rel=0.05)


def test_another_backend_is_no_partner_unless_it_is_named() -> None:
    cases = [
        case.model_copy(update={"backend": backend})
        for backend in ("gloo", "nccl")
        for case in (REFERENCE, SLOW)
    ]
    run = made.run_of(cases, [times(1.0), times(2.0), times(0.1), times(0.3)])
    by_network = evaluate(a_claim(at_least=1.5), run)
    assert [a.partner.case.backend for a in by_network.answers] == ["gloo", "nccl"]
    by_backend = evaluate(
        a_claim(cases={"backend": "gloo"}, over={"backend": "nccl"}, at_least=5), run
    )
    assert [a.estimate.value for a in by_backend.answers] == pytest.approx([10, 20 / 3], rel=0.05)


def test_one_node_has_no_network_to_disagree_in() -> None:
    one = made.network_case("x", nodes=1)
    run = made.run_of([one, SLOW], [times(1.0), times(3.0)])
    assert evaluate(a_claim(over={"shape": "1x1"}, at_least=2), run).verdict is SUPPORTED


def a_path(name: str, path: str) -> Case:
    case = made.network_case("x", nodes=1)
    return case.model_copy(update={"network": NodePath(name=name, path=path), "ranks_per_node": 2})


def test_two_paths_inside_the_node_are_two_partners() -> None:
    two_by_two = SLOW.model_copy(update={"ranks_per_node": 2})
    cases = [a_path("nv", "nvlink"), a_path("host", "shm"), two_by_two]
    run = made.run_of(cases, [times(1.0), times(1.5), times(2.0)])
    unnamed = evaluate(a_claim(over={"nodes": 1}, at_least=1.5), run)
    assert "2 cases are" in unnamed.reason
    named = evaluate(a_claim(over={"nodes": 1, "network": "nv"}, at_least=1.5), run)
    assert named.verdict is SUPPORTED
    assert run.cases[2].scaling is None


def test_efficiency_is_of_a_rank_over_the_smallest_world() -> None:
    one, four = made.network_case("x", nodes=1), made.network_case("slow", nodes=4)
    claim = a_claim(
        cases={"network": "slow"},
        over=None,
        quantity="efficiency",
        metric="tokens_per_s",
        at_least=0.7,
    )
    run = made.run_of([one, four, SLOW], [times(100), times(300), times(180)], "tokens_per_s")
    result = evaluate(claim, run)
    assert [a.estimate.value for a in result.answers] == pytest.approx([0.75, 0.9], rel=0.02)
    assert result.verdict is SUPPORTED
    seconds = made.run_of([one, SLOW], [times(1.0), times(1.25)])
    by_time = evaluate(claim.model_copy(update={"metric": "step_time_s"}), seconds)
    assert by_time.answers[0].estimate.value == pytest.approx(0.8, rel=0.02)
    assert by_time.answers[0].estimate.low < 0.8 < by_time.answers[0].estimate.high


def test_a_metric_without_a_direction_has_no_efficiency() -> None:
    claim = a_claim(over=None, quantity="efficiency", metric="wire_bytes", at_least=0.7)
    run = made.run_of(
        [made.network_case("x", nodes=1), SLOW], [times(1.0), times(1.0)], "wire_bytes"
    )
    assert "has no efficiency" in evaluate(claim, run).reason


def test_a_commands_efficiency_says_how_it_is_taken() -> None:
    command = CommandWorkload(
        kind="command",
        command=("train.py",),
        metrics=(CommandMetric(name="images_per_s", json_key="i", lower_is_better=False),),
    )
    cases = [
        case.model_copy(update={"workload": command})
        for case in (made.network_case("x", nodes=1), SLOW)
    ]
    run = made.run_of(cases, [times(100), times(150)], "images_per_s")
    claim = a_claim(over=None, quantity="efficiency", metric="images_per_s", at_least=0.7)
    result = evaluate(claim, run)
    assert result.verdict is SUPPORTED
    assert result.answers[0].estimate.value == pytest.approx(0.75, rel=0.02)
    assert "taken as of all ranks together" in " ".join(result.caveats)


def test_what_was_not_interleaved_is_not_compared() -> None:
    run = made.run_of([REFERENCE, SLOW], [times(1.0), times(3.0)])
    moved = tuple(
        r.model_copy(update={"block": r.block + 10 * (r.network == "slow")}) for r in run.records
    )
    result = evaluate(a_claim(at_least=1.1), again(run, moved))
    assert result.reason == "no block holds both cases: they were not interleaved"


def test_failed_and_flagged_trials_stand_beside_the_verdict() -> None:
    run = two_networks(3.0)
    warning = Finding(rule="host-cpu", severity=Severity.WARNING, symptom="busy")
    records = [
        r.model_copy(update={"status": Status.FAILED, "metrics": {}})
        if r.network == "slow" and r.block == 4
        else r.model_copy(update={"findings": (warning,)})
        if r.network == "reference" and r.block < 2
        else r
        for r in run.records
    ]
    result = evaluate(a_claim(at_least=1.1), again(run, records))
    assert result.verdict is SUPPORTED
    assert result.caveats == (
        "train 2x1 slow: 1 of 5 trials failed",
        "train 2x1 reference: host-cpu in 2 of 5 trials",
        "only 4 launches: provisional below 5",
    )


def test_nothing_measured_says_why() -> None:
    run = made.run_of([REFERENCE, SLOW], [times(1.0), []])
    reason = evaluate(a_claim(at_least=1.1), run).reason
    assert reason == "train 2x1 slow: no trial succeeded"
    other = evaluate(a_claim(metric="mfu_ratio", at_least=1.1), two_networks(1.0))
    assert other.reason == "train 2x1 slow: no mfu_ratio: it was not measured"


def test_a_baseline_is_not_asked() -> None:
    """Another experiment's cases of the same names: no second partner, and no second answer."""
    theirs = [case.model_copy(update={"arm": "baseline"}) for case in (REFERENCE, SLOW)]
    levels = [times(level) for level in (1.0, 3.0, 50.0, 500.0)]
    run = made.run_of([REFERENCE, SLOW, *theirs], levels)
    result = evaluate(a_claim(at_least=2, at_most=4), run)
    assert result.verdict is SUPPORTED
    assert len(result.answers) == 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.5, 2.0), min_size=3, max_size=8),
    st.floats(0.8, 1.3),
    st.floats(1e-3, 1e3),
    st.randoms(use_true_random=False),
)
def test_order_changes_nothing_and_scale_only_values(
    values: list[float], ratio: float, scale: float, dice: random.Random
) -> None:
    theirs = [1.0 + 0.01 * (i % 3) for i in range(len(values))]
    claim = a_claim(at_least=ratio)
    run = made.run_of([REFERENCE, SLOW], [theirs, values])
    result = evaluate(claim, run)
    records = list(run.records)
    dice.shuffle(records)
    shuffled = evaluate(claim, again(run, records))
    assert shuffled.verdict is result.verdict
    assert shuffled.answers[0].estimate == result.answers[0].estimate
    scaled = evaluate(
        claim,
        made.run_of([REFERENCE, SLOW], [[v * scale for v in side] for side in (theirs, values)]),
    )
    assert scaled.answers[0].estimate.value == pytest.approx(result.answers[0].estimate.value)
    value = a_claim(quantity="value", over=None, at_least=ratio)
    plain = evaluate(value, run)
    ends = (plain.answers[0].estimate.low, plain.answers[0].estimate.high)
    # An end on the bound itself falls to either side when both are multiplied: rounding, no law.
    assume(all(end is None or abs(end - ratio) > 1e-9 for end in ends))
    larger = evaluate(
        value.model_copy(update={"at_least": ratio * scale}),
        made.run_of([REFERENCE, SLOW], [theirs, [v * scale for v in values]]),
    )
    assert larger.verdict is plain.verdict
    assert larger.answers[0].estimate.value == pytest.approx(
        plain.answers[0].estimate.value * scale
    )


@pytest.mark.parametrize("metric", ["network_cost_s", "network_share_ratio", "saving_s"])
def test_a_difference_is_not_supported_by_an_interval_cut_at_zero(metric: str) -> None:
    """Positive in every launch, and yet the interval reaches below zero."""
    run = made.run_of([SLOW], [[0.001, 0.02, 0.003]], metric=metric)
    claim = a_claim(quantity="value", over=None, metric=metric, at_least=0)
    result = evaluate(claim, run)
    (answer,) = result.answers
    assert answer.estimate is not None
    assert answer.estimate.low is not None
    assert answer.estimate.low < 0
    assert result.verdict is CANNOT_TELL
    assert answer.estimate == run.cases[0].estimates[metric]


def test_what_cannot_be_negative_has_no_interval_below_zero() -> None:
    run = made.run_of([SLOW], [[0.001, 0.02, 0.003]])
    (answer,) = evaluate(a_claim(quantity="value", over=None, at_least=0), run).answers
    assert answer.estimate is not None
    assert answer.estimate.low == 0
