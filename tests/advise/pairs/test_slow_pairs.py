"""Is a planted slow way or node named, alone, and ordinary spread passed over?"""

import itertools
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.advise.test_trial_findings import a_case, a_record, a_row

from broadgauge.advise.pairs.slow_pairs import outliers_of
from broadgauge.advise.trial_findings import findings
from broadgauge.specs.case import Case
from broadgauge.specs.networks.network import Network
from broadgauge.specs.records.pair_rates import RankPair
from broadgauge.specs.records.record import Finding, Severity
from broadgauge.specs.workloads.workload import CollectivesWorkload

PAIRWISE = CollectivesWorkload(kind="collectives", pairwise=True)
SIMULATED = 400
Rates = dict[RankPair, float]


def ways(nodes: int) -> list[RankPair]:
    return list(itertools.permutations(range(nodes), 2))


@st.composite
def spread_rates(draw: st.DrawFn, low: float, high: float, nodes: int = 8) -> Rates:
    """Any rates between these bounds, of three nodes or more."""
    number = draw(st.integers(3, nodes))
    return {way: draw(st.floats(low, high)) for way in ways(number)}


def simulated(random_: random.Random, nodes: int, deviation: float) -> Rates:
    return {way: max(0.05, random_.gauss(1, deviation)) for way in ways(nodes)}


@given(spread_rates(0.75, 1.0))
def test_no_spread_down_to_three_quarters_names_anything(rates: Rates) -> None:
    found = outliers_of(rates)
    assert not found.pairs
    assert not found.senders | found.receivers


@given(spread_rates(0.97, 1.03), st.data())
def test_a_slow_pair_is_named_alone_in_the_directions_it_has(
    rates: Rates, data: st.DataObject
) -> None:
    a, b = data.draw(st.sampled_from(sorted(rates)))
    slow = {(a, b)} | ({(b, a)} if data.draw(st.booleans()) else set())
    ratio = data.draw(st.floats(0.05, 0.5))
    found = outliers_of({way: rate * (ratio if way in slow else 1) for way, rate in rates.items()})
    assert set(found.pairs) == slow
    assert not found.senders | found.receivers


@given(spread_rates(0.97, 1.03), st.data())
def test_a_slow_node_is_named_instead_of_its_ways(rates: Rates, data: st.DataObject) -> None:
    node = data.draw(st.sampled_from(sorted({a for a, _ in rates})))
    ends = data.draw(st.sampled_from([(0,), (1,), (0, 1)]))
    ratio = data.draw(st.floats(0.05, 0.5))
    found = outliers_of(
        {
            way: rate * (ratio if any(way[end] == node for end in ends) else 1)
            for way, rate in rates.items()
        }
    )
    assert found.senders == ({node} if 0 in ends else set())
    assert found.receivers == ({node} if 1 in ends else set())
    assert not found.pairs


@given(spread_rates(0.1, 2.0), st.floats(1e-3, 1e3))
def test_the_unit_of_the_rates_does_not_matter(rates: Rates, scale: float) -> None:
    one, other = outliers_of(rates), outliers_of({way: rate * scale for way, rate in rates.items()})
    assert (one.senders, one.receivers) == (other.senders, other.receivers)
    assert set(one.pairs) == set(other.pairs)


@pytest.mark.parametrize("nodes", [3, 4, 8])
@pytest.mark.parametrize(("deviation", "false_ratio"), [(0.02, 0), (0.05, 0.01), (0.1, 0.08)])
def test_ordinary_spread_is_seldom_taken_for_a_fault(
    nodes: int, deviation: float, false_ratio: float
) -> None:
    """Rates of a normal distribution, a tenth of the mean being more than healthy networks have."""
    random_ = random.Random(nodes)
    false = 0
    for _ in range(SIMULATED):
        found = outliers_of(simulated(random_, nodes, deviation))
        false += bool(found.pairs or found.senders or found.receivers)
    assert false <= false_ratio * SIMULATED


@pytest.mark.parametrize("nodes", [4, 8])
def test_one_of_the_pairs_at_40_percent_is_found_in_a_spread_of_5_percent(nodes: int) -> None:
    random_ = random.Random(nodes)
    slow = {(1, 3), (3, 1)}
    missed = 0
    for _ in range(SIMULATED):
        rates = simulated(random_, nodes, 0.05)
        found = outliers_of({w: rate * (0.4 if w in slow else 1) for w, rate in rates.items()})
        missed += set(found.pairs) != slow
    assert missed <= 0.02 * SIMULATED


def between(*racks: range) -> set[RankPair]:
    """All ways from rack to rack."""
    return {(a, b) for one, other in itertools.permutations(racks, 2) for a in one for b in other}


@given(st.data())
def test_a_slow_uplink_between_two_racks_is_named_with_the_racks(data: st.DataObject) -> None:
    """Half of all ways or more are slow then: the median is no reference."""
    left, right = data.draw(st.sampled_from([(2, 2), (4, 4), (2, 3), (3, 5)]))
    racks = range(left), range(left, left + right)
    ratio = data.draw(st.floats(0.05, 0.625))
    rates = {
        way: data.draw(st.floats(0.95, 1.05)) * (ratio if way in between(*racks) else 1)
        for way in ways(left + right)
    }
    found = outliers_of(rates)
    assert set(found.pairs) == between(*racks)
    assert found.groups == tuple(map(frozenset, racks))
    assert not found.senders | found.receivers
    assert 0.95 <= found.fast_gbyte_per_s <= 1.05


@pytest.mark.parametrize("nodes", [4, 8])
@pytest.mark.parametrize(("ratio", "missed_ratio"), [(0.4, 0.02), (0.5, 0.05)])
def test_a_slow_uplink_is_found_in_a_spread_of_5_percent(
    nodes: int, ratio: float, missed_ratio: float
) -> None:
    random_ = random.Random(nodes)
    racks = range(nodes // 2), range(nodes // 2, nodes)
    missed = 0
    for _ in range(SIMULATED):
        rates = simulated(random_, nodes, 0.05)
        found = outliers_of(
            {w: r * (ratio if w in between(*racks) else 1) for w, r in rates.items()}
        )
        missed += found.groups != tuple(map(frozenset, racks))
    assert missed <= missed_ratio * SIMULATED


@given(spread_rates(0.97, 1.03))
def test_two_nodes_with_a_fast_way_of_their_own_make_no_other_slow(rates: Rates) -> None:
    assume(len({a for a, _ in rates}) > 4)
    found = outliers_of(
        {way: 3 * rate if set(way) == {0, 1} else rate for way, rate in rates.items()}
    )
    assert not found.pairs
    assert not found.senders | found.receivers


def test_a_slow_node_is_told_beside_a_slow_uplink() -> None:
    racks = range(4), range(4, 8)
    rates = {way: 0.4 if way in between(*racks) else 1.0 for way in ways(8)}
    found = outliers_of({way: 0.2 if 5 in way else rate for way, rate in rates.items()})
    assert found.senders == found.receivers == {5}
    assert found.groups == (frozenset({0, 1, 2, 3}), frozenset({4, 6, 7}))


def test_an_uplink_that_is_slow_one_way_is_named_by_its_ways() -> None:
    slow = {(a, b) for a in (0, 1) for b in (2, 3)}
    found = outliers_of({way: 0.4 if way in slow else 1.0 for way in ways(4)})
    assert set(found.pairs) == slow
    assert not found.groups


def told(case: Case, rates: Rates) -> list[Finding]:
    """What the rule says of a trial with these rates in GB/s; small messages say nothing."""
    large = [
        a_row("send_recv", time_median_s=0.001 / rate, size_bytes=10**6, from_rank=a, to_rank=b)
        for (a, b), rate in rates.items()
    ]
    small = [row.model_copy(update={"size_bytes": 8, "time_median_s": 1.0}) for row in large]
    record = a_record(collectives=(*small[:1], *large))
    return [finding for finding in findings(case, record) if finding.rule == "slow-pair"]


def of_nodes(nodes: int, ranks_per_node: int = 1) -> Case:
    case = a_case(PAIRWISE, Network(name="fast", rate_gbps=1.0))
    return case.model_copy(update={"nodes": nodes, "ranks_per_node": ranks_per_node})


def test_the_pair_is_named_with_its_rate_and_the_medians() -> None:
    rates = dict.fromkeys(ways(4), 0.1)
    (finding,) = told(of_nodes(4), {**rates, (1, 3): 0.04, (3, 1): 0.05})
    assert finding.severity is Severity.WARNING
    assert finding.symptom == "node 1 to node 3 and back is slow: 40 % of the median fast pair"
    assert finding.evidence == (
        "node 1 to node 3: 320 Mbit/s of payload",
        "node 3 to node 1: 400 Mbit/s of payload",
        "the median fast pair: 800 Mbit/s",
    )
    assert "cable" in (finding.cause or "")


def test_one_direction_and_several_pairs_are_told_apart() -> None:
    rates = dict.fromkeys(ways(5), 0.1)
    (finding,) = told(of_nodes(5), {**rates, (3, 1): 0.05, (0, 4): 0.04})
    assert finding.symptom == (
        "node 0 to node 4; node 3 to node 1 are slow: the slowest 40 % of the median fast pair"
    )


def test_an_uplink_is_told_by_the_racks_it_is_between() -> None:
    rates = {way: 0.04 if way in between(range(2), range(2, 4)) else 0.1 for way in ways(4)}
    (finding,) = told(of_nodes(4), rates)
    assert finding.symptom == (
        "the links between nodes {0, 1} and {2, 3} are slow (an uplink): "
        "the slowest 40 % of the median fast pair"
    )
    assert finding.evidence[-1] == "the median fast pair: 800 Mbit/s"
    assert "uplink" in (finding.cause or "")
    three = between(range(2), range(2, 4), range(4, 6))
    (finding,) = told(of_nodes(6), {way: 0.04 if way in three else 0.1 for way in ways(6)})
    assert finding.symptom.startswith("the links between nodes {0, 1}, {2, 3} and {4, 5} are slow")


def test_many_slow_ways_are_counted() -> None:
    slow = {(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)}
    (finding,) = told(of_nodes(8), {way: 0.04 if way in slow else 0.1 for way in ways(8)})
    assert "; and 2 more are slow: " in finding.symptom


def test_a_slow_node_is_told_with_its_directions() -> None:
    rates = {way: 0.04 if 2 in way else 0.1 for way in ways(4)}
    (finding,) = told(of_nodes(4), rates)
    assert finding.symptom == (
        "node 2 sends and receives slowly, whichever its partner: "
        "at best 40 % of the median fast pair"
    )
    assert finding.evidence[-1] == "the median fast pair: 800 Mbit/s"
    assert "NIC" in (finding.cause or "")
    one_way = {way: 0.04 if way[0] == 2 else 0.1 for way in ways(4)}
    assert "node 2 sends slowly" in told(of_nodes(4), one_way)[0].symptom


def test_the_first_ranks_of_nodes_stand_for_them() -> None:
    rates = {(4 * a, 4 * b): 0.1 for a, b in ways(3)}
    (finding,) = told(of_nodes(3, ranks_per_node=4), {**rates, (4, 8): 0.03})
    assert finding.symptom.startswith("node 1 to node 2 is slow")


def test_on_one_node_ranks_are_named() -> None:
    case = of_nodes(4).model_copy(update={"network": None, "nodes": 1, "ranks_per_node": 4})
    (finding,) = told(case, {**dict.fromkeys(ways(4), 10.0), (0, 3): 2.0})
    assert finding.symptom.startswith("rank 0 to rank 3 is slow: 20 %")


def test_two_ends_have_nothing_to_be_compared_with() -> None:
    assert told(of_nodes(2), {(0, 1): 0.1, (1, 0): 0.01}) == []
