"""What time is it?"""

import time
from typing import Protocol


class Clock(Protocol):
    """Injected, so that a run on the fake platform takes no time."""

    def unix_s(self) -> float:
        """Seconds since 1970, for records."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never run backwards, for differences."""
        ...


class SystemClock:
    """This machine's clock."""

    def unix_s(self) -> float:
        return time.time()

    def monotonic_s(self) -> float:
        return time.monotonic()
