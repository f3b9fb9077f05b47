"""Proves probes/metric_files.py: only what this command wrote, and a reason for everything else."""

import json
import os
from pathlib import Path

import pytest

from broadgauge.probes.command_output import SampleReader
from broadgauge.probes.metric_files import numbers_left, seen_before
from broadgauge.specs.tasks import command_task
from broadgauge.specs.workload import CommandMetric, CommandWorkload

from .test_event_files import record, scalar

LOSS = CommandMetric(name="loss", trainer_state="out", key="loss", skip_first=1)
TAG = CommandMetric(name="loss", tensorboard="out", tag="train/loss")


def source(metric: CommandMetric):
    workload = CommandWorkload(kind="command", command=("t.py",), metrics=(metric,))
    (found,) = command_task(workload).metrics
    return found


def state(*losses: object) -> str:
    return json.dumps({"log_history": [{"step": i, "loss": each} for i, each in enumerate(losses)]})


def put(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def left(metric: CommandMetric, folder: Path, before=None):
    return numbers_left(source(metric), folder, before or {})


def test_the_newest_checkpoint_has_them_all(tmp_path: Path) -> None:
    put(tmp_path / "out/checkpoint-2/trainer_state.json", state(3, 2.5))
    put(tmp_path / "out/checkpoint-10/trainer_state.json", state(3, 2.5, 2, "nan", True, None))
    os.utime(tmp_path / "out/checkpoint-2/trainer_state.json", (1, 1))
    assert left(LOSS, tmp_path).values == (3.0, 2.5, 2.0)
    reader = SampleReader((source(LOSS),))
    reader.take_found("loss", left(LOSS, tmp_path))
    assert reader.samples == {"loss": (2.5, 2.0)}  # without the first
    assert reader.missing() == {}


@pytest.mark.parametrize("metric", [LOSS, TAG])
def test_what_was_there_before_the_command_does_not_count(metric, tmp_path: Path) -> None:
    places = [tmp_path / "out/trainer_state.json", tmp_path / "out/runs/a/events.out.tfevents.1.h"]
    contents = [state(9), record(scalar("train/loss", 9.0))]
    for place, content in zip(places, contents, strict=True):
        put(place, content)
        os.utime(place, (1, 1))
    before = seen_before((source(metric),), tmp_path)
    assert len(before) == 1
    found = left(metric, tmp_path, before)
    assert found.values == ()
    assert found.why is not None
    assert "the command has written no" in found.why
    if metric is LOSS:
        put(places[0], state(9, 8))
        assert left(metric, tmp_path, before).values == (9.0, 8.0)
    else:
        put(tmp_path / "out/runs/b/events.out.tfevents.2.h", record(scalar("train/loss", 7.0)))
        assert left(metric, tmp_path, before).values == (7.0,)


def test_event_files_are_put_in_the_order_of_their_times(tmp_path: Path) -> None:
    for name, wall_s in (("a", 5.0), ("b", 1.0)):
        data = record(scalar("train/loss", wall_s * 10, wall_s))
        put(tmp_path / f"out/{name}/events.out.tfevents.1.h", data)
    assert left(TAG, tmp_path).values == (10.0, 50.0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "out/trainer_state.json is no JSON"),
        (b"\xff\xfe\x00", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "has no list `log_history`"),
        ('{"log_history": {}}', "has no list `log_history`"),
        ('{"log_history": [1, {"loss": "a"}]}', "no entry of log_history in out/trainer_state"),
    ],
)
def test_a_state_that_says_nothing_says_why(content, said: str, tmp_path: Path) -> None:
    put(tmp_path / "out/trainer_state.json", content)
    found = left(LOSS, tmp_path)
    assert found.why is not None
    assert said in found.why
    reader = SampleReader((source(LOSS),))
    reader.take_found("loss", found)
    assert reader.missing() == {"loss": f"metric `loss`: {found.why}"}


def test_no_folder_a_pipe_and_another_tag(tmp_path: Path) -> None:
    assert left(TAG, tmp_path).why == "the command has written no events.out.tfevents.* in out"
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out/events.out.tfevents.1.h")
    assert left(TAG, tmp_path).why == "the command has written no events.out.tfevents.* in out"
    put(tmp_path / "out/events.out.tfevents.2.h", record(scalar("eval/loss", 1.0)))
    assert left(TAG, tmp_path).why == "no scalar `train/loss` in 1 event file(s) of out"
    put(tmp_path / "out/events.out.tfevents.2.h", record(scalar("train/loss", 1.0)) + b"\1")
    found = left(TAG, tmp_path)
    assert found.values == (1.0,)
    assert found.why is not None
    assert found.why.startswith("events.out.tfevents.2.h ends within a record")


def test_numbers_too_large_for_a_float_are_left_out(tmp_path: Path) -> None:
    put(tmp_path / "out/trainer_state.json", '{"log_history": [{"loss": 1' + "0" * 400 + "}]}")
    reader = SampleReader((source(LOSS),))
    reader.take_found("loss", left(LOSS, tmp_path))
    assert reader.samples == {"loss": ()}
    assert reader.notes == ("metric `loss`: 1 number(s) not finite, left out",)
