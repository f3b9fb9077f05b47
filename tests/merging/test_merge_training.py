"""Do the ranks' steps, with and without communication, add up as the registry says?"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.merging.outcomes import between, counters, make_case, outcome, steps, summary

from broadgauge.merging.merge import merge
from broadgauge.merging.training import ring_step_bytes
from broadgauge.messages.codec import decode, encode
from broadgauge.messages.rank import RankGroup, StepCollective, TrainSummary
from broadgauge.messages.vocabulary import StepMode
from broadgauge.specs.records.record import ErrorKind
from broadgauge.specs.workloads.metrics import REGISTRY
from broadgauge.specs.workloads.workload import TrainWorkload

WORKLOAD = TrainWorkload(kind="train")
TWO_RANKS = [
    [
        steps("on/0", [0.4, 0.6], [2.0, 1.0]),
        steps("off/0", [0.1, 0.1], [9.0, 9.0]),
        steps("on/1", [0.5, 0.5], [0.8, 0.6]),
        steps("off/1", [0.2, 0.1], [9.0, None]),
        summary(),
    ],
    [
        steps("on/0", [0.5, 0.5], [4.0, 3.0]),
        steps("off/0", [0.1, 0.2], [9.0, 9.0]),
        steps("on/1", [0.4, 0.4], [0.4, 0.2]),
        steps("off/1", [0.1, 0.1], [9.0, 9.0]),
        summary(peak_memory_bytes=200),
    ],
]
MARKS = [
    *between("on/0", [counters(0, 0)] * 2, [counters(2_400_000, 2_000_000, 1.5)] * 2),
    *between("off/0", [counters(0, 0)] * 2, [counters(99_000_000, 0)] * 2),
    *between("on/1", [counters(0, 0)] * 2, [counters(2_000_000, 2_400_000, 0.5)] * 2),
]


def test_times_and_network_cost():
    trial = merge(make_case(WORKLOAD), outcome(TWO_RANKS, MARKS), None)
    metrics = trial.measurement.metrics
    assert trial.series["step_time_s"] == (0.5, 0.6, 0.5, 0.5)
    assert trial.series["step_without_communication_s"] == (0.1, 0.2, 0.2, 0.1)
    assert metrics["step_time_s"] == pytest.approx(0.525)
    assert metrics["network_cost_s"] == pytest.approx(0.525 - 0.15)
    assert metrics["network_share_ratio"] == pytest.approx(0.375 / 0.525)
    assert metrics["tokens_per_s"] == pytest.approx(512 / 0.525)
    assert metrics["samples_per_s"] == pytest.approx(4 / 0.525)
    assert metrics["peak_memory_bytes"] == 200


def test_loss_is_the_mean_over_ranks_and_the_last_block():
    trial = merge(make_case(WORKLOAD), outcome(TWO_RANKS), None)
    assert trial.series["loss"] == pytest.approx((3.0, 2.0, 0.6, 0.4))
    assert trial.measurement.metrics["loss"] == pytest.approx(0.5)


def test_wire_bytes_are_those_of_the_communicating_steps():
    """4.4 MB each way in 4 steps; a ring of 2 ranks moves the 1 MB of gradients once."""
    measurement = merge(make_case(WORKLOAD), outcome(TWO_RANKS, MARKS), None).measurement
    assert measurement.metrics["wire_bytes"] == pytest.approx(1_100_000)
    assert measurement.metrics["amplification_ratio"] == pytest.approx(1.1)
    assert measurement.metrics["link_rate_gbps"] == pytest.approx(1_100_000 * 8 / 0.525 / 1e9)
    assert measurement.metrics["cpu_s_per_gbyte"] == pytest.approx(4 / 0.0088)
    assert measurement.metrics["cpu_busy_ratio"] == pytest.approx(2 / (2 * 2))
    assert measurement.nodes[0].elapsed_s == pytest.approx(2.0)


def sending(*collectives):
    """The two ranks' trial, each saying that a step made these collectives."""
    told = replace(summary(), collectives=collectives)
    return [[*rank[:-1], told] for rank in TWO_RANKS]


def measured(collectives, **shape):
    return merge(
        make_case(WORKLOAD, **shape), outcome(sending(*collectives), MARKS), None
    ).measurement


@pytest.mark.parametrize(
    ("collectives", "ring_bytes"),
    [
        ([StepCollective(op="all_reduce", size_bytes=250_000, count=2)], 500_000),
        (
            [
                StepCollective(op="all_gather", size_bytes=300_000, count=4),
                StepCollective(op="reduce_scatter", size_bytes=1_000_000),
            ],
            600_000 + 500_000,
        ),
    ],
)
def test_wire_bytes_are_held_against_the_collectives_of_the_step(collectives, ring_bytes):
    """1.1 MB on the wire; a ring of two sends S for all_reduce, S/2 for the others."""
    measurement = measured(collectives)
    assert measurement.metrics["wire_bytes"] == pytest.approx(1_100_000)
    assert measurement.metrics["amplification_ratio"] == pytest.approx(1_100_000 / ring_bytes)


def test_collectives_of_a_part_of_the_ranks_count_by_their_groups():
    """HSDP on 2 x 2: shards are gathered inside a node, and each of a node's two ranks reduces its
    shard with its partner on the other node."""
    inside, across = RankGroup(size=2, stride=1), RankGroup(size=2, stride=2)
    each = [
        StepCollective(op="all_gather", size_bytes=1_000_000, group=inside),
        StepCollective(op="all_reduce", size_bytes=500_000, group=across),
    ]
    assert ring_step_bytes(
        replace(summary(), collectives=each), make_case(WORKLOAD, ranks_per_node=2)
    ) == pytest.approx(2 * 500_000)


def test_traced_steps_count_for_nothing():
    """Neither as steps nor as steps without communication."""
    traced = [
        [replace(steps("traced/0", [9.9, 9.9], [7.0, 7.0]), mode=StepMode.TRACED), *rank]
        for rank in TWO_RANKS
    ]
    with_them = merge(make_case(WORKLOAD), outcome(traced, MARKS), None)
    without = merge(make_case(WORKLOAD), outcome(TWO_RANKS, MARKS), None)
    assert with_them == without


def test_a_summary_of_an_older_version_is_one_all_reduce():
    """It says no collectives, on the wire of the ranks too."""
    told = encode(summary())
    del told["collectives"]
    assert decode(TrainSummary, told) == summary()


def test_the_record_says_which_text_was_read():
    assert merge(make_case(WORKLOAD), outcome(TWO_RANKS), None).measurement.data == "made up"
    untold = merge(make_case(WORKLOAD), outcome([[], []]), None).measurement
    assert untold.data is None


def test_mfu_needs_a_peak():
    with_peak = merge(make_case(WORKLOAD), outcome(TWO_RANKS), 1e10).measurement
    assert with_peak.metrics["mfu_ratio"] == pytest.approx(1e9 / (0.525 * 1e10))
    without = merge(make_case(WORKLOAD), outcome(TWO_RANKS), None).measurement
    assert "no peak" in without.missing["mfu_ratio"]


def test_one_rank_has_no_network_cost():
    messages = [[steps("on/0", [0.1], [1.0]), summary()]]
    measurement = merge(make_case(WORKLOAD, nodes=1), outcome(messages), None).measurement
    assert measurement.metrics["step_time_s"] == 0.1
    for name in ("network_cost_s", "network_share_ratio", "step_without_communication_s"):
        assert measurement.missing[name] == "one rank: no communication"


def test_communication_off_not_wanted_is_the_reason():
    case = make_case(WORKLOAD.model_copy(update={"communication_off": False}))
    messages = [[steps("on/0", [0.1], [1.0]), summary()]] * 2
    measurement = merge(case, outcome(messages), None).measurement
    assert "communication_off" in measurement.missing["network_cost_s"]


def test_a_loss_that_is_not_finite_has_no_number():
    messages = [[steps("on/0", [0.1, 0.1], [1.0, None]), summary()]] * 2
    trial = merge(make_case(WORKLOAD), outcome(messages), None)
    assert trial.series["loss"] == (1.0, None)
    assert trial.measurement.missing["loss"] == "the loss is not finite"


def test_ranks_with_other_weights_fail_the_trial():
    messages = [[steps("on/0", [0.1], [1.0]), summary(checksum)] for checksum in (5.0, 5.0, 5.1)]
    trial = merge(make_case(WORKLOAD, nodes=3), outcome(messages), None)
    assert trial.error is not None
    assert trial.error.kind is ErrorKind.WRONG_RESULT
    assert trial.error.rank == 2


@pytest.mark.parametrize(
    ("read", "is_refused"),
    [
        ({"text": "a.txt"}, True),
        ({"data": {"jsonl": "a.jsonl"}}, True),
        ({}, False),  # Python's sources, of which hosts have different versions
        ({"data": {"prepared": "a"}}, False),  # ranks compare the sets' keys before they begin
    ],
)
def test_ranks_that_read_different_texts_fail_the_trial(read, is_refused):
    told = ("a, 500 bytes", "a, 500 bytes", "a, 20 bytes")
    messages = [[steps("on/0", [0.1], [1.0]), replace(summary(), data=data)] for data in told]
    train = TrainWorkload.model_validate({"kind": "train"} | read)
    error = merge(make_case(train, nodes=3), outcome(messages), None).error
    assert (error is not None) is is_refused
    if error is not None:
        assert (error.kind, error.rank) == (ErrorKind.WRONG_RESULT, 2)
        assert "rank 2 read other data than rank 0: a, 20 bytes; and a, 500" in error.message


@given(st.lists(st.lists(st.floats(0.01, 5), min_size=3, max_size=3), min_size=2, max_size=5))
def test_more_network_cost_in_every_step_is_found_as_such(times):
    """Adding 23 ms to all steps with communication adds 23 ms to the cost, whatever they took."""

    def cost(extra_s):
        messages = [
            [
                steps("on/0", [s + extra_s for s in rank], [1.0] * 3),
                steps("off/0", [0.1] * 3, [1.0] * 3),
                summary(),
            ]
            for rank in times
        ]
        case = make_case(WORKLOAD, nodes=len(times))
        return merge(case, outcome(messages), None).measurement.metrics["network_cost_s"]

    assert cost(0.023) - cost(0.0) == pytest.approx(0.023)


@pytest.mark.parametrize("messages", [[], [[], []], [[steps("on/0", [0.1], [1.0])], []]])
def test_a_failed_trial_is_merged_as_far_as_it_goes(messages):
    measurement = merge(make_case(WORKLOAD), outcome(messages), 1e12).measurement
    assert set(measurement.metrics) <= set(REGISTRY)
    nulls = {name for name, value in measurement.metrics.items() if value is None}
    assert nulls == set(measurement.missing)
