"""Into which parts does the time of a phase fall?"""

import time
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """What a repetition took on this rank."""

    parts_s: dict[str, float]
    """By name, in their order, without a gap."""
    operations_count: int | None
    """Calls to the kernel that moved the files' bytes; None: nobody counts them."""

    @property
    def seconds(self) -> float:
        return sum(self.parts_s.values())


@dataclass(slots=True)
class Stopwatch:
    """Cuts the time since it was made into parts, which follow each other without a gap."""

    parts_s: dict[str, float] = field(default_factory=dict)
    _last_s: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        return sum(self.parts_s.values())

    def ends(
        self,
        part: str,
        *,
        at_s: float | None = None,
        read_s: float | None = None,
        write_s: float | None = None,
    ) -> float:
        """Now, or at that moment of `time.perf_counter`, and not before the last part ended.
        `read_s`, `write_s`: seconds of it that are a part `read` or `write`, which alternated with
        this one. Gives the seconds since the last part ended."""
        moment_s = max(self._last_s, time.perf_counter() if at_s is None else at_s)
        passed_s, self._last_s = moment_s - self._last_s, moment_s
        other = [("read", read_s), ("write", write_s)]
        within_s = {name: min(s, passed_s) for name, s in other if s is not None}
        self._add(part, passed_s - sum(within_s.values()))
        for name, seconds in within_s.items():
            self._add(name, seconds)
        return passed_s

    def _add(self, part: str, seconds: float) -> None:
        self.parts_s[part] = self.parts_s.get(part, 0.0) + seconds
