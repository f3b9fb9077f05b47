"""What is awaited, for so long and no longer?

`asyncio.wait_for` of Python 3.10 and 3.11 loses a cancellation that comes just when what it waits
for is there: it returns that, and whoever waits in a loop waits on. A leader whose agents say
every second that they live could so outlive its own end, and its agents with it.
Source: https://github.com/python/cpython/issues/86296; Python 3.12 keeps it.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def within(limit_s: float, awaited: Awaitable[T]) -> T:
    """What comes of it.

    Raises asyncio.TimeoutError where nothing did in time, and what it raises. Where it is there as
    the limit is over it is returned: nothing that was taken in is lost.
    """
    waiting: asyncio.Future[T] = asyncio.ensure_future(awaited)
    try:
        await asyncio.wait({waiting}, timeout=limit_s)
    finally:
        if not waiting.done():  # the limit is over, or whoever waits is not to any more
            waiting.cancel()
            await asyncio.wait({waiting})
    if waiting.cancelled():
        raise asyncio.TimeoutError
    return waiting.result()
