"""Waiting for what a cluster does by itself."""

import time
from collections.abc import Callable

from tests.timeouts import HANG_S

_POLL_S = 0.05


def wait_until(is_so: Callable[[], bool], what: str, limit_s: float = HANG_S) -> None:
    """TimeoutError that says what did not happen. The limit is there against hangs."""
    end_s = time.monotonic() + limit_s
    while not is_so():
        if time.monotonic() > end_s:
            raise TimeoutError(f"waited {limit_s:g} s in vain for {what}")
        time.sleep(_POLL_S)
