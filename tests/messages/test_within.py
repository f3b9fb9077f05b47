"""What is awaited for a while: it comes, it does not, it fails, or whoever waits is to end."""

import asyncio
import sys
from collections.abc import Awaitable, Callable

import pytest

from broadgauge.messages.within import within

HANG_S = 60.0
TURNS = range(8)
"""Of the event loop, between what comes and what cancels: more than any of it takes."""


async def turn(times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


async def come(value: str) -> str:
    await turn(2)
    return value


def test_what_comes_is_returned_and_what_fails_is_raised() -> None:
    async def fail() -> str:
        await turn(2)
        raise ValueError("it failed")

    assert asyncio.run(within(HANG_S, come("here"))) == "here"
    with pytest.raises(ValueError, match="it failed"):
        asyncio.run(within(HANG_S, fail()))


@pytest.mark.parametrize("limit_s", [0.01, 0.0, -1.0])
def test_what_does_not_come_in_time_is_ended(limit_s: float) -> None:
    async def wait() -> asyncio.Task[None]:
        never: asyncio.Task[None] = asyncio.create_task(asyncio.sleep(HANG_S))
        with pytest.raises(asyncio.TimeoutError):
            await within(limit_s, never)
        return never

    assert asyncio.run(wait()).cancelled()


def test_nothing_that_was_taken_is_lost_at_the_limit() -> None:
    """Whether it comes before the limit or after it: it is returned, or still there."""

    async def take(num_turns: int) -> list[str]:
        queue: asyncio.Queue[str] = asyncio.Queue()
        asyncio.get_running_loop().call_later(0.0, queue.put_nowait, "it")
        await turn(num_turns)
        try:
            return [await within(0.0, queue.get())]
        except TimeoutError:
            await turn(20)
            return [queue.get_nowait()]

    for num_turns in TURNS:
        assert asyncio.run(take(num_turns)) == ["it"]


@pytest.mark.parametrize("num_turns", TURNS)
def test_who_is_cancelled_just_as_it_comes_ends(num_turns: int) -> None:
    async def wait_on(queue: "asyncio.Queue[str]") -> None:
        while True:
            await within(HANG_S, queue.get())

    assert ends(num_turns, wait_on)


def ends(num_turns: int, wait_on: Callable[["asyncio.Queue[str]"], Awaitable[None]]) -> bool:
    """Does this end by a cancellation, so many turns after something came?"""

    async def run() -> bool:
        queue: asyncio.Queue[str] = asyncio.Queue()
        task = asyncio.ensure_future(wait_on(queue))
        await turn(10)
        queue.put_nowait("it")
        await turn(num_turns)
        task.cancel()
        await turn(20)
        has_ended = task.cancelled()
        while not task.done():
            task.cancel()
            await turn(1)
        return has_ended

    return asyncio.run(run())


def test_pythons_own_loses_that_cancellation_at_some_turn() -> None:
    """Which is why ours is there: without this one, that of Python would do."""

    async def wait_on(queue: "asyncio.Queue[str]") -> None:
        while True:
            await asyncio.wait_for(queue.get(), HANG_S)  # noqa: TID251  what is shown

    assert all(ends(num_turns, wait_on) for num_turns in TURNS) == (sys.version_info >= (3, 12))
