"""Were cores taken away while a test ran? Then what it says of times and rates says little.

On a virtual machine the hypervisor gives its cores to others for a while: packets wait, time-outs
end. A real-time program takes them just so. Probes on each core (tests/machine_watch.py) count
both; without priority they would count our own work, too, and what the kernel says was stolen is
taken instead. It is judged by that alone, not by what the test found.

This is for `make measure` (`--repeats-s`) and for no other session: facts are true on a busy
machine, or wrong. Only a test marked `measured`, which judges times or rates, is run again when it
failed while cores were taken away, after all others; the summary says how often it failed, and one
that fails in every attempt has failed. To run any other again would hide a race, so it fails at
once, and the summary says how much was taken meanwhile. Nor is a WrongVerdict repeated: it was
found while the cores were ours.

Some machines are never quiet. Where a tenth of the cores was taken in each attempt of a marked
test, or the product itself counted that they were taken from a trial (`judging`), it is not judged,
but skipped with the reason and listed. That excuses a failed assertion of the test itself and
nothing else: any other exception is a failure, `pytest.fail` and what goes wrong in a fixture
included.
"""

import math
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from tests.judgements import WrongVerdict
from tests.machine_watch import LostTime, watching
from tests.times import CACHE_KEY

MOST_ATTEMPTS = 4
DISTURBED_RATIO = 0.05
"""Of all core time of a second. Quiet machines of the kind that was looked at stay below 0.02."""
EXCUSED_RATIO = 0.1
"""Of all core time of an attempt. A tenth of the cores gone makes what needs them all a tenth
slower, and most bounds lie nearer: twice what advise/trial_findings.py calls a disturbed trial."""
QUIET_RATIO = 0.02
PATIENCE_S = 30
SHORT_PATIENCE_S = 5
"""After a wait that ended without quiet: a machine that is never quiet is not worth the time."""
BUDGET_S = 60
"""For all repeats of a session and the waits before them, unless `--repeats-s` says another."""

NO_TIME = "no time is left to repeat it"

now_s = time.monotonic


class StolenError(AssertionError):
    """A failed assertion on trials of which one had cores taken away."""


def says_that_cores_were_stolen(record: Mapping[str, Any]) -> bool:
    """By the product's own count."""
    return any(finding["rule"] == "stolen-cores" for finding in record["findings"])


@contextmanager
def judging(trials: Sequence[Mapping[str, Any]]) -> Iterator[None]:
    """What is asserted inside rests on these records: steal comes in bursts, and one that spoils a
    trial may be little of a whole attempt."""
    num_stolen = sum(map(says_that_cores_were_stolen, trials))
    try:
        yield
    except AssertionError as error:
        if num_stolen == 0:
            raise
        raise StolenError(f"{num_stolen} of {len(trials)} trials had no cores: {error}") from error


def core_time() -> tuple[float, float]:
    """Taken from us and all, in seconds of cores since some beginning. By the probes where they
    have priority; else by what the hypervisor says it stole: /proc/stat in proc(5)."""
    lost_time = CoreWatch.lost_time
    if lost_time is not None and lost_time.has_priority:
        return lost_time.total_lost_s, lost_time.num_cores * now_s()
    ticks = [int(n) for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    return ticks[7] * tick_s, sum(ticks) * tick_s


@dataclass(frozen=True, slots=True)
class Span:
    """What one or more stretches of time lasted, and their core time."""

    length_s: float = 0.0
    taken_s: float = 0.0
    all_s: float = 0.0

    @classmethod
    def until_now(cls) -> "Span":
        """Since some beginning."""
        return cls(now_s(), *core_time())

    def __add__(self, other: "Span") -> "Span":
        taken_s, all_s = self.taken_s + other.taken_s, self.all_s + other.all_s
        return Span(self.length_s + other.length_s, taken_s, all_s)

    def __sub__(self, other: "Span") -> "Span":
        return self + Span(-other.length_s, -other.taken_s, -other.all_s)

    @property
    def taken_ratio(self) -> float:
        return self.taken_s / self.all_s if self.all_s > 0 else 0.0


class CoreWatch(threading.Thread):
    """Probes on each core, while it runs; reads each second how much was taken in it."""

    lost_time: LostTime | None = None
    """What the probes of this session find: None before they run and after."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.folder: Path | None = None
        self._seconds: deque[tuple[float, float]] = deque(maxlen=3600)
        self._begun, self._ending = threading.Event(), threading.Event()

    def begin(self) -> None:
        """Returns when the probes run."""
        self.start()
        self._begun.wait()

    def end(self) -> None:
        """Returns when nothing of them is left."""
        self._ending.set()
        if self.is_alive():
            self.join()

    def run(self) -> None:
        with watching() as self.folder:
            CoreWatch.lost_time = LostTime(self.folder)
            self._begun.set()
            before = Span.until_now()
            while not self._ending.wait(1):
                after = Span.until_now()
                self._seconds.append((after.length_s, (after - before).taken_ratio))
                before = after
            CoreWatch.lost_time = None

    def most_since(self, begin_s: float) -> float:
        """The worst second's ratio since then (monotonic clock)."""
        return max((ratio for at_s, ratio in list(self._seconds) if at_s > begin_s), default=0.0)


def wait_until_quiet(patience_s: float) -> bool:
    """Until a second in which all of it was ours. Was there one?"""
    end_s = now_s() + patience_s
    while now_s() < end_s:
        before = Span.until_now()
        time.sleep(1)
        if (Span.until_now() - before).taken_ratio < QUIET_RATIO:
            return True
    return False


class Budget:
    """The time that a session has for repeats, and how long to wait for quiet before one."""

    def __init__(self, budget_s: float) -> None:
        self.left_s = budget_s
        self._patience_s = PATIENCE_S

    def has_room(self, length_s: float) -> bool:
        """For a repeat that takes about as long as the attempt before it."""
        return length_s <= self.left_s

    def wait(self) -> None:
        """For quiet, not as long where the last wait was in vain."""
        begin_s = now_s()
        is_quiet = wait_until_quiet(min(self._patience_s, self.left_s))
        self._patience_s = PATIENCE_S if is_quiet else SHORT_PATIENCE_S
        self.left_s -= now_s() - begin_s


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of a test."""

    span: Span
    """The test's own and that of all set-ups of its module, whose fixtures may have measured."""
    failures: tuple[tuple[str, type[BaseException]], ...]
    """Phase and exception."""

    @property
    def is_excusable(self) -> bool:
        if self.failures == (("call", StolenError),):
            return True
        only_asserted = self.failures == (("call", AssertionError),)
        return only_asserted and self.span.taken_ratio >= EXCUSED_RATIO


@dataclass(slots=True)
class Test:
    """One test, over all its attempts."""

    __test__ = False

    item: pytest.Item
    attempts: list[Attempt] = field(default_factory=list)
    reports: list[pytest.TestReport] = field(default_factory=list)
    """Of the last one."""
    is_waiting: bool = False
    """To be repeated, so that nothing is told of it yet."""
    said: str = ""
    worst_ratio: float = 0.0
    """Taken of a second of an attempt that failed."""


class Repeating:
    """The plugin: runs a marked test again that failed while cores were taken away, once all others
    have run. The cheapest modules come first, so that much is judged where time runs out."""

    def __init__(self, budget_s: float = BUDGET_S) -> None:
        self.watch = CoreWatch()
        self._budget = Budget(budget_s)
        self._begin_module(None)
        self._begin = Span()
        self._failures: list[tuple[str, type[BaseException]]] = []
        self._tests: dict[str, Test] = {}
        self.disturbed: list[str] = []
        self.not_judged: list[str] = []

    def pytest_sessionstart(self) -> None:
        self.watch.begin()

    def pytest_unconfigure(self) -> None:
        self.watch.end()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """A module stays together: its tests share fixtures that take long."""
        cache = getattr(config, "cache", None)
        times = cache.get(CACHE_KEY, {}) if cache else {}
        wall_s: Counter[Path] = Counter()
        for item in items:
            wall_s[item.path] += times.get(item.nodeid, {}).get("wall_s", math.inf)
        items.sort(key=lambda item: wall_s[item.path])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Where it ends before its time, what waited to be repeated has failed."""
        try:
            return (yield)
        finally:
            for test in self._tests.values():
                if test.is_waiting:
                    self._tell(test)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Runs the test, and puts it behind all others where it is to be repeated."""
        if nextitem is not None and nextitem.nodeid in self._tests:
            nextitem = None  # a repeat: what a module's fixtures hold may be what was measured
        test = self._tests.setdefault(item.nodeid, Test(item))
        if test.attempts or item.path != self._module:
            self._begin_module(item.path)
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        if not test.attempts or self._has_room(test):
            self._attempt(test, nextitem)
            has_failed = any(report.failed for report in test.reports)
            end = self._end_of_failing(test) if has_failed else "passed then"
        else:
            end = NO_TIME
        test.is_waiting = end is None
        if end is None:
            item.session.items.append(item)
        else:
            self._note(test, end)
            self._tell(test)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _note(self, test: Test, end: str) -> None:
        """For the summary; and what is not judged is no failure."""
        failed = next((report for report in test.reports if report.failed), None)
        if test.worst_ratio >= DISTURBED_RATIO:
            count = len(test.attempts) - (failed is None)
            self.disturbed.append(
                f"{test.item.nodeid}: {test.worst_ratio:.0%} of a second's core time was taken; "
                f"failed {'once' if count == 1 else f'{count} times'}, {end}"
            )
        if failed and is_marked(test.item) and all(each.is_excusable for each in test.attempts):
            self._excuse(test, failed)

    def _tell(self, test: Test) -> None:
        for report in test.reports:
            test.item.ihook.pytest_runtest_logreport(report=report)

    def _has_room(self, test: Test) -> bool:
        """Is there still time for a repeat, after the wait before it?"""
        length_s = test.attempts[-1].span.length_s
        if self._budget.has_room(length_s):
            self._budget.wait()
            return True
        return False

    def _begin_module(self, path: Path | None) -> None:
        self._module, self._begin_s, self._set_ups = path, now_s(), Span()

    def _attempt(self, test: Test, nextitem: pytest.Item | None) -> None:
        self._begin, self._failures, earlier = Span.until_now(), [], self._set_ups
        test.reports = runtestprotocol(test.item, nextitem=nextitem, log=False)
        span = Span.until_now() - self._begin
        if test.attempts:
            self._budget.left_s -= span.length_s
        test.attempts.append(Attempt(earlier + span, tuple(self._failures)))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Notes what the report does not say: the exception's type, a set-up's core time."""
        if call.excinfo is not None:
            self._failures.append((call.when, call.excinfo.type))
            self._tests[item.nodeid].said = call.excinfo.exconly().splitlines()[0]
        if call.when == "setup":
            self._set_ups += Span.until_now() - self._begin

    def _end_of_failing(self, test: Test) -> str | None:
        """Why is a test that has just failed not run again? None: it is."""
        span, count = test.attempts[-1].span, len(test.attempts)
        taken_ratio = max(self.watch.most_since(self._begin_s), span.taken_ratio)
        test.worst_ratio = max(test.worst_ratio, taken_ratio)
        if ("call", WrongVerdict) in self._failures:
            return "judged while the cores were ours"
        if taken_ratio < DISTURBED_RATIO:
            return "the last time undisturbed"
        if not is_marked(test.item):
            return "and is not repeated: it does not need the cores"
        if count == MOST_ATTEMPTS:
            return "in every attempt"
        return None if self._budget.has_room(span.length_s) else NO_TIME

    def _excuse(self, test: Test, report: pytest.TestReport) -> None:
        """Makes a failure a skip."""
        item = test.item
        *others, last = (f"{each.span.taken_ratio:.0%}" for each in test.attempts)
        shares = f"{', '.join(others)} and {last}" if others else last
        count = len(test.attempts)
        attempts = "1 attempt" if count == 1 else f"{count} attempts"
        reason = f"not judged: others took {shares} of the cores in {attempts}"
        reason = reason.replace("%", " %")
        self.not_judged.append(f"{item.nodeid}: {reason}; {test.said}")
        report.outcome = "skipped"
        report.longrepr = (str(item.path), (item.location[1] or 0) + 1, reason)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for title, lines in (("disturbed", self.disturbed), ("not judged", self.not_judged)):
            if lines:
                terminalreporter.section(f"{title}: cores were taken away")
                for line in lines:
                    terminalreporter.write_line(line)


def is_marked(item: pytest.Item) -> bool:
    """Does it judge times or rates, which need the machine's cores?"""
    return item.get_closest_marker("measured") is not None
