"""Is the one bad way between two nodes slow, and is everything else at full rate?"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.platforms.emulated.judging import is_reached, refuse_above

from broadgauge.agent.emulated.shaping import LinkPlan, SlowWay, sending_plan
from broadgauge.specs.network import VXLAN_HEADER_BYTES, payload_rate_gbps

RATE_GBPS, RATIO = 0.2, 0.4


PAIRS = [f"{a}{b}" for a in range(4) for b in range(4) if a != b]


@pytest.mark.measured
@pytest.mark.parametrize(
    "user", ["root", pytest.param("ordinary", marks=pytest.mark.thorough)], indirect=True
)
@pytest.mark.namespaces
@pytest.mark.parametrize("has_overlay", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_one_of_six_pairs_is_slow_in_both_directions(run_case: Any, has_overlay: bool) -> None:
    """Every pair, then the slow way moved to another pair in place, then taken away."""
    full_gbps = payload_rate_gbps(RATE_GBPS, 1500, VXLAN_HEADER_BYTES if has_overlay else 0)

    def expect(pairs: list[str], *slow: str) -> dict[str, float]:
        return {pair: full_gbps * (RATIO if pair in slow else 1) for pair in pairs}

    plans = [
        ({"rate_gbps": RATE_GBPS, "slow_ways": [(1, 3, RATIO)]}, expect(PAIRS, "13", "31")),
        ({"rate_gbps": RATE_GBPS, "slow_ways": [(2, 0, RATIO)]}, expect(["13", "02"], "02")),
        ({"rate_gbps": RATE_GBPS}, expect(["20"])),
    ]
    seen = run_case("pairs", num_nodes=4, least=0.95, plans=plans, has_overlay=has_overlay)
    assert [len(ratios) for ratios in seen] == [12, 2, 1]
    for ratios in seen:
        for attempts in ratios.values():
            refuse_above(attempts, 1.05)
            assert is_reached(attempts, 0.95), seen


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
