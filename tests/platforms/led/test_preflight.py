"""Does the user read what a leader's preflight found, and does the run folder keep it?"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.platforms.launches import make_folders
from tests.platforms.led.fakes import (
    FakeAllocation,
    FakeLeader,
    FakeLink,
    Shown,
    coming_up,
    hello,
    make_launch,
)

from broadgauge.messages.codec import decode
from broadgauge.messages.preflight import PreflightDone, PreflightFinding
from broadgauge.platforms.led.handle import NothingMore
from broadgauge.platforms.led.orders import Seats
from broadgauge.platforms.led.platform import LedPlatform
from broadgauge.platforms.led.preflight import (
    failing_names,
    is_well,
    preflight_words,
    write_preflight,
)
from broadgauge.specs.case import Case
from broadgauge.specs.errors import LaunchError, PlatformError
from broadgauge.specs.launching import WAITING

LAUNCH = make_launch()
HEALTHY = PreflightDone(
    lasted_s=1.25, names=("a", "b"), networks=("pod",), num_calls=2, findings=(), failing=()
)
BROKEN = PreflightDone(
    lasted_s=7.0,
    names=("a", "b"),
    networks=("pod",),
    num_calls=2,
    findings=(
        PreflightFinding(kind="fails", text="a does not reach b", network="pod", agents=((0, 1),)),
        PreflightFinding(kind="differs", text="clocks"),
    ),
    failing=(1,),
)
BROKEN_WORDS = [
    "preflight: 2 machines, 2 calls over pod, in 7 s: fails",
    "preflight: fails: a does not reach b",
    "preflight: differs: clocks",
    "preflight: it would be well without b",
]


def led_by(folder: Path, link: FakeLink) -> LedPlatform:
    folders = make_folders(folder)
    led = LedPlatform(folders, FakeAllocation(FakeLeader([link])), "first")
    led.expect([LAUNCH])
    return led


def test_what_is_found_is_shown_and_kept(tmp_path: Path) -> None:
    shown, logs = Shown(), make_folders(tmp_path).logs
    link = FakeLink(hello(-1), [BROKEN, *coming_up(LAUNCH)])
    led = led_by(tmp_path, link)
    led.start(LAUNCH, shown)
    (given,) = link.jobs_told
    assert given.preflight == "first"
    told = [line for line in shown.of(WAITING) if line.startswith("preflight")]
    assert told == BROKEN_WORDS
    assert [note for note in led.notes if note.startswith("preflight")] == BROKEN_WORDS
    assert (logs / "failing-nodes.txt").read_text() == "b\n"
    kept = json.loads((logs / "preflight.json").read_text())
    assert decode(PreflightDone, kept) == BROKEN


def test_where_nothing_fails_there_is_no_list(tmp_path: Path) -> None:
    link = FakeLink(hello(-1), [HEALTHY, *coming_up(LAUNCH)])
    led_by(tmp_path, link).start(LAUNCH, Shown())
    assert not (make_folders(tmp_path).logs / "failing-nodes.txt").exists()
    (words,) = preflight_words(HEALTHY)
    assert words == "preflight: 2 machines, 2 calls over pod, in 1.25 s: nothing fails"


def test_alone_it_gives_no_job_and_is_waited_for(tmp_path: Path) -> None:
    link = FakeLink(hello(-1), [None, BROKEN])
    said: list[str] = []
    assert led_by(tmp_path, link).preflight([LAUNCH], said.append) == BROKEN
    (given,) = link.jobs_told
    assert given.preflight == "only"
    assert "2 pods wait for a node" in said


def test_a_leader_that_is_gone_meanwhile_is_an_error(tmp_path: Path) -> None:
    link = FakeLink(hello(-1), [NothingMore("its pod was evicted")])
    with pytest.raises(PlatformError, match="the leader was lost: pod-0: its pod was evicted"):
        led_by(tmp_path, link).preflight([LAUNCH], print)


def test_a_later_one_of_the_run_replaces_the_list(tmp_path: Path) -> None:
    write_preflight(BROKEN, tmp_path)
    assert (tmp_path / "failing-nodes.txt").exists()
    write_preflight(HEALTHY, tmp_path)
    assert not (tmp_path / "failing-nodes.txt").exists()


def test_names_are_those_that_schedulers_know_each_once() -> None:
    twice = replace(BROKEN, names=("a", "b", "b"), failing=(1, 2))
    assert failing_names(twice) == ("b",)


def test_a_machine_that_did_not_answer_is_not_well() -> None:
    silent = PreflightFinding(kind="unknown", text="b was not checked", agents=((1,),))
    done = replace(HEALTHY, findings=(silent,), failing=(1,))
    assert not is_well(done)
    assert is_well(HEALTHY)
    assert next(iter(preflight_words(done))).endswith(
        ": nothing that was looked at fails, and not all was"
    )


def test_a_launch_that_has_no_place_is_a_finding_and_others_are_looked_at(tmp_path: Path) -> None:
    class Without(FakeAllocation):
        def seats_of(self, case: Case) -> Seats:
            if case.nodes == 1:
                raise LaunchError("b has no interface of vnic")
            return super().seats_of(case)

    other = LAUNCH.cases[0].model_copy(update={"nodes": 1})
    request = replace(LAUNCH, launch_id="b0.l7", cases=(other,))
    allocation = Without(FakeLeader([FakeLink(hello(-1), [HEALTHY])]))
    led = LedPlatform(make_folders(tmp_path), allocation)
    done = led.preflight([LAUNCH, request], print)
    assert [each.text for each in done.findings] == ["b has no interface of vnic"]
    assert not is_well(done)
    with pytest.raises(PlatformError, match="b has no interface of vnic"):
        led.preflight([request], print)
