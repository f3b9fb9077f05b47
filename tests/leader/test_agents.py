"""How a connection to an agent ended, as the record of the trial will say it."""

import asyncio
import errno
import os

import pytest

from broadgauge.leader import agents
from broadgauge.leader.agents import Agents
from broadgauge.messages.agent import Alive
from broadgauge.messages.frames import FrameWriter


def ended(data: bytes = b"", error: OSError | None = None) -> str:
    async def listen() -> str:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        if error is not None:
            reader.set_exception(error)
        elif data:
            reader.feed_eof()
        return await Agents("token")._listen_to(1, reader, None)  # type: ignore[arg-type]

    return asyncio.run(listen())


def test_a_machine_that_answers_no_more_is_the_kernels_word() -> None:
    """Python 3.11 made one type of its time limit and asyncio's."""
    error = OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
    assert ended(error=error) == "the connection broke: Connection timed out"


def test_an_agent_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "SILENCE_LIMIT_S", 0.01)
    assert ended() == "it said nothing for 0.01 s"


def test_a_frame_that_did_not_come_is_named() -> None:
    frames = FrameWriter("agent1")
    first, _, third = (frames.write(Alive()) for _ in range(3))
    assert ended(first + third) == "frame 1 of agent1 did not come"
    assert ended(first) == "it closed the connection"


@pytest.mark.parametrize("num_turns", range(8))
def test_a_leader_that_ends_while_an_agent_speaks_ends(num_turns: int) -> None:
    """So many turns of the event loop after its word came; another word comes each second."""

    async def end_while_it_speaks() -> bool:
        frames, reader = FrameWriter("agent1"), asyncio.StreamReader()
        listening = Agents("token")._listen_to(1, reader, None)  # type: ignore[arg-type]
        task = asyncio.create_task(listening)
        for _ in range(10):
            await asyncio.sleep(0)
        reader.feed_data(frames.write(Alive()))
        for _ in range(num_turns):
            await asyncio.sleep(0)
        task.cancel()
        for _ in range(20):
            await asyncio.sleep(0)
        has_ended = task.cancelled()
        reader.feed_eof()
        return has_ended

    assert asyncio.run(end_while_it_speaks())
