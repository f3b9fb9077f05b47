"""How does a rank go on when a mount no longer answers? Work runs in a thread with a limit.

A thread that waits in the kernel for a dead mount can't be ended, nor could a process: it is left,
and everything else on that storage is refused.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


class HangsError(Exception):
    """The storage did not answer within the limit."""


def hold_device_guard() -> None:
    """Call it once in a thread that lives on. Where torch finds no GPU, the first thread that makes
    fake tensors (a DTensor's copy does) registers a device guard of its own, and the next to make
    some after that thread has ended crashes. Seen with torch 2.11: two threads, one after the
    other, each `with FakeTensorMode(): torch.empty(1)`."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        pass


def within(limit_s: float, what: str, call: Callable[[], Result]) -> Result:
    """What `call` gives or raises. Raises HangsError where it takes longer than the limit."""
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001  raised again in the thread that waits
            errors.append(error)

    thread = threading.Thread(target=run, name=f"storage: {what}", daemon=True)
    thread.start()
    thread.join(limit_s)
    if thread.is_alive():
        raise HangsError(
            f"{what}: no answer for {limit_s:.3g} s; the thread that waits for it is left"
        )
    if errors:
        raise errors[0]
    return results[0]
