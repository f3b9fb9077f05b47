"""Do the parts of a whole training add up, and is what nothing tells left unknown?"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.merging.outcomes import make_case, outcome, steps, summary

from broadgauge.merging.completion import METRIC_OF_PART, completion_of_command
from broadgauge.merging.merge import merge
from broadgauge.messages.rank import CommandSamples
from broadgauge.specs.completion import Completion, CompletionPart
from broadgauge.specs.launching import Mark
from broadgauge.specs.workload import CommandMetric, CommandWorkload, TrainWorkload

TRAIN = TrainWorkload(kind="train", warm_up_steps=2, batch_per_rank=4)
TOLD = replace(summary(), start_up_s=3.0, model_load_s=2.0, warm_up_s=5.0)


def trained(train: TrainWorkload = TRAIN, *ranks) -> Completion | None:
    said = [[steps("on/0", (0.5, 0.5, 0.5, 0.5), [1.0] * 4), rank] for rank in ranks or (TOLD,) * 2]
    return merge(make_case(train), outcome(said), None).measurement.completion


def adds_up(found: Completion) -> bool:
    known = [part for part in found.parts_s.values() if part is not None]
    return sum(known) == pytest.approx(found.total_s) and set(found.parts_s) == set(CompletionPart)


def test_a_training_without_an_epoch_is_the_steps_that_it_ran() -> None:
    found = trained()
    assert found is not None
    assert adds_up(found)
    assert not found.is_extrapolated
    assert found.parts_s == {
        "start_up": 3,
        "model_load": 2,
        "training": 6 * 0.5,
        "evaluation": 0,
        "checkpoints": 0,
        "other": 5 - 2 * 0.5,
    }


def test_epochs_are_extrapolated_from_the_measured_steps_and_marked_so() -> None:
    """Two ranks of 4: an epoch of 100 samples has 13 steps, 6 of 39 ran."""
    found = trained(TRAIN.model_copy(update={"epoch_samples": 100, "epochs": 3}))
    assert found is not None
    assert adds_up(found)
    assert found.is_extrapolated
    assert found.parts_s["training"] == pytest.approx(39 * 0.5)
    assert found.measured_ratio == pytest.approx(6 / 39)


def test_the_slowest_rank_counts_and_other_is_never_below_zero() -> None:
    quick = replace(TOLD, start_up_s=1.0, model_load_s=4.0, warm_up_s=0.1)
    found = trained(TRAIN, quick, replace(quick, start_up_s=2.0, model_load_s=1.0))
    assert found is not None
    assert adds_up(found)
    assert (found.parts_s["start_up"], found.parts_s["model_load"]) == (2, 4)
    assert found.parts_s["other"] == 0


def test_what_no_kernel_tells_is_unknown_and_an_older_rank_says_nothing() -> None:
    silent = replace(TOLD, start_up_s=None)
    found = trained(TRAIN, silent, TOLD)
    assert found is not None
    assert adds_up(found)
    assert found.parts_s["start_up"] is None
    assert "kernel" in found.unknown["start_up"]
    assert trained(TRAIN, summary(), summary()) is None


def command(*names: str, **files: str) -> CommandWorkload:
    metrics = tuple(
        CommandMetric(name=name, json_key=name)
        if name not in files
        else CommandMetric(name=name, trainer_state="out", key=files[name])
        for name in ("step_time_s", *names)
    )
    return CommandWorkload(kind="command", command=("train.py",), metrics=metrics)


def commanded(workload: CommandWorkload, total_s: float = 100.0, **samples) -> Completion | None:
    """`name=((value, seen at), …)`; a time of None: from a file."""
    said = CommandSamples(
        trial_id="t",
        samples={name: tuple(value for value, _ in pairs) for name, pairs in samples.items()},
        exit_code=0,
        seen_at_s={
            name: tuple(at for _, at in pairs)
            for name, pairs in samples.items()
            if pairs[0][1] is not None
        },
        first_seen_s={"step_time_s": samples["step_time_s"][0][1]}
        if "step_time_s" in samples
        else {},
    )
    marks = (
        Mark(label="command:begin", time_s=1000.0, nodes=()),
        Mark(label="command:end", time_s=1000.0 + total_s, nodes=()),
    )
    return completion_of_command(workload, [said], marks)


STEPS = tuple((1.0, 20.0 + n) for n in range(61))


def test_a_command_that_prints_steps_alone_tells_its_start_and_its_steps() -> None:
    found = commanded(command(), step_time_s=STEPS)
    assert found is not None
    assert adds_up(found)
    assert found.total_s == 100
    assert found.parts_s == {
        "start_up": 20,
        "model_load": None,
        "training": 60,
        "evaluation": None,
        "checkpoints": None,
        "other": 20,
    }
    assert set(found.unknown) == {"model_load", "evaluation", "checkpoints"}
    assert found.unknown["model_load"] == "no metric `model_load_time_s`; in `start_up`"


def test_printed_parts_are_taken_out_of_where_they_were() -> None:
    """One evaluation between steps, one behind them; the load before them."""
    found = commanded(
        command("model_load_time_s", "evaluation_time_s", "checkpoint_time_s"),
        step_time_s=STEPS,
        model_load_time_s=((5.0, 12.0),),
        evaluation_time_s=((7.0, 50.0), (7.0, 88.0)),
        checkpoint_time_s=((4.0, 95.0),),
    )
    assert found is not None
    assert adds_up(found)
    assert not found.unknown
    assert found.parts_s == {
        "start_up": 15,
        "model_load": 5,
        "training": 60 - 7,
        "evaluation": 14,
        "checkpoints": 4,
        "other": pytest.approx(100 - 15 - 5 - 53 - 14 - 4),
    }


def test_evaluations_of_a_file_have_no_times_so_that_training_is_unknown() -> None:
    found = commanded(
        command("evaluation_time_s", evaluation_time_s="eval_runtime"),
        step_time_s=STEPS,
        evaluation_time_s=((7.0, None), (7.0, None)),
    )
    assert found is not None
    assert adds_up(found)
    assert found.parts_s["evaluation"] == 14
    assert found.parts_s["training"] is None
    assert "from a file" in found.unknown["training"]


def test_a_command_s_own_training_time_comes_before_what_is_seen() -> None:
    found = commanded(
        command("training_time_s"), step_time_s=STEPS, training_time_s=((55.0, 90.0),)
    )
    assert found is not None
    assert found.parts_s["training"] == 55


def test_parts_that_are_not_apart_are_not_added() -> None:
    """transformers' train_runtime has evaluations in it."""
    found = commanded(
        command("training_time_s", "evaluation_time_s"),
        step_time_s=STEPS,
        training_time_s=((75.0, 99.0),),
        evaluation_time_s=((10.0, 99.0),),
    )
    assert found is not None
    assert adds_up(found)
    assert found.parts_s["training"] is None
    assert found.parts_s["evaluation"] == 10
    assert "not apart" in found.unknown["training"]


def test_a_figure_of_the_whole_run_says_nothing_of_when_steps_began() -> None:
    assert commanded(command(), step_time_s=((1.0, 99.0),)) is None
    assert commanded(command()) is None


@given(
    st.lists(st.floats(0, 1e4), min_size=2, max_size=5),
    st.dictionaries(st.sampled_from(sorted(METRIC_OF_PART.values())), st.floats(0, 1e4)),
    st.floats(0.1, 1e5),
)
def test_whatever_is_printed_the_known_parts_are_the_whole(times, printed, total_s) -> None:
    found = commanded(
        command(*METRIC_OF_PART.values()),
        total_s=total_s,
        step_time_s=tuple((1.0, at_s) for at_s in sorted(times)),
        **{name: ((value, max(times)),) for name, value in printed.items()},
    )
    if found is not None:
        assert adds_up(found)
        assert all(part is None or part >= 0 for part in found.parts_s.values())
        assert found.total_s == pytest.approx(total_s, rel=0.0101)
        assert set(found.unknown) == {name for name, s in found.parts_s.items() if s is None}
