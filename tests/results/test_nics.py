"""Are a node's bytes shared out over its NICs as the counters say?"""

import pytest
from tests.results import simulated_experiments as made

from broadgauge.results.nics import NicBalance, nic_balance
from broadgauge.results.summary import summarise_case
from broadgauge.specs.records.record import NicUse, NodeUse, Record

CASE = made.network_case("slow")


def a_node(number: int, sent: list[int]) -> NodeUse:
    nics = tuple(NicUse(name=f"eth{n}", tx_bytes=tx, rx_bytes=tx) for n, tx in enumerate(sent))
    return NodeUse(
        node=number,
        elapsed_s=1,
        nics=nics,
        cores_count=1,
        cpu_user_s=0,
        cpu_system_s=0,
        cpu_softirq_s=0,
        cpu_busy_ratio=0,
    )


def balance_of(*nodes: list[int], launches: int = 3) -> NicBalance | None:
    records: tuple[Record, ...] = made.run_of([CASE], [[1.0] * launches]).records
    used = tuple(a_node(number, sent) for number, sent in enumerate(nodes))
    return nic_balance(
        summarise_case(CASE, tuple(r.model_copy(update={"nodes": used}) for r in records))
    )


def test_shares_are_of_the_nodes_bytes() -> None:
    balance = balance_of([100, 100, 100, 100], [300, 100, 0, 0])
    assert balance is not None
    first = balance.nics[0]
    assert first.name == "eth0"
    assert first.tx_bytes.value == 200
    assert first.share_ratio.value == pytest.approx(0.5)
    assert (first.lowest_ratio, first.highest_ratio) == (0.25, 0.75)
    assert sum(nic.share_ratio.value for nic in balance.nics) == pytest.approx(1)


def test_the_busiest_nic_is_named() -> None:
    balance = balance_of([100, 100], [130, 70])
    assert balance is not None
    assert balance.busiest == "eth0 of node 1"
    assert balance.most_over_even_ratio == pytest.approx(1.3)
    assert not balance.is_balanced
    even = balance_of([100, 101], [99, 100])
    assert even is not None
    assert even.is_balanced


@pytest.mark.parametrize("nodes", [([100], [100]), ([], [])])
def test_one_nic_has_nothing_to_balance(nodes: tuple[list[int], ...]) -> None:
    assert balance_of(*nodes) is None


def test_nodes_that_moved_nothing_have_no_shares() -> None:
    assert balance_of([0, 0], [0, 0]) is None
