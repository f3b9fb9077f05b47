"""Proves agent/pod/preflight_plan.py: every pair once, nobody twice in a round, bounded time."""

from collections import Counter
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from broadgauge.agent.pod.preflight_plan import (
    STREAMS_S,
    plan_probes,
    rounds_of,
)
from broadgauge.messages.preflight import PodAddress

NODES = st.lists(st.integers(0, 10_000), max_size=40, unique=True)


def addresses(num_nodes: int, num_nics: int = 1, *, lacks: int | None = None) -> list[PodAddress]:
    return [
        PodAddress(
            node=node,
            network="fabric",
            nic=nic,
            interface=f"net{nic + 1}",
            address=f"10.{nic}.{node // 200}.{node % 200 + 1}",
            port=40_000 + nic,
            mtu_bytes=9000,
        )
        for node in range(num_nodes)
        for nic in range(num_nics)
        if not (node == lacks and nic == num_nics - 1)
    ]


@given(NODES)
def test_every_pair_is_in_exactly_one_round(nodes: list[int]) -> None:
    rounds = rounds_of(nodes)
    pairs = [frozenset(pair) for pairs in rounds for pair in pairs]
    assert Counter(pairs) == Counter(map(frozenset, combinations(nodes, 2)))


@given(NODES)
def test_nobody_is_twice_in_a_round(nodes: list[int]) -> None:
    for pairs in rounds_of(nodes):
        busy = [node for pair in pairs for node in pair]
        assert len(busy) == len(set(busy))


@given(NODES.filter(lambda nodes: len(nodes) > 1))
def test_as_few_rounds_as_there_can_be(nodes: list[int]) -> None:
    assert len(rounds_of(nodes)) == len(nodes) - 1 + len(nodes) % 2


@given(st.integers(0, 24), st.integers(1, 4))
def test_a_pair_is_tried_over_each_nic_once(num_nodes: int, num_nics: int) -> None:
    probes = plan_probes(addresses(num_nodes, num_nics))
    tried = Counter((frozenset((p.caller, p.listener)), p.nic) for p in probes)
    assert tried == Counter(
        (frozenset(pair), nic)
        for pair in combinations(range(num_nodes), 2)
        for nic in range(num_nics)
    )
    calls = Counter(probe.caller for probe in probes)
    each = [calls.get(node, 0) / num_nics for node in range(num_nodes)]
    assert not each or max(each) - min(each) <= 1


@given(st.integers(2, 40), st.integers(1, 8))
def test_streams_of_a_node_take_bounded_time_and_every_node_has_one(
    num_nodes: int, num_nics: int
) -> None:
    probes = plan_probes(addresses(num_nodes, num_nics))
    busy_s: dict[int, float] = dict.fromkeys(range(num_nodes), 0.0)
    for probe in probes:
        busy_s[probe.caller] += probe.stream_s
        busy_s[probe.listener] += probe.stream_s
    assert min(busy_s.values()) > 0
    assert max(busy_s.values()) <= STREAMS_S + 1e-6


def test_256_nodes_have_streams_in_a_ring() -> None:
    probes = plan_probes(addresses(256, 2))
    assert len(probes) == 256 * 255 // 2 * 2
    streams = {frozenset((p.caller, p.listener)) for p in probes if p.stream_s}
    assert streams == {frozenset((node, (node + 1) % 256)) for node in range(256)}
    assert max(probe.round for probe in probes) == 254
    calls = Counter(probe.caller for probe in probes)
    assert set(calls.values()) <= {254, 256}
    assert plan_probes(addresses(256, 2), 17) == tuple(p for p in probes if p.caller == 17)


def test_a_pod_that_lacks_a_nic_is_tried_over_the_others() -> None:
    probes = plan_probes(addresses(3, 2, lacks=1))
    assert {(p.caller, p.listener) for p in probes if p.nic == 1} == {(2, 0)}
    assert len([p for p in probes if p.nic == 0]) == 3


def test_addresses_and_ports_are_the_listeners_own() -> None:
    (probe,) = plan_probes(addresses(2))
    assert (probe.caller, probe.listener) == (0, 1)
    assert (probe.source, probe.address, probe.port) == ("10.0.0.1", "10.0.0.2", 40_000)
