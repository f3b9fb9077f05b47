"""Do a leader and two agents of the zip file run a job as pods would, heard by a log alone?

Orders are files, and the tool reads what the leader writes.
"""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.pod.pods import asked
from tests.agent.test_zip_file import PATIENCE_S
from tests.e2e.driving import wait_until
from tests.leader.pods import Pods
from tests.timeouts import HANG_S

from broadgauge.agent.facts import HOST_FACTS
from broadgauge.messages.frames import FrameReader
from broadgauge.messages.leader import Attach, Spooled, TakeJobs
from broadgauge.platforms.kubernetes.leader_log import LogLink
from broadgauge.platforms.led.handle import LinkLost

WRITE_PLACE = 'echo "at $MASTER_ADDR:$MASTER_PORT" >"$ITS_FILE"; echo given $RANK'
OF_RANKS = ("rank_said", "rank_exited", "log_text")
STAY = 'echo here >"$ITS_FILE"; exec sleep 600'


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[Pods]:
    made = Pods(tmp_path)
    yield made
    made.close()


def heard_until(link: LogLink, kind: str) -> list[Spooled]:
    """Every event up to the first of this kind."""
    found: list[Spooled] = []
    while not found or found[-1].event["type"] != kind:
        spooled = link.receive(PATIENCE_S)
        assert spooled is not None, f"no {kind} came, but {[each.event['type'] for each in found]}"
        found.append(spooled)
    return found


def heard_to_end(link: LogLink) -> tuple[list[Spooled], str]:
    """Every event that is left, and why no more come."""
    found: list[Spooled] = []
    try:
        while (spooled := link.receive(PATIENCE_S)) is not None:
            found.append(spooled)
    except LinkLost as loss:
        return found, str(loss)
    raise AssertionError(f"it does not end: {found}")


def of_kind(events: list[Spooled], kind: str) -> list[dict[str, Any]]:
    return [each.event for each in events if each.event["type"] == kind]


def said_by_ranks(events: list[Spooled], kind: str) -> dict[int, dict[str, Any]]:
    """What each rank said of this kind, which it said once."""
    found = [each for each in of_kind(events, "rank_said") if each["message"]["type"] == kind]
    said = {each["rank"]: each["message"] for each in found}
    assert len(said) == len(found)
    return said


def test_a_job_runs_by_files_and_a_log_and_each_event_comes_once(pods: Pods) -> None:
    pods.put(TakeJobs(generation=0, jobs=(pods.job("b0.l0", WRITE_PLACE),)))
    agents = [pods.serve(node) for node in (0, 1)]
    leader = pods.lead()
    link = pods.link(pods.log_of(leader))
    assert link.wait_for_hello(PATIENCE_S).generation == 0

    first = heard_until(link, "jobs_done")
    of_leader = [each.event["type"] for each in first if each.event["type"] not in OF_RANKS]
    assert of_leader == [
        *("life_begins", "ready", "trial_begins", "trial_starts", "marked", "marked"),
        *("trial_ends", "ended", "life_ends", "jobs_done"),
    ]
    (begins,) = of_kind(first, "life_begins")
    assert [each["place"] for each in begins["agents"]] == [
        {"node": f"machine-{node}", "pod": f"bench-{node}", "address": "127.0.0.1"}
        for node in (0, 1)
    ]
    assert {HOST_FACTS(each["facts"]).python for each in begins["agents"]} == {
        subprocess.check_output([pods.python, "-V"], text=True).split()[1]
    }
    for mark in of_kind(first, "marked"):
        assert [reading["node"] for reading in mark["nodes"]] == [0, 1]
    blocks = said_by_ranks(first, "block")
    assert {rank: block["samples"]["given_count"] for rank, block in blocks.items()} == {
        0: [0],
        1: [1],
    }
    assert said_by_ranks(first, "done").keys() == {0, 1}
    texts = {each["name"]: each["text"] for each in of_kind(first, "log_text")}
    place = texts["rank0.place.log"]
    assert place.startswith("at 127.0.0.1:")
    assert texts["rank1.place.log"] == place  # both were told where they meet

    elsewhere = pods.job("b0.l1", "true", network=asked(None, "default/rail-2"))
    there = pods.job("b0.l2", "echo given 7", "echo given 8")
    pods.put(TakeJobs(generation=1, jobs=(elsewhere, there)))
    second = heard_until(link, "jobs_done")
    assert {each.generation for each in second} == {1}
    refused = {each["message"].partition(": ")[0] for each in of_kind(second, "refused")}
    assert refused <= {"bench-0 on machine-0", "bench-1 on machine-1"}
    assert "default/rail-2 is not among the networks" in of_kind(second, "refused")[0]["message"]
    assert [each["trial_id"] for each in of_kind(second, "trial_ends")] == ["b0.l2.t0", "b0.l2.t1"]
    assert "agent_lost" not in [each.event["type"] for each in second]

    numbers = [each.number for each in (*first, *second)]
    assert numbers == list(range(len(numbers)))
    assert told_numbers(pods.written) == numbers
    assert "broadgauge: all 2 nodes are there" in pods.lines

    again = pods.link(iter((pods.written,)), after=3)  # another life of the tool
    assert [each.number for each in heard_until(again, "jobs_done")] == numbers[4 : len(first)]
    pods.put(Attach(after=numbers[-2]))
    pods.put(TakeJobs(generation=2, jobs=()))
    assert [each.number for each in heard_until(link, "jobs_done")] == [numbers[-1] + 1]
    assert told_numbers(pods.written) == [*numbers, numbers[-1], numbers[-1] + 1]

    leader.terminate()
    assert [process.wait(HANG_S) for process in (leader, *agents)] == [128 + signal.SIGTERM, 0, 0]


def told_numbers(log: bytes) -> list[int]:
    """Of events, as they stand in a log."""
    told = [each.message for each in FrameReader().feed(log)[0]]
    return [each["number"] for each in told if each["type"] == "spooled"]


def test_a_leader_that_is_told_to_end_ends_its_trial_and_says_so(pods: Pods) -> None:
    pods.put(TakeJobs(generation=0, jobs=(pods.job("b0.l0", STAY),)))
    agents = [pods.serve(node) for node in (0, 1)]
    leader = pods.lead()
    link = pods.link(pods.log_of(leader))
    hellos = said_by_ranks(heard_until(link, "trial_starts"), "hello")
    wait_until(lambda: all(map(Path.exists, map(pods.file_of_rank, (0, 1)))))  # between marks
    leader.terminate()
    rest, why = heard_to_end(link)
    assert why == "its pod was told to end (SIGTERM)"
    assert link.last_words == why
    (ends,) = of_kind(rest, "trial_ends")
    assert ends["trial_id"] == "b0.l0.t0"
    assert of_kind(rest, "life_ends")
    assert [process.wait(HANG_S) for process in (leader, *agents)] == [128 + signal.SIGTERM, 0, 0]
    assert not [rank for rank, said in hellos.items() if Path(f"/proc/{said['pid']}/exe").exists()]
    assert [list((pods.folder / f"scratch{node}").iterdir()) for node in (0, 1)] == [[], []]


def test_the_leader_of_another_pod_ends_at_once(pods: Pods) -> None:
    """Every pod of a job runs the same containers."""
    other = pods.lead(node=1)
    assert other.wait(HANG_S) == 0
    assert b"".join(pods.log_of(other)) == b""
