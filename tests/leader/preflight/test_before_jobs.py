"""Is a preflight done before a leader's jobs, and are those not started that would fail?"""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from tests.leader.allocations import (
    HANG_S,
    Allocation,
    events_until,
    job,
    wait_until_it_is_there,
)

from broadgauge.leader.preflight.asked import Asked, refusals_of
from broadgauge.messages.leader import Job, Stop, TakeJobs
from broadgauge.messages.preflight import PreflightFinding

TORCH = "9.9.9"


@pytest.fixture
def allocation(tmp_path: Path) -> Iterator[Allocation]:
    found = Allocation(tmp_path)
    yield found
    found.close()


@pytest.fixture
def with_other_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Allocation]:
    """On its second machine."""
    info = tmp_path / "packages" / f"torch-{TORCH}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {TORCH}\n")
    found = Allocation(tmp_path, num_agents=1)
    found.agents.append(found.start_agent(1, first_path=str(info.parent)))
    yield found
    found.close()


def planned(name: str, num_nodes: int = 2) -> Job:
    """Over the loopback, on which all agents are here."""
    network = "fabric" if num_nodes > 1 else ""
    return job(name, ["t0", "t1"], num_nodes, interfaces=("lo",), network_name=network)


def test_it_comes_before_the_first_job_and_once(allocation: Allocation) -> None:
    link = allocation.attach()
    jobs = (planned("b0.l0"), planned("b0.l1"))
    link.send(TakeJobs(generation=0, jobs=jobs, preflight="first"))
    events = events_until(link, "jobs_done")
    done = events[0]
    assert (done["type"], done["networks"], done["num_calls"]) == ("preflight_done", ["fabric"], 2)
    assert done["findings"] == []
    assert sum(event["type"] == "trial_ends" for event in events) == 4
    link.send(TakeJobs(generation=1, jobs=(planned("b0.l2"),), preflight="first"))
    assert all(event["type"] != "preflight_done" for event in events_until(link, "jobs_done"))


def test_alone_it_runs_no_job_and_is_done_again_when_asked(allocation: Allocation) -> None:
    link = allocation.attach()
    for generation in range(2):
        order = TakeJobs(generation=generation, jobs=(planned("b0.l0"),), preflight="only")
        link.send(order)
        kinds = [event["type"] for event in events_until(link, "jobs_done")]
        assert kinds == ["preflight_done", "jobs_done"]


def test_launches_that_would_fail_are_not_started(with_other_torch: Allocation) -> None:
    link = with_other_torch.attach()
    jobs = (planned("b0.l0"), planned("b0.l1", 1))
    link.send(TakeJobs(generation=0, jobs=jobs, preflight="first"))
    events = events_until(link, "jobs_done")
    (refused,) = {event["message"] for event in events if event["type"] == "refused"}
    assert refused.startswith("no rank was started, by what the preflight found: torch differs: ")
    assert TORCH in refused
    assert refused.count("\n") == refused.count(" more)") == 0  # one reason is one line
    assert [e["trial_id"] for e in events if e["type"] == "trial_ends"] == ["b0.l1.t0", "b0.l1.t1"]


def test_a_machine_that_does_not_answer_is_said_and_keeps_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROADGAUGE_LIMIT_FACTOR", "0.2")  # of its leader
    allocation = Allocation(tmp_path)
    try:
        os.kill(allocation.agents[1].pid, signal.SIGSTOP)
        link = allocation.attach()
        link.send(TakeJobs(generation=0, jobs=(planned("b0.l0"),), preflight="only"))
        spooled = link.receive(HANG_S)
        assert spooled is not None
        texts = [each["text"] for each in spooled.event["findings"]]
        assert any("(node 1) was not checked: it did not answer in time" in text for text in texts)
    finally:
        allocation.close()


def test_another_preflight_takes_no_answers_of_the_one_before(allocation: Allocation) -> None:
    """Jobs that come in place of others meanwhile have their own."""
    link = allocation.attach()
    for generation in range(4):
        jobs = (planned(f"b{generation}.l0"),)
        link.send(TakeJobs(generation=generation, jobs=jobs, preflight="only"))
    events = events_until(link, "jobs_done")
    while len(events) < 2 or events[-2]["type"] != "preflight_done":
        events = events_until(link, "jobs_done")
    assert events[-2]["findings"] == []
    assert events[-2]["num_calls"] == 2


def test_an_agent_that_was_started_again_is_asked_as_any(allocation: Allocation) -> None:
    link = allocation.attach()
    allocation.agents[1].kill()
    allocation.agents[1].wait()
    allocation.agents.append(allocation.start_agent(1, again="again"))
    wait_until_it_is_there(allocation.agents[-1])
    link.send(TakeJobs(generation=0, jobs=(planned("b0.l0"),), preflight="only"))
    (done, _) = events_until(link, "jobs_done")
    assert (done["findings"], done["num_calls"]) == ([], 2)


def test_a_leader_that_is_told_to_stop_meanwhile_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROADGAUGE_LIMIT_FACTOR", "100")  # of its leader: nothing is over in time
    allocation = Allocation(tmp_path)
    try:
        os.kill(allocation.agents[1].pid, signal.SIGSTOP)
        link = allocation.attach()
        link.send(TakeJobs(generation=0, jobs=(planned("b0.l0"),), preflight="only"))
        link.send(Stop())
        assert allocation.leader.wait(HANG_S) == 0
    finally:
        allocation.close()


def test_launches_that_ask_for_other_nics_of_a_network_are_looked_at_apart() -> None:
    """Else the first ones' would be every agent's."""
    two = job("b0.l0", ["t0"], 2, interfaces=("a", "b"), network_name="rail")
    four = job("b0.l1", ["t0"], 4, interfaces=("a", "b", "c", "d"), network_name="rail")
    asked = Asked.of([two, four, job("b0.l2", ["t0"], 1)])
    seen = {
        agent: {each.name: len(each.interfaces) for each in networks}
        for agent, networks in asked.by_agent.items()
    }
    both = {"rail": 2, "rail (#2)": 4}
    assert seen == {0: both, 1: both, 2: {"rail (#2)": 4}, 3: {"rail (#2)": 4}}
    finding = PreflightFinding(kind="fails", text="cut", network="rail (#2)", agents=((0, 1),))
    assert list(refusals_of([finding], four, asked)) == ["cut"]
    assert list(refusals_of([finding], two, asked)) == []


def test_what_is_found_of_torch_and_nccl_stops_those_that_use_them_alone() -> None:
    own = job("b0.l0", ["t0"], 2)
    command = replace(
        own,
        orders=tuple(
            replace(
                each,
                order=replace(
                    each.order,
                    ranks=tuple(replace(rank, program="command") for rank in each.order.ranks),
                ),
            )
            for each in own.orders
        ),
    )
    asked = Asked.of([own, command])

    def stopped(of: Literal["our own workloads", "NCCL"], planned: Job) -> bool:
        finding = PreflightFinding(kind="fails", text="x", of=of, agents=((0, 1),))
        return list(refusals_of([finding], planned, asked)) != []

    assert stopped("our own workloads", own)
    assert not stopped("our own workloads", command)
    assert not stopped("NCCL", own)  # Gloo
