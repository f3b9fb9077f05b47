"""Do the messages between all pairs of nodes add up to rows and headline figures as defined?"""

import itertools
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.merging.outcomes import between, counters, make_case, message, outcome

from broadgauge.merging.merge import merge
from broadgauge.specs.records.record import ErrorKind
from broadgauge.specs.workloads.metrics import REGISTRY
from broadgauge.specs.workloads.workload import CollectivesWorkload

PAIRWISE = CollectivesWorkload(kind="collectives", pairwise=True)
PAIRS = list(itertools.permutations(range(3), 2))
TIMES = st.fixed_dictionaries(
    {pair: st.lists(st.floats(1e-6, 10), min_size=1, max_size=5) for pair in PAIRS}
)


def merged(times, *, marks=(), wrong=None, nodes=3):
    messages = [
        [
            message(pair, rank, seconds, size_bytes=size_bytes, is_correct=pair != wrong)
            for size_bytes, factor in ((1000, 0.001), (1_000_000, 1.0))
            for pair, seconds in (
                (pair, [factor * second for second in times[pair]]) for pair in times
            )
        ]
        for rank in range(nodes)
    ]
    return merge(make_case(PAIRWISE, nodes=nodes), outcome(messages, marks), None)


@given(TIMES)
def test_every_way_has_a_row_with_its_senders_times(times):
    rows = [r for r in merged(times).measurement.collectives if r.size_bytes == 1_000_000]
    assert [(row.from_rank, row.to_rank) for row in rows] == list(times)
    for row in rows:
        seconds = times[row.from_rank, row.to_rank]
        assert (row.op, row.iterations, row.is_correct) == ("send_recv", len(seconds), True)
        assert row.time_median_s == pytest.approx(median(seconds))
        assert row.busbw_gbyte_per_s == row.algbw_gbyte_per_s


@given(TIMES)
def test_the_slowest_pair_is_held_against_the_median_one(times):
    rates = [1e-3 / median(seconds) for seconds in times.values()]
    metrics = merged(times).measurement.metrics
    assert metrics["slowest_pair_ratio"] == pytest.approx(min(rates) / median(rates))
    assert metrics["slowest_pair_ratio"] <= 1


def test_headline_figures_are_those_of_the_median_pair():
    times = {pair: [0.01 * (1 + place)] for place, pair in enumerate(PAIRS)}
    trial = merged(times)
    metrics = trial.measurement.metrics
    # Of six the third slowest, 40 ms: no pair lies in the middle.
    assert metrics["algbw_gbyte_per_s"] == pytest.approx(1e-3 / 0.04)
    assert metrics["busbw_gbyte_per_s"] == metrics["algbw_gbyte_per_s"]
    assert metrics["latency_s"] == pytest.approx(35e-6)
    assert trial.error is None
    assert set(metrics) <= set(REGISTRY)
    nulls = {name for name, value in metrics.items() if value is None}
    assert nulls == set(trial.measurement.missing)


def test_wire_bytes_are_counted_between_the_pairs_own_marks():
    times = {pair: [0.1, 0.1] for pair in PAIRS}
    label = "send_recv/float32/1000000/0-1"
    before = [counters(0, 0)] * 3
    after = [counters(2_100_000, 9_000), counters(9_000, 2_100_000), counters(0, 0)]
    trial = merged(times, marks=between(label, before, after))
    row = next(r for r in trial.measurement.collectives if r.wire_bytes is not None)
    assert (row.from_rank, row.to_rank, row.size_bytes) == (0, 1, 1_000_000)
    assert row.wire_bytes == pytest.approx(1_050_000)
    assert row.amplification_ratio == pytest.approx(1.05)


def test_a_message_that_did_not_arrive_as_sent_is_blamed_on_its_receiver():
    trial = merged({pair: [0.1] for pair in PAIRS}, wrong=(2, 1))
    assert trial.error is not None
    assert (trial.error.kind, trial.error.rank) == (ErrorKind.WRONG_RESULT, 1)
    wrong = [r for r in trial.measurement.collectives if r.is_correct is False]
    assert {(row.from_rank, row.to_rank) for row in wrong} == {(2, 1)}


def test_two_ends_have_no_other_pairs():
    measurement = merged({(0, 1): [0.1], (1, 0): [0.2]}, nodes=2).measurement
    assert measurement.metrics["slowest_pair_ratio"] is None
    assert "two ends" in measurement.missing["slowest_pair_ratio"]
