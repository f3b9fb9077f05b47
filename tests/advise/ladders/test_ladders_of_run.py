"""Proves advise/ladders/: which cases are a ladder, and where two measurements of it disagree."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.advise.ladders.ladder_runs import (
    COMMAND_WITH_STEPS,
    COMPUTE_S,
    STEP_BYTES,
    Planted,
    ladder_run,
)
from tests.engine.making import COLLECTIVES, COMMAND, TRAIN

from broadgauge.advise.ladders.ladder import Ladder
from broadgauge.advise.ladders.ladders_of_run import ladders
from broadgauge.predict.sensitivity.curve import Form
from broadgauge.predict.sensitivity.ladder import LadderAnswer
from broadgauge.results.run_path import read_summary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.errors import InputError
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.records.record import Record


def only(path: Path, **wishes: object) -> Ladder:
    (ladder,) = ladders(read_summary(path), **wishes)  # type: ignore[arg-type]
    return ladder


def value(answer: LadderAnswer) -> float:
    assert answer.estimate is not None, answer.why
    return answer.estimate.value


def test_a_training_gives_its_bytes_and_agrees_with_what_was_measured_beside(
    tmp_path: Path,
) -> None:
    ladder = only(ladder_run(tmp_path))
    assert ladder.found is not None
    assert value(ladder.found.critical_bytes) == pytest.approx(STEP_BYTES, rel=0.02)
    assert value(ladder.found.base_s) == pytest.approx(COMPUTE_S, rel=0.02)
    assert ladder.counted_bytes is not None
    assert ladder.counted_bytes.value == pytest.approx(STEP_BYTES, rel=1e-6)
    assert [cost.is_apart for cost in ladder.costs] == [False] * 6
    assert ladder.disagreements == ()
    assert ladder.left_out == ()
    assert ladder.rungs[-1].case.network_name == "reference"
    assert [rung.is_unshaped for rung in ladder.found.rungs] == [False] * 5 + [True]
    assert ladder.found.rungs[-1].rate_gbps == 20.0


def test_without_an_unshaped_rung_a_line_has_no_floor(tmp_path: Path) -> None:
    ladder = only(ladder_run(tmp_path, has_reference=False))
    assert ladder.found is not None
    assert ladder.found.base_s.estimate is None
    assert ladder.found.curve_base_s.value == pytest.approx(COMPUTE_S, rel=0.02)
    assert [cost.is_apart for cost in ladder.costs] == [False] * 5


def test_bytes_that_no_link_carried_at_once_are_said(tmp_path: Path) -> None:
    """Each direction carries half, one after the other."""
    ladder = only(ladder_run(tmp_path, Planted(counted_bytes=STEP_BYTES / 2)))
    assert len(ladder.disagreements) == 1
    assert "one direction after the other" in ladder.disagreements[0]


def test_communication_that_no_rate_removes_is_said(tmp_path: Path) -> None:
    ladder = only(ladder_run(tmp_path, Planted(off_step_s=0.8 * COMPUTE_S)))
    assert all(cost.is_apart for cost in ladder.costs)
    (words,) = ladder.disagreements
    assert "network_cost_s disagrees at 6 of 6 rates" in words
    assert "10 ms of communication that no rate removes" in words


def test_a_rate_that_the_host_limits_is_no_rung(tmp_path: Path) -> None:
    ladder = only(ladder_run(tmp_path, Planted(ceiling_gbps=2.0)))
    assert ladder.found is not None
    assert [rung.rate_gbps for rung in ladder.found.rungs] == [0.1, 0.2, 0.4, 0.8, 2.0]
    (slow_host,) = ladder.left_out
    assert slow_host.summary.case.network_name == "rate-1.6"
    assert "less than twice the 1.6 Gbit/s" in slow_host.why


def test_a_host_bound_rung_below_the_base_refutes_it(tmp_path: Path) -> None:
    """Beyond the rates that count, the step falls on: the curve's flat end is none."""

    def falls_on(byte_s: float) -> float:
        return COMPUTE_S if byte_s > 8e-9 else 0.6 * COMPUTE_S

    planted = Planted(step_s=falls_on, ceiling_gbps=2.0, off_step_s=0.5 * COMPUTE_S)
    ladder = only(ladder_run(tmp_path, planted, has_reference=False))
    assert any("it goes on falling" in note for note in ladder.notes)


def test_bytes_by_the_lines_of_another_metric_are_not_told(tmp_path: Path) -> None:
    """Of a metric that is printed every tenth step a line's bytes are another's."""
    planted = Planted(lines_left_out={"images_per_s": 20})
    ladder = only(ladder_run(tmp_path, planted, workloads=[COMMAND_WITH_STEPS]))
    assert ladder.counted_bytes is None
    assert (
        ladder.counted_how
        == "the counters count by line of images_per_s, and step_time_s has others"
    )
    assert ladder.disagreements == ()


def test_a_commands_time_a_step_is_found_by_its_name_and_its_bytes_by_samples(
    tmp_path: Path,
) -> None:
    path = ladder_run(tmp_path, workloads=[COMMAND_WITH_STEPS])
    ladder = only(path)
    assert ladder.metric == "step_time_s"
    assert ladder.counted_bytes is not None
    assert ladder.counted_bytes.value == pytest.approx(STEP_BYTES, rel=1e-3)
    assert ladder.counted_how == "acknowledgements among them, by line of images_per_s"
    assert ladder.disagreements == ()
    assert ladder.costs == ()
    by_rate = only(path, metric="images_per_s")
    assert by_rate.is_inverse
    assert by_rate.found is not None
    assert value(by_rate.found.critical_bytes) == pytest.approx(STEP_BYTES / 32, rel=0.02)
    with pytest.raises(InputError, match="no such time or rate") as refused:
        only(path, metric="step_time")
    assert refused.value.hint == "one of images_per_s, step_time_s"


def test_a_command_of_one_time_needs_no_name(tmp_path: Path) -> None:
    assert only(ladder_run(tmp_path, workloads=[COMMAND])).metric == "epoch_time_s"


def test_two_rates_are_too_few_and_collectives_have_no_steps(tmp_path: Path) -> None:
    ladder = only(ladder_run(tmp_path / "few", rates_gbps=(0.1, 0.2)))
    assert ladder.found is None
    assert ladder.why == "2 rates can be used, and a curve needs 3"
    path = ladder_run(tmp_path / "none", workloads=[COLLECTIVES])
    with pytest.raises(InputError, match="no training and no command"):
        only(path)


def test_each_workload_is_a_ladder_of_its_own(tmp_path: Path) -> None:
    twin = TRAIN | {"name": "twin", "steps": 6}
    found = ladders(read_summary(ladder_run(tmp_path, workloads=[TRAIN, twin])))
    assert [ladder.label for ladder in found] == ["train 2x1", "twin 2x1"]
    assert all(len(ladder.rungs) == 6 for ladder in found)


def test_predictions_stand_beside_and_are_contradicted_where_they_are_wrong(
    tmp_path: Path,
) -> None:
    run = read_summary(ladder_run(tmp_path))
    right = {
        summary.case.key: replace(
            summary.estimates["step_time_s"],
            low=summary.estimates["step_time_s"].value * 0.9,
            high=summary.estimates["step_time_s"].value * 1.1,
        )
        for summary in run.candidates
    }
    (agreeing,) = ladders(run, predicted=right)
    assert len(agreeing.predicted) == 5
    assert agreeing.predicted_found is not None
    assert value(agreeing.predicted_found.critical_bytes) == pytest.approx(STEP_BYTES, rel=0.02)
    assert agreeing.disagreements == ()
    wrong = {key: _doubled(step) for key, step in right.items()}
    (disagreeing,) = ladders(run, predicted=wrong)
    (words,) = disagreeing.disagreements
    assert words.startswith("the predictor disagrees at 5 of 5 rates")


def _doubled(step: Estimate) -> Estimate:
    assert step.low is not None
    assert step.high is not None
    return replace(step, value=2 * step.value, low=2 * step.low, high=2 * step.high)


def test_overlap_shows_as_a_knee_and_hidden_bytes(tmp_path: Path) -> None:
    """A fifth goes at the end of the step, the rest beside 40 ms of compute."""

    def overlapped(byte_s: float) -> float:
        hidden_s = 0.8 * STEP_BYTES * byte_s
        return 0.01 + max(0.04, hidden_s) + 0.2 * STEP_BYTES * byte_s

    ladder = only(ladder_run(tmp_path, Planted(step_s=overlapped)))
    assert ladder.found is not None
    assert ladder.found.curve.form is Form.TWO_SLOPES
    assert value(ladder.found.critical_bytes) == pytest.approx(STEP_BYTES, rel=0.03)
    assert value(ladder.found.fast_bytes) == pytest.approx(0.2 * STEP_BYTES, rel=0.15)
    assert value(ladder.found.base_s) == pytest.approx(COMPUTE_S, rel=0.03)


@pytest.mark.parametrize(("launches", "is_kept"), [(4, False), (3, True)])
def test_a_block_that_a_resume_tore_apart_is_left_out_where_others_are_enough(
    tmp_path: Path, launches: int, is_kept: bool
) -> None:
    """Its last rungs ran the next day, on a machine half as fast."""
    run = read_summary(ladder_run(tmp_path, launches=launches))

    def moved(record: Record) -> Record:
        day_s = 86_400.0 * (record.block > 1 or (record.block == 1 and record.position >= 3))
        slower = 2.0 if record.block == 1 and day_s else 1.0
        return record.model_copy(
            update={
                "started_unix_s": record.started_unix_s + day_s,
                "ended_unix_s": record.ended_unix_s + day_s,
                "metrics": record.metrics
                | {"step_time_s": (record.metrics["step_time_s"] or 0) * slower},
            }
        )

    torn = summarise_run(
        folder=run.folder,
        plan=run.plan,
        records=[moved(record) for record in run.records],
        experiment_yaml=run.experiment_yaml,
        environments=run.environments,
    )
    (ladder,) = ladders(torn)
    assert ladder.found is not None
    (note,) = ladder.notes
    assert note.startswith("1 of ")
    assert ladder.found.rungs[0].step_s.launches == (launches if is_kept else launches - 1)
    assert ("drift" in note) == is_kept


def test_a_command_that_sends_over_other_interfaces_has_no_counted_bytes(tmp_path: Path) -> None:
    planted = Planted(counted_bytes=0)
    ladder = only(ladder_run(tmp_path, planted, workloads=[COMMAND_WITH_STEPS]))
    assert ladder.counted_bytes is None
    assert ladder.counted_how.endswith("it is sent over others")
    assert ladder.disagreements == ()
