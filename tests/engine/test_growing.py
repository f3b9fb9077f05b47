"""Proves engine/growing.py and its file: a plan grows while it runs, and resumes."""

import itertools
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engine.fake_platform import FakeClock, FakePlatform, Script, services
from tests.engine.fake_script import an_environment
from tests.engine.making import TRAIN, a_plan, make_folder, trial_ids

from broadgauge.engine.events import Event, PlanGrown
from broadgauge.engine.growing import Growth, growable, grown
from broadgauge.engine.ports import unobserved
from broadgauge.engine.run import run
from broadgauge.engine.run_result import RunResult
from broadgauge.results.folder.growth_file import GROWTH_FILE
from broadgauge.results.folder.reading import read_run
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.results.run_path import read_summary
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError, RunFolderError
from broadgauge.specs.networks.network import Network
from broadgauge.specs.plan import Plan
from broadgauge.specs.records.record import Record

NUM_GROWTHS = 3


@pytest.fixture
def plan() -> Plan:
    """One case of two nodes, two blocks."""
    workloads = [{**TRAIN, "networks": ["slow"]}]
    return growable(a_plan(workloads=workloads, cluster={"shapes": ["2x1"]}))


def at_rate(plan: Plan, rate_gbps: float) -> Case:
    network = Network(name=f"at-{rate_gbps:g}", rate_gbps=rate_gbps)
    return plan.cases[0].model_copy(update={"network": network})


class Search:
    """Tries a rate more each time, beside the first case; decides by what is planned alone."""

    def __init__(self) -> None:
        self.asked_with: list[int] = []

    def __call__(self, plan: Plan, records: Sequence[Record]) -> Growth | None:
        self.asked_with.append(len(records))
        number = len(plan.growths)
        if number == NUM_GROWTHS:
            return None
        new = at_rate(plan, 0.2 * (1 + number))
        return Growth(cases=(plan.cases[0], new), num_blocks=2, reason=f"try {number}")


def search_in(
    folder: RunFolder, script: Script | None = None, **others: Any
) -> tuple[RunResult, FakePlatform]:
    clock = FakeClock()
    platform = FakePlatform(clock, script)
    known = {"grower": Search(), "observer": unobserved} | others
    return run(folder.plan, platform, folder, replace(services(clock), **known)), platform


def test_what_a_search_asks_for_is_run_after_what_was_planned(tmp_path: Path, plan: Plan) -> None:
    search, events = Search(), list[Event]()
    with make_folder(tmp_path, plan) as folder:
        result, platform = search_in(folder, grower=search, observer=events.append)
    assert search.asked_with == [2, 6, 10, 14], "each time all that was planned is stored"
    assert platform.trials == trial_ids(folder.plan)
    assert (result.num_ok, result.num_trials, result.exit_code) == (14, 14, 0)
    assert folder.plan.launches[:2] == plan.launches
    assert len(set(trial_ids(folder.plan))) == 14
    names = [case.network_name for case in folder.plan.cases]
    assert names == ["slow", "at-0.2", "at-0.4", "at-0.6"]
    grown_by = [event for event in events if isinstance(event, PlanGrown)]
    assert [(event.reason, event.num_trials) for event in grown_by] == [
        ("try 0", 6),
        ("try 1", 10),
        ("try 2", 14),
    ]


def test_what_is_stored_is_read_as_one_plan(tmp_path: Path, plan: Plan) -> None:
    with make_folder(tmp_path, plan) as folder:
        before = (folder.path / "plan.json").read_bytes()
        ungrown = read_run(folder.path)
        search_in(folder)
    assert (folder.path / "plan.json").read_bytes() == before
    stored = read_run(folder.path)
    assert stored.plan_sha256 != ungrown.plan_sha256, "what is made from it is made anew"
    assert stored.notes == ()
    assert stored.plan == folder.plan
    assert [growth.reason for growth in stored.plan.growths] == ["try 0", "try 1", "try 2"]
    summary = read_summary(folder.path)
    assert "the plan grew 3 times while it ran, by 6 launches in all" in summary.notes
    assert [(case.num_ok, case.num_planned) for case in summary.cases] == [(8, 8), *[(2, 2)] * 3]


def test_a_plan_that_does_not_grow_leaves_no_file(tmp_path: Path) -> None:
    with make_folder(tmp_path, a_plan()) as folder:
        search_in(folder, grower=lambda plan, records: None)
    assert not (folder.path / GROWTH_FILE).exists()


def test_blocks_that_were_added_are_mirrored_pairs_of_their_own(plan: Plan) -> None:
    new = at_rate(plan, 1.0)
    larger = grown(plan, Growth(cases=(plan.cases[0], new), num_blocks=2, reason="x"), 1.0)
    order = [[trial.case_key for trial in launch.trials] for launch in larger.launches[2:]]
    assert order[0] == order[1][::-1]
    assert [launch.block for launch in larger.launches] == [0, 1, 2, 3]
    again = grown(larger, Growth(cases=(plan.cases[0],), num_blocks=1, reason="x"), 2.0)
    assert again.launches[-1].launch_id == "b4.l0", "the group that it was before"
    assert len(again.cases) == len(larger.cases)
    after_odd = grown(again, Growth(cases=(new,), num_blocks=1, reason="x"), 3.0)
    assert after_odd.launches[-1].launch_id == "b6.l2", "an even block, and a group of its own"


class EndedError(BaseException):
    """As SIGKILL: nothing is tidied up by the engine that could not be without it."""


@pytest.mark.parametrize("has_search", [True, False])
def test_a_run_killed_between_growth_and_its_first_record_goes_on(
    tmp_path: Path, plan: Plan, has_search: bool
) -> None:
    def die(event: Event) -> None:
        if isinstance(event, PlanGrown) and event.reason == "try 1":
            raise EndedError

    folder = make_folder(tmp_path, plan)
    with folder, pytest.raises(EndedError):
        search_in(folder, observer=die)
    before = (folder.path / "records.jsonl").read_bytes()
    assert len(trial_ids(read_run(folder.path).plan)) == before.count(b"\n") + 4
    others = {} if has_search else {"grower": lambda plan, records: None}
    with RunFolder.open_for_resume(folder.path) as resumed:
        assert resumed.notes == ()
        result, _ = search_in(resumed, **others)
    assert result.num_ok == result.num_trials == (14 if has_search else 10)
    assert (folder.path / "records.jsonl").read_bytes().startswith(before)


@pytest.mark.parametrize("launch", [1, 2, 5])
def test_a_search_ended_anywhere_ends_where_it_would_have(
    tmp_path: Path, plan: Plan, launch: int
) -> None:
    with make_folder(tmp_path / "whole", plan) as whole:
        search_in(whole)

    def die(step: str) -> None:
        if step.startswith("start") and next(starts) == launch:
            raise EndedError

    starts = itertools.count()
    folder = make_folder(tmp_path / "ended", plan)
    with folder, pytest.raises(EndedError):
        search_in(folder, Script(on_step=die))
    with RunFolder.open_for_resume(folder.path) as resumed:
        search_in(resumed)
    ended, uninterrupted = read_run(folder.path), read_run(whole.path)
    assert ended.plan.launches == uninterrupted.plan.launches
    assert ended.plan.cases == uninterrupted.plan.cases
    ids = [record.record_id for record in ended.records]
    assert ids == [record.record_id for record in uninterrupted.records]


def test_a_torn_growth_belongs_to_nothing_and_is_asked_for_again(
    tmp_path: Path, plan: Plan
) -> None:
    def die(event: Event) -> None:
        if isinstance(event, PlanGrown):
            raise EndedError

    folder = make_folder(tmp_path, plan)
    with folder, pytest.raises(EndedError):
        search_in(folder, observer=die)
    path = folder.path / GROWTH_FILE
    line = path.read_bytes()
    for torn in (line[:-1], line[: len(line) // 2], b"\0" * 40 + b"\n"):
        path.write_bytes(torn)
        assert read_run(folder.path).plan.launches == plan.launches
    with RunFolder.open_for_resume(folder.path) as resumed:
        result, _ = search_in(resumed)
    assert result.num_ok == 14
    assert len(path.read_bytes().splitlines()) == NUM_GROWTHS


def test_a_broken_growth_before_the_last_is_an_error_that_names_it(
    tmp_path: Path, plan: Plan
) -> None:
    with make_folder(tmp_path, plan) as folder:
        search_in(folder)
    path = folder.path / GROWTH_FILE
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"nonsense\n" + b"".join(rest))
    with pytest.raises(RunFolderError, match=rf"{GROWTH_FILE}:1: no part of a plan"):
        read_run(folder.path)
    stray = json.loads(first) | {"cases": []}
    path.write_bytes(json.dumps(stray).encode() + b"\n")
    with pytest.raises(RunFolderError, match="which is not there"):
        read_run(folder.path)


def test_blocks_stay_apart_where_the_environment_changed_before_the_plan_grew(
    tmp_path: Path, plan: Plan
) -> None:
    """Else a pair would be made of two launches of different moments."""
    environments = (an_environment(torch=f"2.{number}") for number in itertools.count())
    with make_folder(tmp_path, plan) as folder:
        search_in(folder, Script(environment=lambda _: next(environments)))
    blocks = Counter((record.case_key, record.block) for record in folder.records)
    assert set(blocks.values()) == {1}


def test_a_growth_that_can_not_be_is_refused(plan: Plan) -> None:
    once = Growth(cases=plan.cases, num_blocks=1, reason="x")
    with pytest.raises(InputError, match="no room for more blocks"):
        grown(a_plan(), once, 1.0)
    with pytest.raises(InputError, match="no room for more blocks"):
        grown(plan, replace(once, num_blocks=1_000_000), 1.0)
    wider = plan.cases[0].model_copy(update={"nodes": 4})
    with pytest.raises(InputError, match="how many cores"):
        grown(plan, replace(once, cases=(wider,)), 1.0)
    added = grown(plan, replace(once, cases=(wider,), cores_per_node={(None, "4x1"): 3}), 1.0)
    assert added.launches[-1].cores_per_node == 3
