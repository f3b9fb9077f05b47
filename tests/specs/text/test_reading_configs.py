"""Proves specs/text/reading_configs.py and what a command says of its `config`."""

from pathlib import Path
from typing import Any

import pytest
from tests.engine.making import a_machine, devices_of

from broadgauge.engine.plan import make_plan
from broadgauge.running.experiments import load_text
from broadgauge.specs.errors import ExperimentError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.text.reading import read_experiment
from broadgauge.specs.text.writing import dump_experiment
from broadgauge.specs.workloads.tasks import command_task
from broadgauge.specs.workloads.workload import CommandWorkload

TEXT = """\
name: e
platform: emulated
cluster: {shapes: [1x1, 2x1], device: cpu}
networks: [{name: pod, rate_gbps: 1}]
workloads:
  - kind: command
    name: mine
    config: sub/config.json
    metrics: [{name: samples_per_s, regex: "x=([0-9.]+)"}]
"""
CONFIG = '{"nnodes": 8, "module": "a.b", "max_batch_len": 35000, "fast": true}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "config.json").write_text(CONFIG)
    return tmp_path


def read(folder: Path, *overrides: str, text: str = TEXT) -> Experiment:
    return load_text(text, folder / "e.yaml", overrides).experiment


def command_of(experiment: Experiment, place: int = 0) -> CommandWorkload:
    workload = experiment.workloads[place]
    assert isinstance(workload, CommandWorkload)
    return workload


def test_it_is_read_with_the_experiment(folder: Path) -> None:
    workload = command_of(read(folder))
    assert command_task(workload).command == (*("-m", "a.b", "--max_batch_len", "35000", "--fast"),)
    assert workload.max_batch_len == workload.batch_tokens == 35000
    (folder / "sub" / "config.json").unlink()
    assert workload.words[-1] == "--fast"


def test_what_is_stored_is_what_was_read(folder: Path) -> None:
    """A run folder's experiment needs no file."""
    experiment = read(folder)
    assert read_experiment(dump_experiment(experiment), "stored.yaml") == experiment


def test_a_command_is_run_in_the_modules_place(folder: Path) -> None:
    experiment = read(folder, "workloads.mine.command=[train.py, --x]")
    assert command_of(experiment).words[:4] == ("train.py", "--x", "--max_batch_len", "35000")
    notes = make_plan(experiment, devices_of(a_machine())).notes
    assert "sub/config.json names a.b: `command` is run instead" in notes


def test_max_batch_len_is_an_axis(folder: Path) -> None:
    experiment = read(folder, "workloads.mine.max_batch_len=[35000, 60000]")
    assert [each.name for each in experiment.workloads] == [
        *("mine-max-batch-len-35000", "mine-max-batch-len-60000"),
    ]
    assert command_of(experiment, 1).words[2:4] == ("--max_batch_len", "60000")
    plan = make_plan(experiment, devices_of(a_machine()))
    assert len({case.key for case in plan.cases}) == 4
    (folder / "again.json").write_text(CONFIG.replace("8", "1"))
    moved = read(folder, "workloads.mine.config=again.json")
    again = make_plan(moved, devices_of(a_machine())).cases
    assert [case.key for case in again] == [case.key for case in plan.cases[::2]]
    assert [case.workload.batch_tokens for case in plan.cases] == [35000, 60000] * 2


def test_the_files_shape_is_told_where_cases_have_another(folder: Path) -> None:
    notes = make_plan(read(folder), devices_of(a_machine())).notes
    assert "sub/config.json says nnodes 8: cases with another shape are 1x1, 2x1" in notes
    same = (folder / "sub" / "config.json").write_text('{"module": "a.b", "nproc_per_node": 1}')
    assert same
    assert not any(
        "says n" in note for note in make_plan(read(folder), devices_of(a_machine())).notes
    )


def test_it_stands_beside_the_file_that_names_it(folder: Path, tmp_path: Path) -> None:
    """An experiment that extends another in another folder has the other's."""
    (folder / "base.yaml").write_text(TEXT)
    (elsewhere := tmp_path / "other").mkdir()
    found = read(elsewhere, text="extends: ../base.yaml\nname: over\n")
    assert command_of(found).words[1] == "a.b"
    (elsewhere / "mine.json").write_text('{"module": "c.d"}')
    flag = "workloads.mine.config=mine.json"
    found = read(elsewhere, flag, text="extends: ../base.yaml\nname: over\n")
    assert command_of(found).words == ("-m", "c.d")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ["e.yaml:8:5: `config`: no file", "did you mean", "config.jsn"]),
        (b"\xff", ["e.yaml:8:5: `config`: ", "byte 0 is no UTF-8"]),
        (b"{", ["e.yaml:8:5: `config`: sub/config.json:1:2: no JSON"]),
        (b'{"architectures": ["X"]}', ["a model's config.json (X)", "hint: the training's has"]),
        (b"{}", ["names no `module`, and there is no `command`"]),
        (b" " * ((1 << 20) + 1), ["larger than 1,048,576 bytes"]),
    ],
)
def test_a_bad_file_is_named_with_its_place(
    folder: Path, content: bytes | None, words: list[str]
) -> None:
    path = folder / "sub" / "config.json"
    if content is None:
        path.rename(path.with_name("config.jsn.json"))
    else:
        path.write_bytes(content)
    with pytest.raises(ExperimentError) as caught:
        read(folder, "workloads.mine.max_batch_len=[1, 2]")
    assert len(caught.value.problems) == 1
    assert str(caught.value).count("hint: ") <= 1
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("    config: sub/config.json\n", ""), "e.yaml:6:5: `command` is missing"),
        (
            ("    config: sub/config.json\n", "    command: [a.py]\n    max_batch_len: 5\n"),
            "e.yaml:9:5: `max_batch_len` takes the place of a value in `config`",
        ),
        (("sub/config.json", "''"), "e.yaml:8:5: `config` takes the path of a file"),
        (("sub/config.json", "sub/config.json\n    max_batch_len: 0"), "e.yaml:9:5: "),
    ],
)
def test_what_a_command_may_say_of_it(folder: Path, change: tuple[str, str], says: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        read(folder, text=TEXT.replace(*change))
    assert says in str(caught.value)


def test_what_runs_elsewhere_needs_no_file(folder: Path) -> None:
    """An example that was copied without its config is emulated as before."""
    (folder / "sub" / "config.json").unlink()
    experiment = read(folder, "workloads.mine.platforms=[kubernetes]")
    assert command_of(experiment).config == "sub/config.json"
    with pytest.raises(ExperimentError, match="no file"):
        read(folder, "workloads.mine.platforms=[kubernetes]", "platform=[emulated, kubernetes]")


def test_a_workload_is_left_out_on_other_platforms(folder: Path) -> None:
    more = "  - {kind: train, name: mine-too, platforms: [local, emulated]}\n"
    experiment = read(folder, "workloads.mine.platforms=[kubernetes]", text=TEXT + more)
    plan = make_plan(experiment, devices_of(a_machine()))
    assert {case.workload.name for case in plan.cases} == {"mine-too"}
    assert "workload mine is left out on emulated: it is for kubernetes" in plan.notes


@pytest.mark.parametrize("platforms", ["[kubernetes]", "[]"])
def test_nothing_is_left_where_all_are(folder: Path, platforms: str) -> None:
    experiment = read(folder, f"workloads.mine.platforms={platforms}")
    with pytest.raises(Exception, match="nothing is left to run: workload mine") as caught:
        make_plan(experiment, devices_of(a_machine()))
    error: Any = caught.value
    assert "`platforms`" in error.hint
