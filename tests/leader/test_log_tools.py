"""What can a tool that only reads a leader's log, and only writes files, hear and ask?"""

import asyncio
import gzip
import json
import os
import threading
from pathlib import Path

import pytest

from broadgauge.leader import log_tools
from broadgauge.leader.log_tools import LogTools
from broadgauge.leader.spool import Spool
from broadgauge.messages.codec import encode
from broadgauge.messages.frames import FrameReader, Received
from broadgauge.messages.leader import (
    Attach,
    JobsDone,
    LeaderHello,
    LeaderOrder,
    Stop,
    TakeJobs,
    TrialBegins,
)


class Rig:
    """A leader's words in a file, and its folder of orders."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.orders = folder / "orders"
        self.orders.mkdir()
        self.spool = Spool(folder / "spool")
        self.obeyed: list[LeaderOrder] = []
        self.log = os.open(folder / "log", os.O_RDWR | os.O_CREAT)
        self.tools = LogTools(
            self.spool, self.hello, self.obeyed.append, orders=self.orders, output=self.log
        )

    def hello(self) -> LeaderHello:
        return LeaderHello(
            version="v", pid=1, generation=len(self.obeyed) - 1, next_number=self.spool.next_number
        )

    def order(self, number: int, order: LeaderOrder) -> None:
        """As a ConfigMap's folder gets it: at once, under its name."""
        draft = self.folder / "draft"
        draft.write_bytes(gzip.compress(json.dumps(encode(order)).encode(), mtime=0))
        draft.rename(self.orders / f"order-{number:05}.json.gz")

    def happens(self, trial_id: str) -> None:
        self.spool.append(0, TrialBegins(trial_id=trial_id, unix_s=0.0))
        self.tools.announce()

    def said(self) -> list[Received]:
        return FrameReader().feed((self.folder / "log").read_bytes())[0]

    def trials(self) -> list[tuple[str, int]]:
        """Of what kind of sender's number, and which event."""
        told = [each for each in self.said() if each.message["type"] == "spooled"]
        return [(each.sender, each.message["number"]) for each in told]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_tools, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(log_tools, "HELLO_EVERY_S", 0.05)


async def _until(condition: object) -> None:
    assert callable(condition)
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come about")


def test_orders_that_were_there_first_are_obeyed_before_it_says_hello(tmp_path: Path) -> None:
    async def live() -> None:
        rig = Rig(tmp_path)
        rig.order(0, TakeJobs(generation=0, jobs=()))
        await rig.tools.begin()
        await rig.tools.close()
        assert rig.obeyed == [TakeJobs(generation=0, jobs=())]
        first = rig.said()[0].message
        assert (first["type"], first["generation"]) == ("leader_hello", 0)

    asyncio.run(live())


def test_events_are_told_as_they_come_and_each_once(tmp_path: Path) -> None:
    async def live() -> None:
        rig = Rig(tmp_path)
        await rig.tools.begin()
        for number in range(5):
            rig.happens(f"t{number}")
            await asyncio.sleep(0.01 * (number % 2))
        await _until(lambda: len(rig.trials()) == 5)
        rig.spool.append(0, JobsDone())
        await rig.tools.close()
        assert [number for _, number in rig.trials()] == [0, 1, 2, 3, 4, 5]

    asyncio.run(live())


def test_what_was_missed_is_told_again_by_a_sender_of_another_name(tmp_path: Path) -> None:
    async def live() -> None:
        rig = Rig(tmp_path)
        await rig.tools.begin()
        for number in range(4):
            rig.happens(f"t{number}")
        await _until(lambda: len(rig.trials()) == 4)
        rig.order(1, Attach(after=1))
        await _until(lambda: len(rig.trials()) == 6)
        await rig.tools.close()
        senders = [sender for sender, _ in rig.trials()]
        assert [number for _, number in rig.trials()] == [0, 1, 2, 3, 2, 3]
        assert len(set(senders[:4])) == len(set(senders[4:])) == 1
        assert senders[0] != senders[4]

    asyncio.run(live())


def test_later_orders_are_obeyed_in_their_order_and_once(tmp_path: Path) -> None:
    async def live() -> None:
        rig = Rig(tmp_path)
        await rig.tools.begin()
        rig.order(2, Stop())
        rig.order(1, TakeJobs(generation=1, jobs=()))
        await _until(lambda: len(rig.obeyed) == 2)
        await asyncio.sleep(0.05)
        await rig.tools.close()
        assert sorted(order.type for order in rig.obeyed) == ["stop", "take_jobs"]

    asyncio.run(live())


def test_a_damaged_order_ends_the_leader_with_words_that_repeat_nothing(tmp_path: Path) -> None:
    async def live() -> None:
        rig = Rig(tmp_path)
        await rig.tools.begin()
        (rig.orders / "order-00007.json.gz").write_bytes(b"secret words")
        await _until(lambda: rig.tools._last_words)
        await rig.tools.close()
        last = rig.said()[-1].message
        assert last["type"] == "leader_gives_up"
        assert "order-00007" in last["message"]
        assert "secret" not in last["message"]

    asyncio.run(live())


def test_what_waits_to_be_written_at_the_end_is_written(tmp_path: Path) -> None:
    """Whoever reads the log is slow, and the pod is told to end."""

    async def live() -> None:
        rig = Rig(tmp_path)
        await rig.tools.begin()
        can_write = threading.Event()
        rig.tools._writer.submit(can_write.wait)
        for number in range(3):
            rig.happens(f"t{number}")
        await _until(lambda: rig.tools._told == 0)
        closing = asyncio.create_task(rig.tools.close())
        await _until(lambda: all(task.done() for task in rig.tools._tasks))
        can_write.set()
        await closing
        assert [number for _, number in rig.trials()] == [0, 1, 2]

    asyncio.run(live())


def test_it_is_absent_from_the_last_thing_that_happened(tmp_path: Path) -> None:
    async def live() -> None:
        rig = Rig(tmp_path)
        await rig.tools.begin()
        await asyncio.sleep(0.06)
        before_s = rig.tools.absent_s
        rig.happens("t0")
        assert rig.tools.absent_s < before_s
        await _until(lambda: sum(each.message["type"] == "leader_hello" for each in rig.said()) > 1)
        await rig.tools.close()

    asyncio.run(live())
