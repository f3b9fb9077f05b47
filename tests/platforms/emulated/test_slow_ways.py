"""Is the one bad way between two nodes slow, and is everything else at full rate?"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.agent.emulated.shaping import LinkPlan, SlowWay, sending_plan

RATE_GBPS, RATIO = 0.2, 0.4


PAIRS = [(a, b) for a in range(4) for b in range(4) if a != b]
PAYLOAD_BYTES = 300_007


@pytest.mark.measured
@pytest.mark.parametrize(
    "user", ["root", pytest.param("ordinary", marks=pytest.mark.thorough)], indirect=True
)
@pytest.mark.namespaces
@pytest.mark.parametrize("has_overlay", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_one_of_six_pairs_is_slow_in_both_directions(judge_queues: Any, has_overlay: bool) -> None:
    """Every pair, then the slow way moved to another pair in place, then taken away."""
    plans = [([(1, 3, RATIO)], PAIRS), ([(2, 0, RATIO)], [(1, 3), (0, 2)]), ([], [(2, 0)])]
    queues = {}
    for slow_ways, pairs in plans:
        slow = [way[:2] for way in slow_ways]
        for a, b in pairs:
            ratio = RATIO if (a, b) in slow or (b, a) in slow else 1
            queues[f"{a} to {b}, slow {slow}"] = {
                "link": {"rate_gbps": RATE_GBPS, "slow_ways": slow_ways},
                "line_gbps": RATE_GBPS * ratio,
                "pair": (a, b),
            }
    judge_queues(queues, num_nodes=4, has_overlay=has_overlay)


@pytest.mark.namespaces
@pytest.mark.parametrize("has_overlay", [False, True])
def test_a_slow_way_carries_what_its_pair_sends_and_nothing_else(
    run_case: Any, has_overlay: bool
) -> None:
    """Counted by class, in both directions, before and after the slow way is moved in place."""
    plans = [[(1, 3, RATIO)], [(1, 2, RATIO)], []]
    pairs = [(1, 3), (3, 1), (1, 2), (2, 1)]
    answer = run_case(
        "bytes_by_way",
        plans=[{"rate_gbps": 1.0, "slow_ways": ways} for ways in plans],
        pairs=pairs,
        num_nodes=4,
        payload_bytes=PAYLOAD_BYTES,
        has_overlay=has_overlay,
    )
    for slow_ways, ways_by_pair in zip(plans, answer, strict=True):
        slow = [way[:2] for way in slow_ways]
        for (a, b), counted in zip(pairs, ways_by_pair, strict=True):
            peer = f"10.80.0.{b + 1}"
            is_slow = (a, b) in slow or (b, a) in slow
            assert (peer in counted) == is_slow
            for destination, num_bytes in counted.items():
                carries_it = destination == (peer if is_slow else "others")
                assert (num_bytes >= PAYLOAD_BYTES) == carries_it, (slow, a, b, counted)


@given(
    st.floats(0.001, 400),
    st.dictionaries(st.integers(1, 7), st.floats(0.01, 1.0), max_size=7),
    st.integers(7, 20),
)
def test_the_ways_share_the_line_and_never_more(
    rate_gbps: float, ratios: dict[int, float], num_peers: int
) -> None:
    link = LinkPlan(rate_gbps=rate_gbps, mtu=1500)
    slow_peers = {f"10.80.0.{peer}": ratio for peer, ratio in ratios.items()}
    tree = sending_plan(link, slow_peers, num_peers).htb
    assert tree is not None
    others, *slow = tree.leaves
    assert others.rate.most_bytes_per_s == tree.rate.bytes_per_s
    for leaf, ratio in zip(slow, ratios.values(), strict=True):
        assert leaf.rate.most_bytes_per_s == pytest.approx(ratio * rate_gbps * 1.25e8, abs=1)
        assert leaf.rate.bytes_per_s <= max(1000, leaf.rate.most_bytes_per_s)
    granted = sum(leaf.rate.bytes_per_s for leaf in tree.leaves)
    assert granted <= tree.rate.bytes_per_s + 1001 * len(tree.leaves)


def test_a_way_needs_a_rate_to_be_a_part_of() -> None:
    with pytest.raises(ValueError, match="hint"):
        LinkPlan(rate_gbps=None, mtu=1500, slow_ways=(SlowWay(nodes=(0, 1), rate_ratio=0.5),))
