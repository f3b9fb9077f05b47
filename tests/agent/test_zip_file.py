"""Does the zip file alone own ranks, under the oldest Python and the newest?

It runs with -I and -S: no packages, no variables, nothing of the folder it is started in.
"""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import pythons
from tests.e2e.driving import wait_until

from broadgauge.agent import bundle
from broadgauge.messages.agent import (
    EVENT,
    AskClock,
    ClockTold,
    CountersRead,
    End,
    Ended,
    Event,
    Marked,
    Order,
    RankSaid,
    RanksWait,
    ReadCounters,
    Ready,
    Release,
    RunTrial,
    TrialStarts,
)
from broadgauge.messages.found_links import (
    CallOnLink,
    Endpoint,
    LinkProbe,
    LinkProbed,
    ListenOnLink,
    ListensOnLink,
)
from broadgauge.messages.frames import FrameReader, FrameWriter
from broadgauge.messages.launch_order import LaunchOrder, Mode, NodePlan, PhaseLimits, RankPlan
from broadgauge.messages.rank import TrialCommand
from broadgauge.messages.tasks import CommandTask, MetricSource, RankLayout
from broadgauge.messages.vocabulary import Phase

NOTHING_THROUGH = "a stream got nothing through in its time"
RANK = Path(__file__).with_name("plain_rank.py")
LIMITS = PhaseLimits(rendezvous_s=60, warm_up_s=60, measure_s=60, teardown_s=10)
PATIENCE_S = 300.0
"""Against hangs."""
PATIENT = {"BROADGAUGE_LIMIT_FACTOR": "30"}
"""No limit of the product is of this machine's speed."""


class Leader:
    """What gives orders to one supervisor of the zip file."""

    def __init__(self, python: str, folder: Path) -> None:
        self.python, self.archive = python, folder / "broadgauge.zip"
        self.archive.write_bytes(bundle.build())
        self.logs = folder / "logs"
        self.logs.mkdir()
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(PATIENCE_S)
        self.reader, self.writer = FrameReader(), FrameWriter("leader")
        self.heard: list[Event] = []
        program = [python, "-I", "-S", str(self.archive), "supervise"]
        with theirs:
            self.process = subprocess.Popen(
                [*program, str(self.logs), str(folder), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={"PATH": os.environ["PATH"], "RANK": "9", "KEPT": "yes", **PATIENT},
                cwd=folder,
            )

    def give(self, order: Order) -> None:
        self.socket.sendall(self.writer.write(order))

    def hear(self, kind: type[Any], such: Callable[[Any], bool] = lambda _: True) -> Any:
        """The next event of this kind; what comes before it is kept in `heard`."""
        while True:
            for place, event in enumerate(self.heard):
                if isinstance(event, kind) and such(event):
                    return self.heard.pop(place)
            data = self.socket.recv(65_536)
            assert data, f"it ended; said: {self.heard}"
            self.heard += [EVENT(received.message) for received in self.reader.feed(data)[0]]

    def hear_rank(self, rank: int, kind: str) -> dict[str, Any]:
        said = self.hear(
            RankSaid, lambda event: event.rank == rank and event.message["type"] == kind
        )
        message: dict[str, Any] = said.message
        return message

    def order(self, **changes: Any) -> LaunchOrder:
        """Two ranks on this machine, which is the only node unless it is told otherwise."""
        node = changes.get("nodes", (NodePlan(node=0, cores=()),))[0].node
        program = (self.python, "-I", "-S", str(RANK), str(self.archive))
        ranks = tuple(
            RankPlan(
                rank=rank,
                node=node,
                program=program,
                environment={"RANK": str(rank), "LOCAL_RANK": str(place)},
                log_paths={"ITS_FILE": f"rank{rank}.file"},
                log=f"rank{rank}.log",
            )
            for place, rank in enumerate((2 * node, 2 * node + 1))
        )
        contract = {"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": str(node)}
        fields: dict[str, Any] = {
            "launch_id": "b0.l0",
            "mode": Mode.PLAIN,
            "num_nodes": 1,
            "nodes": (NodePlan(node=0, cores=()),),
            "ranks": ranks,
            "environment": contract | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"},
            "link": None,
            "limits": LIMITS,
        }
        return LaunchOrder(**fields | changes)


def trial(command: tuple[str, ...]) -> RunTrial:
    metric = MetricSource(
        name="given_count", regex=r"given (\d+)", comma=None, json_key=None, skip_first=0
    )
    return RunTrial(
        command=TrialCommand(
            trial_id="t0",
            task=CommandTask(command=command, working_directory=None, metrics=(metric,)),
            layout=RankLayout(nodes=2, ranks_per_node=2, device="cpu", backend="gloo"),
            seed=0,
            process_group_timeouts_s=dict.fromkeys(Phase, 10.0),
        ),
        link=None,
    )


@pytest.fixture(params=["oldest", "newest"])
def leader(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Leader]:
    made = Leader(getattr(pythons, request.param)(), tmp_path)
    yield made
    made.socket.close()
    assert made.process.wait(PATIENCE_S) is not None


def test_it_owns_all_ranks_of_a_launch(leader: Leader) -> None:
    """Hello, a trial with its marks, what the command printed, and the end."""
    leader.give(leader.order())
    assert leader.hear(Ready).notes == ()
    version = leader.hear_rank(0, "hello")["torch"]
    assert leader.hear_rank(1, "hello")["torch"] == version
    leader.give(trial(("sh", "-c", 'echo given $RANK; echo "$KEPT" >"$ITS_FILE"')))
    assert leader.hear(TrialStarts).facts is None
    begin, end = leader.hear(Marked), leader.hear(Marked)
    assert (begin.label, end.label) == ("command:begin", "command:end")
    assert end.time_s >= begin.time_s
    assert [reading.node for reading in end.nodes] == [0]
    assert end.nodes[0].counters.cores_count == len(os.sched_getaffinity(0))
    for rank in (0, 1):
        samples = leader.hear_rank(rank, "block")["samples"]
        assert samples == {"given_count": [rank], "nothing_else_count": [0]}
        assert leader.hear_rank(rank, "done")["trial_id"] == "t0"
        assert (leader.logs / f"rank{rank}.file").read_text() == "yes\n"
    leader.give(End())
    leader.hear(Ended)
    assert leader.process.wait(PATIENCE_S) == 0


def test_it_waits_for_the_leader_where_another_agent_has_ranks(leader: Leader) -> None:
    """Counters are read when the leader says so, and ranks go on when it says that."""
    leader.give(leader.order(num_nodes=2, nodes=(NodePlan(node=1, cores=(0,)),)))
    leader.hear(Ready)
    for rank in (2, 3):
        leader.hear_rank(rank, "hello")
    leader.give(trial(("true",)))
    for label in ("command:begin", "command:end"):
        assert leader.hear(RanksWait).label == label
        leader.give(Release(label="another"))
        leader.give(AskClock(number=7))
        assert leader.hear(ClockTold).number == 7
        assert not [event for event in leader.heard if isinstance(event, Marked | CountersRead)]
        leader.give(ReadCounters(label=label))
        assert leader.hear(CountersRead).label == label
        assert not [event for event in leader.heard if isinstance(event, Marked)]
        leader.give(Release(label=label))
        marked = leader.hear(Marked)
        assert (marked.label, [reading.node for reading in marked.nodes]) == (label, [1])
    for rank in (2, 3):
        leader.hear_rank(rank, "done")
    leader.give(End())
    leader.hear(Ended)


def refuses(there: Endpoint) -> bool:
    """Does nobody listen there any more?"""
    try:
        socket.create_connection((there.address, there.port), timeout=5).close()
    except OSError:
        return True
    return False


def test_it_measures_a_network_with_another_and_obeys_meanwhile(
    leader: Leader, tmp_path: Path
) -> None:
    """Over the loopback, both sides under this Python; a trial ends one that still waits."""
    folder = tmp_path / "other"
    folder.mkdir()
    other = Leader(leader.python, folder)
    ends = ((leader, 0), (other, 1))
    try:
        for each, number in ends:
            node = NodePlan(node=number, cores=(), interfaces=("lo",))
            each.give(each.order(num_nodes=2, nodes=(node,)))
            each.hear(Ready)
        for num_streams in (0, 1, 8):
            probe = LinkProbe(number=num_streams, key="k" * 32, num_streams=num_streams)
            other.give(ListenOnLink(probe=probe))
            there = other.hear(ListensOnLink).endpoints
            other.give(AskClock(number=7))
            other.hear(ClockTold)
            assert not [event for event in other.heard if isinstance(event, LinkProbed)]
            leader.give(CallOnLink(probe=probe, endpoints=there))
            caller, listener = leader.hear(LinkProbed), other.hear(LinkProbed)
            assert caller.trouble is None
            assert (caller.round_trip_s is not None) == (num_streams == 0)
            # Where others have the cores for all of its fifth of a second, a stream says so.
            assert listener.trouble is None or NOTHING_THROUGH in listener.trouble
            is_counted = num_streams > 0 and listener.trouble is None
            assert (listener.stream_gbps is not None) == is_counted
        other.give(ListenOnLink(probe=probe))
        (there,) = other.hear(ListensOnLink).endpoints
        other.give(trial(("true",)))
        assert other.hear(TrialStarts).facts is None
        wait_until(lambda: refuses(there))
    finally:
        other.socket.close()
        assert other.process.wait(PATIENCE_S) is not None


def test_it_ends_its_ranks_when_the_leader_is_gone(leader: Leader) -> None:
    leader.give(leader.order())
    pids = [leader.hear_rank(rank, "hello")["pid"] for rank in (0, 1)]
    leader.socket.close()
    assert leader.process.wait(PATIENCE_S) == 0
    wait_until(lambda: not [pid for pid in pids if Path(f"/proc/{pid}/cmdline").exists()])


def test_each_python_reads_every_module(tmp_path: Path) -> None:
    """Also those that only torch lets import: their grammar is 3.10's."""
    archive = tmp_path / "broadgauge.zip"
    archive.write_bytes(bundle.build())
    program = (
        "import sys, zipfile\n"
        "with zipfile.ZipFile(sys.argv[1]) as archive:\n"
        "    for name in archive.namelist():\n"
        "        if name.endswith('.py'):\n"
        "            compile(archive.read(name), name, 'exec')\n"
    )
    for python in (pythons.oldest(), pythons.newest()):
        subprocess.run([python, "-I", "-S", "-c", program, archive], check=True)
