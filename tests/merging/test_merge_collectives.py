"""Do the ranks' times and the nodes' counters of a collective add up as defined?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.merging.outcomes import between, collective, counters, make_case, outcome

from broadgauge.merging.merge import merge
from broadgauge.specs.records.record import ErrorKind
from broadgauge.specs.workloads.metrics import REGISTRY
from broadgauge.specs.workloads.workload import CollectivesWorkload

WORKLOAD = CollectivesWorkload(kind="collectives")
SECONDS = st.floats(1e-6, 10)
TIMES = st.integers(2, 5).flatmap(
    lambda ranks: st.integers(1, 6).flatmap(
        lambda n: st.lists(
            st.lists(SECONDS, min_size=n, max_size=n), min_size=ranks, max_size=ranks
        )
    )
)


def merged(times, **block):
    messages = [[collective(seconds, **block)] for seconds in times]
    return merge(make_case(WORKLOAD, nodes=len(times)), outcome(messages), None)


@given(TIMES)
def test_slowest_rank_counts_in_each_iteration(times):
    expected = [max(rank[i] for rank in times) for i in range(len(times[0]))]
    row = merged(times).measurement.collectives[0]
    assert row.time_s == pytest.approx(sum(expected) / len(expected))
    assert row.time_max_s == max(expected)
    assert row.time_min_s == min(expected)
    assert row.iterations == len(expected)
    assert merged(times).series["iteration_time_s"] == tuple((0.0, s) for s in expected)


@given(TIMES, st.randoms(use_true_random=False))
def test_order_of_the_ranks_changes_nothing(times, random):
    shuffled = list(times)
    random.shuffle(shuffled)
    assert merged(times) == merged(shuffled)


@given(TIMES)
def test_half_the_time_is_twice_the_bandwidth(times):
    slow = merged(times).measurement.metrics
    fast = merged([[s / 2 for s in rank] for rank in times]).measurement.metrics
    for name in ("busbw_gbyte_per_s", "algbw_gbyte_per_s"):
        assert fast[name] == pytest.approx(2 * slow[name])
    assert fast["latency_s"] == pytest.approx(slow["latency_s"] / 2)


def test_wire_bytes_are_the_busiest_nodes_without_the_barriers():
    """10 barriers cost 1,000 bytes out of node 0; 5 iterations moved 6,000,500 into node 1."""
    ranks = [[collective([1e-4] * 10, op="barrier", size_bytes=0), collective([0.1] * 5)]] * 2
    marks = [
        *between("barrier", [counters(0, 0)] * 2, [counters(1000, 1000)] * 2),
        *between(
            "all_reduce/float32/1000000",
            [counters(1000, 1000)] * 2,
            [counters(5_001_000, 1000 + 100), counters(2000, 6_001_500)],
        ),
    ]
    trial = merge(make_case(WORKLOAD), outcome(ranks, marks), None)
    (row,) = trial.measurement.collectives
    assert row.wire_bytes == pytest.approx(6_000_500 / 5 - 100)
    assert row.amplification_ratio == pytest.approx(1_200_000 / 1_000_000)
    assert row.link_rate_gbps == pytest.approx(1_200_000 * 8 / 0.1 / 1e9)
    assert trial.measurement.metrics["line_share_ratio"] == pytest.approx(0.096)
    assert [node.tx_bytes for node in trial.measurement.nodes] == [5_000_000, 1000]


def test_headline_is_the_largest_all_reduce_and_its_smallest_latency():
    sizes = [(1000, 0.001), (4_000_000, 0.004)]
    rank = [collective([9.0], op="all_gather", size_bytes=8_000_000)]
    rank += [collective([seconds], size_bytes=size) for size, seconds in sizes]
    metrics = merge(make_case(WORKLOAD), outcome([rank, rank]), None).measurement.metrics
    assert metrics["algbw_gbyte_per_s"] == pytest.approx(1.0)
    assert metrics["busbw_gbyte_per_s"] == pytest.approx(1.0)
    assert metrics["latency_s"] == 0.001


def test_without_all_reduce_the_first_op_is_the_headline():
    rank = [collective([0.001], op="all_gather"), collective([0.002], op="reduce_scatter")]
    metrics = merge(make_case(WORKLOAD), outcome([rank, rank]), None).measurement.metrics
    assert metrics["algbw_gbyte_per_s"] == pytest.approx(1.0)


def test_one_wrong_rank_fails_the_trial_and_is_named():
    ranks = [[collective([0.1])], [collective([0.1], is_correct=False)]]
    trial = merge(make_case(WORKLOAD), outcome(ranks), None)
    assert trial.error is not None
    assert trial.error.kind is ErrorKind.WRONG_RESULT
    assert trial.error.rank == 1
    assert "all_reduce float32 of 1 MB" in trial.error.message
    assert trial.measurement.collectives[0].is_correct is False


def test_what_not_every_rank_measured_is_left_out():
    ranks = [[collective([0.1]), collective([0.2], size_bytes=2_000_000)], [collective([0.1])]]
    trial = merge(make_case(WORKLOAD), outcome(ranks), None)
    assert [row.size_bytes for row in trial.measurement.collectives] == [1_000_000]


@pytest.mark.parametrize("nodes", [1, 2])
def test_every_metric_is_known_and_a_number_or_a_reason(nodes):
    for messages in ([], [[collective([0.1])]] * nodes):
        measurement = merge(make_case(WORKLOAD, nodes=nodes), outcome(messages), None).measurement
        assert set(measurement.metrics) <= set(REGISTRY)
        nulls = {name for name, value in measurement.metrics.items() if value is None}
        assert nulls == set(measurement.missing)


def test_one_rank_has_no_bandwidth():
    trial = merge(make_case(WORKLOAD, nodes=1), outcome([[collective([0.1])]]), None)
    assert trial.measurement.metrics["busbw_gbyte_per_s"] is None
    assert trial.measurement.missing["busbw_gbyte_per_s"] == "one rank: no communication"


def test_an_unshaped_network_has_no_line_share():
    marks = between("all_reduce/float32/1000000", [counters(0, 0)] * 2, [counters(9, 9)] * 2)
    case = make_case(WORKLOAD, rate_gbps=None)
    measurement = merge(case, outcome([[collective([0.1])]] * 2, marks), None).measurement
    assert measurement.metrics["link_rate_gbps"] == pytest.approx(9 * 8 / 0.1 / 1e9)
    assert "unshaped" in measurement.missing["line_share_ratio"]
