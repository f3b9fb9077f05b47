"""Proves api/run_and_resume.py on the local platform, with ranks that are scripted."""

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
from tests.api.scripted import stand_ins

from broadgauge.api.open_run import list_runs, open_run
from broadgauge.api.progress import Progress
from broadgauge.api.run_and_resume import as_yaml, load_experiment, override_texts, resume, run
from broadgauge.api.stored_run import Run
from broadgauge.platforms.machine import read_machine
from broadgauge.running import preparing
from broadgauge.specs.errors import ExperimentError, InputError, RunFolderError

TINY: dict[str, Any] = {
    "name": "tiny",
    "platform": "local",
    "cluster": {"shapes": ["1x1"], "device": "cpu"},
    "workloads": [
        {
            "kind": "train",
            "model": {"layers": 1, "hidden": 64, "heads": 2, "seq_len": 32},
            "steps": 4,
            "block_steps": 2,
            "warm_up_steps": 1,
        }
    ],
    "launches": 2,
}


class EnoughError(Exception):
    """What a caller's own progress raises."""


@pytest.fixture
def here(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to run in, with scripted ranks."""
    for place, name, value in stand_ins():
        monkeypatch.setattr(place, name, value)
    return empty_folder


def test_a_run_tells_its_progress_and_is_what_is_opened_later(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told: list[Progress] = []
    found = run(TINY, overrides={"launches": 3, "workloads.0.block_steps": 4}, progress=told.append)
    assert (found.num_ok, found.num_failed, found.num_planned) == (3, 0, 3)
    assert found.is_complete
    assert found.errors == ()
    assert found.folder.parent == here / "runs"
    assert [each.num_finished for each in told if each.text.startswith("[")] == [1, 2, 3]
    assert {each.num_trials for each in told if each.text.startswith("[")} == {3}
    assert all(each.text and "\n" not in each.text and str(each) == each.text for each in told)
    assert capfd.readouterr() == ("", ""), "nothing is told but to progress"
    for text in ("last", str(found.folder), found.folder.name[:12]):
        assert open_run(text).folder == found.folder
    assert open_run(found).to_json() == found.to_json()
    assert [row["run"] for row in list_runs()] == [found.folder.name]
    assert len(found.series("step_time_s")) == 3 * 4, "a scripted rank does a block"


def test_what_progress_raises_ends_the_run_in_good_order(here: Path) -> None:
    def enough(progress: Progress) -> None:
        if progress.num_finished == 1:
            raise EnoughError

    with pytest.raises(EnoughError):
        run(TINY, progress=enough)
    begun = open_run("last")
    assert begun.num_ok == 1
    assert not begun.is_complete
    before = (begun.folder / "records.jsonl").read_bytes()
    finished = resume("last")
    assert finished.is_complete
    assert (finished.folder / "records.jsonl").read_bytes().startswith(before)
    assert resume(finished).num_ok == finished.num_ok == 2


def test_it_runs_in_a_thread_beside_a_running_event_loop(here: Path) -> None:
    async def main() -> tuple[Run, int]:
        ticks, threads = 0, []

        def told(_: Progress) -> None:
            threads.append(threading.current_thread())

        task = asyncio.create_task(asyncio.to_thread(run, TINY, progress=told))
        while not task.done():
            ticks += 1
            await asyncio.sleep(0.01)
        assert set(threads).isdisjoint({threading.main_thread()})
        return await task, ticks

    found, ticks = asyncio.run(main())
    assert found.is_complete
    assert ticks > 5, "the loop went on meanwhile"


def test_it_runs_inside_of_a_running_event_loop(here: Path) -> None:
    async def main() -> Run:
        return run(TINY, overrides={"launches": 1})

    assert asyncio.run(main()).is_complete


def test_refused_nodes_are_a_warning_and_what_needs_none_is_run(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = replace(read_machine(), can_emulate=False, refusal="no", fix="be root")
    monkeypatch.setattr(preparing, "read_machine", lambda: refusing)
    cluster = {"shapes": ["1x1", "2x1"], "device": "cpu"}
    networks = [{"name": "slow", "rate_gbps": 1}]
    wanted = TINY | {"platform": "emulated", "cluster": cluster, "networks": networks}
    with pytest.warns(UserWarning, match="nodes can't be emulated") as warned:
        found = run(wanted, overrides={"launches": 1})
    assert [Path(each.filename).name for each in warned] == [Path(__file__).name]
    assert [case.shape for case in found.cases] == ["1x1"]


def test_what_can_not_be_run_is_raised_before_anything_is_made(here: Path) -> None:
    with pytest.raises(InputError, match="did you mean `quickstart`"):
        run("quickstrat")
    with pytest.raises(ExperimentError, match="unknown key `lunches`"):
        run({**TINY, "lunches": 3})
    with pytest.raises(InputError, match="launchez"):
        run(TINY, overrides={"launchez": 3})
    with pytest.raises(InputError, match="needs a baseline"):
        run(TINY, fail_above_ratio=0.03)
    with pytest.raises(RunFolderError, match="there is no run"):
        resume("last")
    with pytest.raises(RunFolderError, match="no folder"):
        list_runs("nowhere")
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"launches": 3}, "launches=3"),
        ({"networks.0.rate_gbps": "1 Gbit/s"}, 'networks.0.rate_gbps="1 Gbit/s"'),
        ({"cluster.shapes": ("1x1", "2x1")}, 'cluster.shapes=["1x1", "2x1"]'),
        ({"published": None}, "published=null"),
    ],
)
def test_overrides_are_what_set_takes(given: Mapping[str, object], text: str) -> None:
    assert list(override_texts(given)) == [text]


def test_a_mapping_is_read_as_its_file_would_be(tmp_path: Path) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(as_yaml(TINY))
    given = load_experiment(TINY, {"launches": 4})
    assert given.experiment == load_experiment(file, {"launches": 4}).experiment
    assert given.experiment.launches == 4
    assert given.folder == Path.cwd()


def test_paths_and_tuples_are_taken_and_what_no_file_holds_is_refused() -> None:
    text = as_yaml({"data": PurePosixPath("a/b"), "shapes": ("1x1",)})
    assert text == "data: a/b\nshapes:\n- 1x1\n"
    with pytest.raises(InputError, match="the experiment holds a value of type ndarray"):
        as_yaml({"launches": np.array([1])})
    with pytest.raises(InputError, match="the experiment can't be written"):
        as_yaml({"launches": float("nan")})
