"""Are the metrics found in whatever a command prints, in bounded memory?"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.probes.command_output import (
    MAX_LINE_BYTES,
    MAX_SAMPLES,
    LineSplitter,
    SampleReader,
)
from broadgauge.specs.workloads.workload import CommandMetric

BY_REGEX = CommandMetric(name="step_s", regex=r"step took ([\d.einfa,+-]+) s")
BY_KEY = CommandMetric(name="loss", json_key="train.loss")


def read(lines, *metrics):
    reader = SampleReader(metrics)
    for line in lines:
        reader.feed(line)
    return reader


@given(st.lists(st.text("abc é", max_size=20)), st.lists(st.integers(1, 9)))
def test_lines_do_not_depend_on_how_they_are_cut(lines, cuts):
    data, splitter, found = "\n".join(lines).encode(), LineSplitter(), []
    for size in [*cuts, len(data)]:
        found += splitter.feed(data[:size])
        data = data[size:]
    found += splitter.feed(data) + splitter.finish()
    assert found == [line for line in lines if line]


def test_an_endless_line_takes_bounded_memory_and_ends():
    splitter, found = LineSplitter(), []
    for _ in range(100):
        found += splitter.feed(b"x" * 10_000)
    found += splitter.feed(b"\nstep took 2 s\n")
    assert [line[:4] for line in found] == ["xxxx", "step"]
    assert max(map(len, found)) <= MAX_LINE_BYTES
    assert splitter.finish() == []


def test_regex_takes_every_match():
    reader = read(["step took 1.5 s, step took 2e-1 s", "nothing", "step took 1,000.0 s"], BY_REGEX)
    assert reader.samples == {"step_s": (1.5, 0.2, 1000.0)}


def test_json_lines_step_into_objects_after_a_prefix():
    lines = [
        json.dumps({"train": {"loss": 1.5}}),
        "12:00:01 INFO " + json.dumps({"train": {"loss": 1}}),
        json.dumps({"train": {"loss": True}}),
        json.dumps({"train": 3}),
        '{"train": {"loss": 1',
        '{"train": {"loss": 1' + "0" * 400 + "}}",
        "{" * 5000,
    ]
    reader = read(lines, BY_KEY)
    assert reader.samples == {"loss": (1.5, 1.0)}
    assert "1 number(s) not finite" in reader.notes[0]


@pytest.mark.parametrize("text", ["nan", "inf", "-inf"])
def test_numbers_that_are_not_finite_are_noted(text):
    reader = read([f"step took {text} s", "step took 1 s"], BY_REGEX)
    assert reader.samples == {"step_s": (1.0,)}
    assert reader.notes == ("metric `step_s`: 1 number(s) not finite, left out",)


def test_warm_up_samples_are_skipped_and_said_to_be():
    metric = BY_REGEX.model_copy(update={"skip_first": 2})
    lines = [f"step took {n} s" for n in range(4)]
    assert read(lines, metric).samples == {"step_s": (2.0, 3.0)}
    missing = read(lines[:2], metric).missing()["step_s"]
    assert "after the 2 that `skip_first` leaves out" in missing


def test_a_scale_makes_seconds_of_milliseconds():
    metric = BY_REGEX.model_copy(update={"scale": 0.001})
    assert read(["step took 250 s", "step took 1,000.5 s"], metric).samples == {
        "step_s": (0.25, 1.0005)
    }
    with pytest.raises(ValueError, match=r"`name: step_time_s` with `scale: 0.001`"):
        CommandMetric(name="step_time_ms", regex=r"(\d+)")


def test_no_match_names_the_metric_and_where_it_was_looked_for():
    assert read(["hello"], BY_REGEX).missing()["step_s"] == (
        f"metric `step_s`: the regex `{BY_REGEX.regex}` matched no number"
    )
    missing = read(["hello"], BY_KEY).missing()["loss"]
    assert missing == "metric `loss`: no JSON line had a number under `train.loss`"


def test_samples_are_bounded():
    metric = CommandMetric(name="x_count", regex=r"(\d)")
    reader = read(["1" * 10_000] * (MAX_SAMPLES // 10_000 + 1), metric)
    assert len(reader.samples["x_count"]) == MAX_SAMPLES
    assert "only the first" in reader.notes[0]


def test_what_torchrun_writes_of_a_failure_is_no_last_line():
    where = "E1 x/torch/distributed/elastic/multiprocessing/api.py:986]"
    failure = f"{where} failed (exitcode: -9) local_rank: 1 (pid: 7)"
    reader = read(["mine", failure, "Traceback", "====="], BY_REGEX)
    assert list(reader.last_lines) == ["mine", failure]
    assert (reader.rank_exit_code, reader.failed_local_rank) == (-9, 1)


@pytest.mark.parametrize(
    ("text", "by_itself", "as_thousands", "as_decimal"),
    [
        ("1,5", None, None, 1.5),
        ("0,125", None, None, 0.125),
        ("1,234", None, 1234.0, 1.234),
        ("12,34,567", None, None, None),
        ("1,234.5", 1234.5, 1234.5, None),
        ("1,234,567", 1234567.0, 1234567.0, None),
        ("-1,234,567.8", -1234567.8, -1234567.8, None),
        ("1.234,5", None, None, 1234.5),
        ("1.5,", 1.5, 1.5, None),
    ],
)
def test_a_number_with_a_comma_is_read_where_it_can_be_only_one(
    text, by_itself, as_thousands, as_decimal
):
    wanted = {None: by_itself, "thousands": as_thousands, "decimal": as_decimal}
    for comma, value in wanted.items():
        reader = read([f"step took {text} s"], BY_REGEX.model_copy(update={"comma": comma}))
        assert reader.samples["step_s"] == (() if value is None else (value,)), comma


def test_a_number_that_may_be_two_is_refused_with_the_way_out():
    reader = read(["step took 1,5 s", "step took 1,25 s"], BY_REGEX)
    assert reader.missing()["step_s"] == (
        "metric `step_s`: 2 number(s), such as `1,5`, may mean two things "
        "(`comma: thousands` or `comma: decimal` says which)"
    )
    sloppy = CommandMetric(name="x_count", regex="x=(.*)")
    assert read(["x=a,b", "x=a, b"], sloppy).notes == ()
    assert "left out" in read(["step took 1,5 s", "step took 2 s"], BY_REGEX).notes[0]
