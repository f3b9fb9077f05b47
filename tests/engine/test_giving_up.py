"""Are cases that would only fail again skipped, and no others?"""

from collections import Counter
from pathlib import Path

import pytest
from tests.engine.fake_platform import Failure, Script
from tests.engine.making import a_plan, make_folder, run_in

from broadgauge.specs.plan import Plan
from broadgauge.specs.records.failures import is_alike
from broadgauge.specs.records.record import ErrorKind, Status, TrialError

AT_A_LINE = Failure(kind=ErrorKind.CRASHED, rank=1, frame="train.py:9 in step")
WITHOUT_A_LINE = Failure(kind=ErrorKind.KILLED, message="rank 1 was ended by SIGKILL after 3.2 s")


def first_case(plan: Plan) -> list[str]:
    """The trials of the case that runs first."""
    key = plan.launches[0].trials[0].case_key
    return [
        trial.trial_id
        for launch in plan.launches
        for trial in launch.trials
        if trial.case_key == key
    ]


def outcomes(tmp_path: Path, failure: Failure, num_failing: int, **plan: object) -> list[Status]:
    """Of the case that runs first and fails so often, in the order of its trials."""
    planned = a_plan().model_copy(update=plan)
    trials = first_case(planned)
    folder = make_folder(tmp_path, planned)
    run_in(folder, Script(failures=dict.fromkeys(trials[:num_failing], failure)))
    records = {record.record_id: record for record in folder.records}
    assert Counter(record.status for record in folder.records)[Status.OK] > 0, "others go on"
    assert len(records) == sum(len(launch.trials) for launch in planned.launches)
    return [records[trial].status for trial in trials]


def test_a_failure_at_a_line_of_the_ranks_own_is_enough(tmp_path: Path) -> None:
    first, *others = outcomes(tmp_path, AT_A_LINE, 99)
    assert first is Status.FAILED
    assert others
    assert set(others) == {Status.SKIPPED}


def test_keep_going_runs_them_all(tmp_path: Path) -> None:
    assert set(outcomes(tmp_path, AT_A_LINE, 99, keep_going=True)) == {Status.FAILED}


def test_two_alike_are_needed_where_no_line_is_known(tmp_path: Path) -> None:
    first, second, *others = outcomes(tmp_path, WITHOUT_A_LINE, 99)
    assert (first, second) == (Status.FAILED, Status.FAILED)
    assert set(others) <= {Status.SKIPPED}


def test_once_may_be_chance_where_no_line_is_known(tmp_path: Path) -> None:
    first, *others = outcomes(tmp_path, WITHOUT_A_LINE, 1)
    assert first is Status.FAILED
    assert set(others) == {Status.OK}


@pytest.mark.parametrize(
    "kind", [ErrorKind.LAUNCHER_LOST, ErrorKind.NOT_STARTED, ErrorKind.NO_SPACE]
)
def test_what_the_machine_did_gives_no_case_up(tmp_path: Path, kind: ErrorKind) -> None:
    assert set(outcomes(tmp_path, Failure(kind=kind), 99)) == {Status.FAILED}


def test_the_reason_of_a_skipped_trial_is_the_failure(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, a_plan())
    failed, *skipped = first_case(folder.plan)
    run_in(folder, Script(failures={failed: AT_A_LINE}))
    error = next(r.error for r in folder.records if r.record_id == skipped[0])
    assert error is not None
    assert error.message.startswith("not run, since it failed so before: ")
    assert (error.rank, error.frame) == (1, "train.py:9 in step")


def test_alike_is_the_same_rank_at_the_same_line_or_in_the_same_words() -> None:
    error = TrialError(kind=ErrorKind.HUNG, rank=1, message="silent for 3.1 s")
    assert is_alike(error, error.model_copy(update={"message": "silent for 44 s"}))
    assert not is_alike(error, error.model_copy(update={"message": "no such file"}))
    assert not is_alike(error, error.model_copy(update={"rank": 0}))
    at_a_line = error.model_copy(update={"frame": "a.py:1 in f"})
    assert is_alike(at_a_line, at_a_line.model_copy(update={"message": "other words"}))
    assert not is_alike(at_a_line, error)
    assert not is_alike(error, None)
