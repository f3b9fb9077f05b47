"""Is a straggler's checkpoint charged to it, is the share told with what helps, and does a failed
trial name the checkpoint to go on from?
"""

import pytest

from broadgauge.advise.limits import CHECKPOINT_SHARE, STRAGGLING_SAVE
from broadgauge.advise.trial_findings import findings
from broadgauge.specs.case import Case
from broadgauge.specs.checkpoint_rows import CheckpointRow
from broadgauge.specs.record import ErrorKind, Finding, Record, Status, TrialError
from broadgauge.specs.workload import TrainWorkload


def a_case(**checkpoints) -> Case:
    train = {"kind": "train", "checkpoints": {"every_steps": 4} | checkpoints}
    return Case(
        workload=TrainWorkload.model_validate(train),
        network=None,
        nodes=1,
        ranks_per_node=2,
        device="cpu",
        backend="gloo",
        environment={},
    )


def a_row(after_step: int = 4, slowest_s: float = 0.1, **changes) -> CheckpointRow:
    facts = {
        "after_step": after_step,
        "stall_s": slowest_s,
        "slowest_rank": 1,
        "slowest_stall_s": slowest_s,
        "others_stall_s": 0.1,
        "durable_s": 1.0,
    }
    return CheckpointRow(**(facts | changes))


def a_record(*rows: CheckpointRow, share: float = 0.001, status: Status = Status.OK) -> Record:
    error = TrialError(kind=ErrorKind.CRASHED, message="node 1 is gone")
    return Record(
        record_id="b0.l0.t0",
        case_key="k",
        workload="train",
        network="one node",
        shape="1x2",
        launch_id="b0.l0",
        block=0,
        trial=0,
        position=0,
        started_unix_s=0,
        ended_unix_s=1,
        status=status,
        error=None if status is Status.OK else error,
        checkpoints=rows,
        metrics={
            "step_time_s": 0.5,
            "checkpoint_stall_s": 3.0,
            "checkpoint_share_ratio": share,
            "time_to_durable_s": 5.0,
        },
    )


def found(rule: str, record: Record, case: Case | None = None) -> list[Finding]:
    return [each for each in findings(case or a_case(), record) if each.rule == rule]


def test_a_straggler_is_named_with_the_save_that_it_was_late_with() -> None:
    late = a_row(8, 3.0, parts_s={"serialise": 0.1, "write": 2.9})
    (finding,) = found("checkpoint-straggler", a_record(a_row(4), late, a_row(12, 2.0)))
    assert finding.symptom == "all ranks waited for rank 1's checkpoint"
    assert finding.evidence[0] == "after step 8: 3 s, where the other ranks' took 100 ms"
    assert finding.evidence[1].startswith("2 of 3 checkpoints, 4.8 s")
    assert finding.evidence[2] == "of it write 2.9 s"
    assert finding.cause is not None
    assert "not data loading and not the network" in finding.cause


@pytest.mark.parametrize(
    "row",
    [
        a_row(slowest_s=0.1 * STRAGGLING_SAVE - 0.001),
        a_row(slowest_s=0.02, others_stall_s=0.001),  # less than a tenth of a step
        a_row(slowest_s=3.0, slowest_rank=None, others_stall_s=None),
    ],
)
def test_equal_short_and_lone_saves_are_no_stragglers(row: CheckpointRow) -> None:
    assert not found("checkpoint-straggler", a_record(row))


def test_all_wait_for_rank_0_where_it_saves_for_all() -> None:
    late = a_record(a_row(slowest_s=3.0, slowest_rank=0))
    assert found("checkpoint-straggler", late)
    assert not found("checkpoint-straggler", late, a_case(is_sharded=False))


@pytest.mark.parametrize(
    ("asked", "row", "fix"),
    [
        ({"is_sharded": False}, a_row(), "is_sharded: true"),
        ({"format": "dcp"}, a_row(), "dcp-async"),
        ({"format": "dcp-async"}, a_row(), "less often, or on a storage"),
        ({"format": "dcp-async"}, a_row(in_flight_s=0.09), "still in flight"),
    ],
)
def test_the_share_comes_with_what_helps_first(asked, row, fix) -> None:
    (finding,) = found("checkpoint-share", a_record(row, share=0.12), a_case(**asked))
    assert finding.symptom == "checkpoints take 12 % of the measured training"
    assert finding.fix is not None
    assert fix in finding.fix


def test_the_interval_is_youngs_of_the_measured_stall() -> None:
    """√(2 × 3 s × 86,400 s) = 720 s; lost: 3/720 + (360 + 5)/86,400 = 0.84 %."""
    (finding,) = found("checkpoint-share", a_record(a_row(), share=CHECKPOINT_SHARE))
    assert "a save every 12 min" in finding.evidence[1]
    assert "0.84 %" in finding.evidence[1]
    assert not found("checkpoint-share", a_record(a_row(), share=CHECKPOINT_SHARE - 1e-6))


def test_a_failed_trial_names_the_checkpoint_to_go_on_from() -> None:
    lost = a_row(8, durable_s=None, problem="rank 1 had not finished it when the trial ended")
    (finding,) = found("last-durable-checkpoint", a_record(a_row(4), lost, status=Status.FAILED))
    assert finding.symptom == "the last durable checkpoint is the one after step 4"
    assert finding.evidence == (f"the one after step 8 was lost: {lost.problem}",)
    (none,) = found("last-durable-checkpoint", a_record(lost, status=Status.FAILED))
    assert "no checkpoint was complete" in none.symptom
    assert not found("last-durable-checkpoint", a_record(a_row(4)))
    assert not found("last-durable-checkpoint", a_record(status=Status.FAILED))
