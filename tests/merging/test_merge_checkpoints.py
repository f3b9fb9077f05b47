"""Is what a training stands still for its checkpoints charged to them, to the rank that was slow,
and to nothing else? Which checkpoint would a job go on from?
"""

from dataclasses import replace

import pytest
from tests.merging.outcomes import make_case, outcome, steps, summary

from broadgauge.merging.merge import merge
from broadgauge.messages.checkpoints import CheckpointBegun, CheckpointSaved
from broadgauge.messages.codec import decode, encode
from broadgauge.messages.rank import BLOCK, StepsBlock
from broadgauge.specs.checkpoint_rows import MOST_CHECKPOINT_ROWS, last_complete
from broadgauge.specs.record import Measurement
from broadgauge.specs.workload import TrainWorkload

TRAIN = TrainWorkload.model_validate(
    {"kind": "train", "warm_up_steps": 2, "checkpoints": {"every_steps": 2}}
)


def begun(after: int) -> CheckpointBegun:
    return CheckpointBegun(trial_id="t", after_step=after, name=f"step-{after:08d}")


def saved(after: int, stall_s: float, durable_s: float | None = 1.0, **more) -> CheckpointSaved:
    told = {"in_flight_s": 0.0, "durable_evidence": "fsynced", "num_bytes": 10**9} | more
    return CheckpointSaved(
        trial_id="t",
        after_step=after,
        name=f"step-{after:08d}",
        stall_s=stall_s,
        durable_s=durable_s,
        **told,
    )


def block(seconds, gaps_s, beside=()) -> StepsBlock:
    whole = steps("on/0", seconds, [1.0] * len(seconds))
    return replace(whole, save_gaps_s=tuple(gaps_s), are_beside_saves=tuple(beside))


def merged(*ranks, train: TrainWorkload = TRAIN) -> Measurement:
    return merge(make_case(train), outcome(ranks), None).measurement


QUICK = [begun(2), saved(2, 0.1), begun(4), saved(4, 0.1)]
SLOW = [begun(2), saved(2, 0.1), begun(4), saved(4, 3.0, 5.0, parts_s={"write": 2.9})]
STRAGGLING = (
    [block([0.5] * 4, [0, 0.1, 0, 3.0]), steps("off/0", [0.2] * 4, [1.0] * 4), *QUICK],
    [block([0.5] * 4, [0, 0.1, 0, 3.1]), steps("off/0", [0.2] * 4, [1.0] * 4), *SLOW],
)


def test_a_straggler_is_in_the_checkpoint_and_not_in_the_step_or_the_network() -> None:
    found = merged(*STRAGGLING)
    assert found.metrics["step_time_s"] == pytest.approx(0.5)
    assert found.metrics["network_cost_s"] == pytest.approx(0.3)
    assert found.metrics["checkpoint_stall_s"] == pytest.approx((0.1 + 3.1) / 2)
    assert found.metrics["checkpoint_share_ratio"] == pytest.approx(3.2 / 5.2)
    assert found.metrics["step_time_with_saves_s"] == pytest.approx(5.2 / 4)
    assert found.metrics["time_to_durable_s"] == pytest.approx((1 + 5) / 2)
    even, slow = found.checkpoints
    assert (slow.after_step, slow.slowest_rank, slow.slowest_stall_s) == (4, 1, 3.0)
    assert (slow.others_stall_s, slow.stall_s, slow.durable_s) == (0.1, 3.1, 5.0)
    assert slow.parts_s == {"write": 2.9}
    assert (slow.num_bytes, slow.gbyte_per_s) == (2 * 10**9, pytest.approx(0.4))
    assert even.stall_s == pytest.approx(0.1)


def test_ranks_that_know_of_no_saves_say_what_they_always_said() -> None:
    old = [[steps("on/0", [0.4, 0.6], [1.0, 1.0]), summary()]] * 2
    found = merged(*old, train=TrainWorkload(kind="train"))
    assert found.metrics["step_time_s"] == pytest.approx(0.5)
    assert "checkpoint_stall_s" not in found.metrics
    assert found.checkpoints == ()


def test_steps_beside_a_save_are_told_apart_from_quiet_ones() -> None:
    """Two of four run while it is written: 0.4 s longer both together, which is no network cost."""
    said = [
        block([0.5, 0.5, 0.8, 0.6, 0.5], [0, 0.1, 0, 0, 0], [False, False, True, True, False]),
        steps("off/0", [0.2] * 5, [1.0] * 5),
        begun(2),
        saved(2, 0.1),
    ]
    quiet = [*said]
    quiet[0] = block([0.5, 0.5, 0.7, 0.6, 0.5], [0, 0.1, 0, 0, 0], [False] * 5)
    found = merged(said, quiet)
    assert found.metrics["step_time_s"] == pytest.approx(0.5)
    assert found.metrics["network_cost_s"] == pytest.approx(0.3)
    row = found.checkpoints[0]
    assert (row.steps_beside, row.slowed_s) == (2, pytest.approx(0.4))


def test_where_no_step_is_quiet_the_network_cost_is_unknown() -> None:
    said = [
        block([0.5, 0.8], [0.1, 0.1], [True, True]),
        steps("off/0", [0.2] * 2, [1.0] * 2),
        begun(1),
        saved(1, 0.1),
    ]
    found = merged(said, said)
    assert found.metrics["step_time_s"] == pytest.approx(0.65)
    assert found.metrics["network_cost_s"] is None
    assert "beside a checkpoint" in found.missing["network_cost_s"]
    assert found.checkpoints[0].slowed_s is None


def test_a_node_that_is_lost_in_a_save_leaves_the_one_before_as_the_last() -> None:
    """Rank 1 never said that its part after step 4 is there, and the block of steps never ended."""
    found = merged([begun(2), saved(2, 0.1), begun(4), saved(4, 0.1)], [begun(2), saved(2, 0.2)])
    kept, lost = found.checkpoints
    assert last_complete(found.checkpoints) == kept
    assert kept.is_complete
    assert not lost.is_complete
    assert "rank 1 had not finished" in lost.problem
    assert (lost.stall_s, lost.durable_s) == (None, None)
    assert found.metrics["checkpoint_stall_s"] is None
    assert last_complete(found.checkpoints[1:]) is None


def test_what_is_not_known_to_be_durable_says_why() -> None:
    unknown = saved(2, 0.1, None, durable_evidence="the mount's bucket can't be asked")
    row = merged([begun(2), unknown], [begun(2), saved(2, 0.1)]).checkpoints[0]
    assert row.durable_s is None
    assert row.durable_evidence == "the mount's bucket can't be asked"
    assert row.is_complete


def test_the_newest_of_many_are_kept() -> None:
    many = range(1, MOST_CHECKPOINT_ROWS + 11)
    rows = merged(*[[each for n in many for each in (begun(n), saved(n, 0.1))]] * 2).checkpoints
    assert [row.after_step for row in rows] == list(many)[10:]


def test_what_a_rank_says_of_a_save_comes_back() -> None:
    for said in (begun(2), saved(2, 0.1, None, parts_s={"write": 1.0}), STRAGGLING[0][0]):
        assert BLOCK(encode(said)) == said
        assert decode(type(said), encode(said)) == said


TOLD = replace(summary(), start_up_s=3.0, model_load_s=2.0, warm_up_s=5.0)


@pytest.mark.parametrize(("more", "expected_s"), [({}, 0.5), ({"epoch_samples": 96}, 6 * 0.25)])
def test_the_whole_training_stands_still_for_its_checkpoints(more, expected_s) -> None:
    """4 measured steps with two saves of 0.25 s; an epoch of 12 steps has 6."""
    train = TrainWorkload.model_validate(
        TRAIN.model_dump(exclude_defaults=True) | {"kind": "train", "batch_per_rank": 4} | more
    )
    said = [block([0.5] * 4, [0, 0.25, 0, 0.25]), begun(2), saved(2, 0.1), begun(4), saved(4, 0.1)]
    completion = merged([*said, TOLD], [*said, TOLD], train=train).completion
    assert completion is not None
    assert completion.parts_s["checkpoints"] == pytest.approx(expected_s)
    assert sum(completion.parts_s.values()) == pytest.approx(completion.total_s)
