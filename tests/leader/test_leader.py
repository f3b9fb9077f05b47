"""A leader makes several agents look like one, goes on without the tool, and leaves nothing."""

import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driving import wait_until
from tests.leader.allocations import (
    HANG_S,
    Allocation,
    events_until,
    job,
    run_jobs,
    wait_until_it_is_there,
)

from broadgauge.messages.leader import SkipTrials, Stop, Stored, TakeJobs
from broadgauge.platforms.led.handle import LinkLost


@pytest.fixture
def allocation(tmp_path: Path) -> Iterator[Allocation]:
    found = Allocation(tmp_path)
    yield found
    found.close()


@pytest.fixture
def pausing(tmp_path: Path) -> Iterator[Allocation]:
    """Its ranks stay between two marks until they are told to end."""
    found = Allocation(tmp_path, pause_s=HANG_S)
    yield found
    found.close()


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """Types, those of ranks' words left out."""
    return [event["type"] for event in events if event["type"] != "rank_said"]


def trials(events: list[dict[str, Any]]) -> list[str]:
    return [event["trial_id"] for event in events if event["type"] == "trial_ends"]


def lives(events: list[dict[str, Any]]) -> list[str]:
    return [event["life_id"] for event in events if event["type"] == "life_begins"]


def test_two_agents_look_like_one(allocation: Allocation) -> None:
    link = allocation.attach()
    events = run_jobs(link, job("b0.l0", ["t0"]))
    assert kinds(events) == [
        *("life_begins", "ready", "trial_begins", "trial_starts", "marked", "marked"),
        *("trial_ends", "ended", "life_ends", "jobs_done"),
    ]
    marks = [event for event in events if event["type"] == "marked"]
    assert [[n["node"] for n in mark["nodes"]] for mark in marks] == [[0, 1], [0, 1]]
    assert [n["counters"]["tx_bytes"] for n in marks[0]["nodes"]] == [0, 100]
    (end,) = (event for event in events if event["type"] == "trial_ends")
    assert [clock["agent"] for clock in end["clocks_before"]] == [0, 1]
    assert all(abs(c["offset_s"]) <= c["uncertainty_s"] for c in end["clocks_after"])


def test_counters_are_read_on_every_agent_while_the_ranks_go_on(allocation: Allocation) -> None:
    events = run_jobs(allocation.attach(), job("b0.l0", ["counts-1"]))
    counted = [e for e in events if e["type"] == "marked" and e["label"] == "command:steps/3"]
    assert [[n["node"] for n in mark["nodes"]] for mark in counted] == [[0, 1]]
    assert trials(events) == ["b0.l0.counts-1"]
    assert "ended" in kinds(events)


def test_when_a_rank_hangs_the_others_say_where_they_stand_before_it_is_told(
    allocation: Allocation,
) -> None:
    events = run_jobs(allocation.attach(), job("b0.l0", ["hangs-1"]))
    said = [e["message"]["type"] if e["type"] == "rank_said" else e["type"] for e in events]
    assert said.index("stacks") < said.index("phase_expired") < said.index("ended")
    (stacks,) = (e for e in events if e["type"] == "rank_said" and e["message"]["type"] == "stacks")
    assert stacks["rank"] == 0


def test_a_rank_that_can_not_be_killed_is_told_before_the_launch_is_over(
    allocation: Allocation,
) -> None:
    events = run_jobs(allocation.attach(), job("b0.l0", ["leaves-1"]))
    (left,) = (event for event in events if event["type"] == "rank_left")
    assert left["rank"] == 1
    assert events.index(left) < [each["type"] for each in events].index("ended")


@pytest.mark.parametrize("fault", ["fails-1", "dies-0", "hangs-1", "kills-supervisor-1"])
def test_a_failed_trial_ends_its_life_and_the_rest_have_another(
    allocation: Allocation, fault: str
) -> None:
    events = run_jobs(allocation.attach(), job("b0.l0", ["t0", fault, "t2"]))
    assert lives(events) == ["b0.l0", "b0.l0r1"]
    assert trials(events) == ["b0.l0.t0", f"b0.l0.{fault}", "b0.l0.t2"]
    assert [each["type"] for each in events].count("ended") == 2


def test_a_launch_that_does_not_come_up_is_tried_three_times(allocation: Allocation) -> None:
    refused = job("b0.l0", ["t0", "t1", "t2", "t3", "t4"], refused="1")
    events = run_jobs(allocation.attach(), refused, job("x", ["t"]))
    assert lives(events) == ["b0.l0", "b0.l0r1", "b0.l0r2", "x"]
    assert trials(events) == ["x.t"]
    assert {e["message"] for e in events if e["type"] == "refused"} == {"no such program"}


def test_it_goes_on_without_the_tool_and_loses_nothing(allocation: Allocation) -> None:
    link = allocation.attach()
    link.send(TakeJobs(generation=0, jobs=(job("b0.l0", ["t0"]), job("b0.l1", ["t0", "t1"]))))
    first = link.receive(HANG_S)
    assert first is not None
    link.close()
    wait_until(lambda: b"jobs_done" in allocation.spool.read_bytes(), HANG_S)
    events = events_until(allocation.attach(after=first.number), "jobs_done")
    assert trials(events) == ["b0.l0.t0", "b0.l1.t0", "b0.l1.t1"]
    numbers = [first.number + 1 + i for i in range(len(events))]
    again = allocation.attach(after=first.number)
    received = [again.receive(HANG_S) for _ in events]
    assert [each.number for each in received if each is not None] == numbers


def test_what_is_stored_is_kept_no_longer(allocation: Allocation) -> None:
    link = allocation.attach()
    run_jobs(link, job("b0.l0", ["t0"]))
    assert allocation.spool.stat().st_size > 0
    link.send(Stored(number=link.last))
    events = run_jobs(link, generation=1)
    assert kinds(events) == ["jobs_done"]
    assert allocation.spool.stat().st_size < 1000


def test_jobs_in_place_of_others_end_the_life_that_runs(pausing: Allocation) -> None:
    link = pausing.attach()
    link.send(TakeJobs(generation=0, jobs=(job("b0.l0", ["t0", "t1"]),)))
    events_until(link, "trial_starts")
    link.send(TakeJobs(generation=1, jobs=()))
    events = events_until(link, "life_ends")
    assert "marked" not in kinds(events)
    assert "agent_lost" not in kinds(events)
    assert trials(events) == ["b0.l0.t0"]


def test_one_that_has_no_room_keeps_what_it_has_for_the_tool(allocation: Allocation) -> None:
    """Nobody may be there; whoever comes takes it, hears why, and starts another."""
    link = allocation.attach()
    before = run_jobs(link, job("b0.l0", ["t0"]))
    limit_bytes = allocation.spool.stat().st_size + 200
    resource.prlimit(allocation.leader.pid, resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
    link.send(TakeJobs(generation=1, jobs=(job("b0.l1", ["t0"]), job("b0.l2", ["t0"]))))
    link.close()
    wait_until(lambda: allocation.spool.stat().st_size == limit_bytes, HANG_S)
    again = allocation.attach()
    with pytest.raises(LinkLost):
        events_until(again, "none such")
    assert "File too large" in (again.last_words or "")
    assert again.last >= len(before) - 1
    again.send(Stop())
    assert allocation.leader.wait(HANG_S) == 0


def test_trials_that_are_skipped_are_not_run_and_the_others_count(pausing: Allocation) -> None:
    link = pausing.attach()
    launches = (job("b0.l0", ["t0", "t1"]), job("b0.l1", ["t0"]), job("b0.l2", ["fails-0", "t1"]))
    link.send(TakeJobs(generation=0, jobs=launches))
    events_until(link, "trial_starts")
    link.send(SkipTrials(trial_ids=("b0.l0.t0", "b0.l0.t1", "b0.l1.t0", "b0.l2.t1")))
    received = events_until(link, "jobs_done")
    assert trials(received) == ["b0.l0.t0", "b0.l2.fails-0"]
    assert lives(received) == ["b0.l2"]
    assert "agent_lost" not in kinds(received)


def test_a_trial_that_runs_is_ended_where_all_before_it_have_run(pausing: Allocation) -> None:
    link = pausing.attach()
    link.send(TakeJobs(generation=0, jobs=(job("b0.l0", ["quick", "t1"]),)))
    events_until(link, "trial_ends")
    events_until(link, "trial_starts")
    link.send(SkipTrials(trial_ids=("b0.l0.t1",)))
    assert trials(events_until(link, "jobs_done")) == ["b0.l0.t1"]


def test_a_skip_that_leaves_nothing_ends_the_jobs_once(allocation: Allocation) -> None:
    link = allocation.attach()
    assert trials(run_jobs(link, job("b0.l0", ["t0"]))) == ["b0.l0.t0"]
    link.send(SkipTrials(trial_ids=("b0.l0.t0",)))
    assert trials(run_jobs(link, job("b0.l1", ["t0"]), generation=1)) == ["b0.l1.t0"]


def test_a_lost_agent_may_come_back(allocation: Allocation) -> None:
    link = allocation.attach()
    run_jobs(link, job("b0.l0", ["t0"]))
    allocation.agents[1].send_signal(signal.SIGKILL)
    allocation.agents[1].wait()
    again = allocation.start_agent(1)
    allocation.agents.append(again)
    wait_until_it_is_there(again)
    assert trials(run_jobs(link, job("b1.l0", ["t0"]), generation=1)) == ["b1.l0.t0"]


def test_an_agent_that_dies_in_a_trial_is_named(pausing: Allocation) -> None:
    link = pausing.attach()
    link.send(TakeJobs(generation=0, jobs=(job("b0.l0", ["t0"]),)))
    events_until(link, "trial_starts")
    pausing.agents[1].send_signal(signal.SIGKILL)
    events = events_until(link, "life_ends")
    (lost,) = (event for event in events if event["type"] == "agent_lost")
    assert lost["agent"] == 1
    assert trials(events) == ["b0.l0.t0"]


def test_a_stranger_without_the_token_is_not_let_in(allocation: Allocation) -> None:
    stranger = allocation.start_agent(0, token="0" * 64)
    assert stranger.wait(HANG_S) == 1
    allocation.agents.append(stranger)
    assert trials(run_jobs(allocation.attach(), job("b0.l0", ["t0"]))) == ["b0.l0.t0"]


def test_stop_leaves_nothing(allocation: Allocation) -> None:
    link = allocation.attach()
    run_jobs(link, job("b0.l0", ["t0"]))
    link.send(Stop())
    assert [process.wait(HANG_S) for process in (allocation.leader, *allocation.agents)] == [
        0,
        0,
        0,
    ]
    assert list(allocation.folder.iterdir()) == []


def test_agents_whose_leader_was_killed_leave_nothing(allocation: Allocation) -> None:
    run_jobs(allocation.attach(), job("b0.l0", ["t0"]))
    allocation.leader.send_signal(signal.SIGKILL)
    assert [process.wait(HANG_S) for process in allocation.agents] == [0, 0]
    assert [path.name for path in allocation.folder.iterdir()] == ["leader"]
