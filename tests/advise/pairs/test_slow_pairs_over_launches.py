"""Is the one bad link named, over all launches, and nothing named where none is bad?"""

import itertools
import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.results import simulated_experiments as made
from tests.results.test_pair_summaries import PAIRS, a_case, a_row

from broadgauge.advise.case_verdict import verdict
from broadgauge.advise.pairs.slow_pairs_over_launches import judged_pairs
from broadgauge.advise.verdicts.verdict import Bound
from broadgauge.report.charts.pairs import pair_chart
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.results.summary import summarise_case, summarise_run


def a_run(nodes: int, slow: dict[tuple[int, int], float], seed: int = 1) -> RunSummary:
    """Three launches; ways scatter by 3 %."""
    dice = random.Random(seed)
    case = a_case(nodes)
    run = made.run_of([case], [[1.0] * 3])
    records = [
        record.model_copy(
            update={
                "metrics": {},
                "collectives": tuple(
                    a_row(way, abs(dice.gauss(1, 0.03)) / slow.get(way, 1.0))
                    for way in itertools.permutations(range(nodes), 2)
                ),
            }
        )
        for record in run.records
    ]
    return summarise_run(
        folder=run.folder, plan=run.plan, records=records, experiment_yaml="", environments={}
    )


def summary_of(run: RunSummary) -> CaseSummary:
    (summary,) = run.cases
    assert summary.case.workload == PAIRS
    return summary


@pytest.mark.parametrize("bad", list(itertools.combinations(range(4), 2)))
def test_one_bad_link_of_six_is_named_both_ways(bad: tuple[int, int]) -> None:
    run = a_run(4, {bad: 0.4, bad[::-1]: 0.4})
    found = judged_pairs(summary_of(run))
    assert found is not None
    assert found.slow == {bad, bad[::-1]}
    first, second = sorted(bad)
    assert f"slow: node {first} to node {second} and back, " in found.words
    judged = verdict(summary_of(run), run)
    assert found.words in judged.sentence


def test_a_slow_direction_is_named_alone() -> None:
    found = judged_pairs(summary_of(a_run(4, {(2, 0): 0.4})))
    assert found is not None
    assert found.slow == {(2, 0)}
    assert "node 2 to node 0, " in found.words
    assert "and back" not in found.words


def test_a_slow_node_is_named_and_not_its_ways() -> None:
    slow = {way: 0.4 for way in itertools.permutations(range(4), 2) if 1 in way}
    found = judged_pairs(summary_of(a_run(4, slow)))
    assert found is not None
    assert found.words == "slow: node 1 sends and receives slowly"
    assert found.slow == set(slow)


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_named_where_nothing_is_bad(seed: int) -> None:
    found = judged_pairs(summary_of(a_run(4, {}, seed)))
    assert found is not None
    assert found.slow == frozenset()
    assert found.words.startswith("no pair is slow; the slowest is node ")


@pytest.mark.parametrize("nodes", [4, 8])
def test_a_slow_uplink_is_named_by_its_racks(nodes: int) -> None:
    half = nodes // 2
    uplink = {
        (a, b): 0.4 for a, b in itertools.permutations(range(nodes), 2) if (a < half) != (b < half)
    }
    run = a_run(nodes, uplink)
    found = judged_pairs(summary_of(run))
    assert found is not None
    assert found.slow == set(uplink)
    racks = [", ".join(map(str, rack)) for rack in (range(half), range(half, nodes))]
    between = f"{{{racks[0]}}} and {{{racks[1]}}}"
    assert found.words.startswith(
        f"slow: the links between nodes {between} (an uplink), the slowest"
    )
    assert "% of the median fast pair" in found.words
    assert found.words in verdict(summary_of(run), run).sentence
    for cell in pair_chart(found)["layer"][0]["data"]["values"]:
        is_slow = (cell["origin"], cell["target"]) in uplink
        assert cell["part"] == pytest.approx(0.4 if is_slow else 1.0, rel=0.15)


@given(rates=st.lists(st.floats(0.1, 1.0), min_size=12, max_size=12))
@settings(max_examples=50, deadline=None)
def test_no_way_is_slow_is_said_of_alike_ways_only(rates: list[float]) -> None:
    ways = list(itertools.permutations(range(4), 2))
    records = made.run_of([a_case(4)], [[1.0]]).records
    rows = tuple(a_row(way, 1 / rate) for way, rate in zip(ways, rates, strict=True))
    trial = tuple(record.model_copy(update={"collectives": rows}) for record in records)
    found = judged_pairs(summarise_case(a_case(4), trial))
    assert found is not None
    differ = min(rates) / max(rates)
    assume(abs(differ - 0.75) > 1e-6)
    assert found.words.startswith("no pair is slow") == (differ > 0.75)


def test_ways_that_all_differ_are_told_by_the_slowest_and_the_fastest() -> None:
    """Each node sends and receives at three rates, far apart."""
    ways = itertools.permutations(range(4), 2)
    found = judged_pairs(summary_of(a_run(4, {(a, b): 1 - 0.2 * ((b - a) % 4) for a, b in ways})))
    assert found is not None
    assert found.slow == frozenset()
    assert found.words.startswith("the pairs differ, and none stands out: the slowest is node ")
    assert found.words.endswith("% of the fastest")


def test_of_two_nodes_none_can_be_named() -> None:
    run = a_run(2, {(0, 1): 0.3})
    found = judged_pairs(summary_of(run))
    assert found is not None
    assert found.slow == frozenset()
    assert "can't be told" in found.words
    assert verdict(summary_of(run), run).bound is not Bound.NETWORK
