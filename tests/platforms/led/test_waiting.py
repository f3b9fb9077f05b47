"""Proves how the tool begins with a leader: it waits for its machines, comes back to one that it
has, and makes another where one is lost."""

from collections import deque
from pathlib import Path

import pytest
from tests.platforms.launches import make_case, make_request
from tests.platforms.led.fakes import FakeLeader, FakeMachines, fake_leader, fake_link

from broadgauge.cli.progress import PlainLines
from broadgauge.engine.events import PhaseBegan
from broadgauge.messages.leader import AgentLost, LifeBegins, LifeEnds, TakeJobs
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.led import following
from broadgauge.platforms.led.handle import LinkLost, NoLeader
from broadgauge.platforms.led.platform import LedPlatform
from broadgauge.specs.errors import PlatformError
from broadgauge.specs.launching import WAITING, ShownPhase, TrialRequest


def full() -> PlatformError:
    return PlatformError("no node has room")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for between tries."""
    monkeypatch.setattr(following, "AGAIN_AFTER_S", (0.0,))
    monkeypatch.setattr(following, "FIRST_ATTACH_LIMIT_S", -1.0)
    monkeypatch.setattr(following, "RECONNECT_LIMIT_S", -1.0)


def begin(folder: Path, machines: FakeMachines) -> tuple[PlatformError, list[tuple[str, str]]]:
    """Start a launch, which ends with the scripts; how, and what was shown until then."""
    shown: list[tuple[str, str]] = []

    def progress(phase: ShownPhase, detail: str) -> None:
        shown.append((str(phase), detail))

    led = LedPlatform(LaunchFolders(logs=folder, working=folder), machines)
    case = make_case("local")
    trial = TrialRequest(trial_id="b0.l0.t0", case=case, seed=1)
    request = make_request(case, launch_id="b0.l0", trials=(trial,))
    led.expect([request])
    with pytest.raises(PlatformError) as ended:
        led.start(request, progress)
    return ended.value, shown


def machines(*started: FakeLeader | PlatformError, found: FakeLeader | None = None) -> FakeMachines:
    return FakeMachines(found, deque(started))


def given(leader_link: object) -> int:
    return sum(isinstance(each, TakeJobs) for each in leader_link.told)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("generation", "times"), [(0, 0), (-1, 1)])
def test_jobs_are_given_to_a_leader_that_has_none(
    tmp_path: Path, generation: int, times: int
) -> None:
    link = fake_link(generation=generation, loss=LinkLost("gone"))
    link.last_words = "that is all"
    there = machines(fake_leader(link), full())
    _, shown = begin(tmp_path, there)
    assert given(link) == times
    assert there.done == ["start with 1", "lose", "start with 1"]
    assert (WAITING, "2 pods waiting for a node") in shown


def test_a_successor_that_cant_start_says_what_was_lost_before(tmp_path: Path) -> None:
    link = fake_link()
    link.last_words = "its pod was told to end"
    error, _ = begin(tmp_path, machines(fake_leader(link), full()))
    assert error.message.splitlines() == [
        "no node has room",
        "  before that the leader was lost: leader 1: its pod was told to end",
    ]


def test_a_leader_that_is_found_is_waited_for_first(tmp_path: Path) -> None:
    """One that turns out to be gone has a successor, with all that is left."""
    there = machines(full(), found=fake_leader(NoLeader("its pod is gone")))
    _, shown = begin(tmp_path, there)
    assert there.done == ["wait", "lose", "start with 1"]
    assert (WAITING, "1 pod starting") in shown


def test_one_that_may_live_on_has_no_successor(tmp_path: Path) -> None:
    """Two would disturb each other's figures."""
    there = machines(found=fake_leader(NoLeader("its pod is gone")))
    there.lost = PlatformError("it can't be told whether it goes on")
    error, _ = begin(tmp_path, there)
    assert error is there.lost


def test_an_agent_that_is_lost_before_ranks_run_is_named_with_the_reason(tmp_path: Path) -> None:
    life = "b0.l0"
    events = (
        LifeBegins(life_id=life, agents=()),
        AgentLost(agent=1, message="it closed the connection"),
        LifeEnds(life_id=life),
    )
    lost = fake_leader(fake_link(*events))
    error, _ = begin(tmp_path, machines(lost, full()))
    assert lost.is_stopped
    assert error.message.splitlines()[1:] == [
        "  before that b0.l0: the agent on node 1: it closed the connection; its pod 1 was evicted"
    ]


def test_what_is_waited_for_stays_on_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    began = PhaseBegan(
        launch_id="b0.l0", trial_id=None, case=None, phase=WAITING, detail="2 pods starting"
    )
    PlainLines(Console())(began)
    assert capsys.readouterr().out == "waiting    2 pods starting\n"
