"""Were cores taken away while a test ran? Then what it says of times and rates says little.

On a virtual machine the hypervisor gives its cores to others for a while: packets wait, time-outs
end. The kernel counts that as steal. It is judged by that count alone, not by what the test found.

This is for `make measure` (`--repeats-s`) and for no other session: facts are true on a busy
machine, or wrong. Only a test marked `measured`, which judges times or rates, is run again when it
failed while cores were stolen; the summary says how often it failed, and one that fails in every
attempt has failed. To run any other again would hide a race, so it fails at once, and the summary
says how much was stolen meanwhile.

Some machines are never quiet. Where a tenth of the cores was taken in each attempt of a marked
test, or the product itself counted that they were taken from a trial (`judging`), it is not judged,
but skipped with the reason and listed. That excuses a failed assertion of the test itself and
nothing else: any other exception is a failure, `pytest.fail` and what goes wrong in a fixture
included.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

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


def core_ticks() -> tuple[int, int]:
    """Stolen and all ticks since the machine started. Source: /proc/stat in proc(5)."""
    ticks = [int(n) for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return ticks[7], sum(ticks)


@dataclass(frozen=True, slots=True)
class Span:
    """What one or more stretches of time lasted, and their core time."""

    length_s: float = 0.0
    stolen_ticks: int = 0
    all_ticks: int = 0

    @classmethod
    def until_now(cls) -> "Span":
        """Since the machine started."""
        return cls(now_s(), *core_ticks())

    def __add__(self, other: "Span") -> "Span":
        stolen_ticks = self.stolen_ticks + other.stolen_ticks
        return Span(self.length_s + other.length_s, stolen_ticks, self.all_ticks + other.all_ticks)

    def __sub__(self, other: "Span") -> "Span":
        return self + Span(-other.length_s, -other.stolen_ticks, -other.all_ticks)

    @property
    def stolen_ratio(self) -> float:
        return self.stolen_ticks / self.all_ticks if self.all_ticks else 0.0


class StealWatch(threading.Thread):
    """Reads each second how much of the cores was stolen in it."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._seconds: deque[tuple[float, float]] = deque(maxlen=3600)

    def run(self) -> None:
        before = Span.until_now()
        while True:
            time.sleep(1)
            after = Span.until_now()
            self._seconds.append((after.length_s, (after - before).stolen_ratio))
            before = after

    def most_since(self, begin_s: float) -> float:
        """The worst second's ratio since then (monotonic clock)."""
        return max((ratio for at_s, ratio in list(self._seconds) if at_s > begin_s), default=0.0)


def wait_until_quiet(patience_s: float) -> bool:
    """Keep every core busy until all of it is ours: an idle core loses nothing. Became it so?"""
    end_s = now_s() + patience_s
    while now_s() < end_s:
        before = Span.until_now()
        spinning = [
            os.posix_spawnp("sh", ["sh", "-c", _SPIN], os.environ) for _ in os.sched_getaffinity(0)
        ]
        for pid in spinning:
            os.waitpid(pid, 0)
        if (Span.until_now() - before).stolen_ratio < QUIET_RATIO:
            return True
        time.sleep(2)
    return False


_SPIN = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"


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
        return only_asserted and self.span.stolen_ratio >= EXCUSED_RATIO


class Repeating:
    """The plugin: runs a marked test again that failed while cores were stolen."""

    def __init__(self, budget_s: float = BUDGET_S) -> None:
        self._watch = StealWatch()
        self._watch.start()
        self._budget = Budget(budget_s)
        self._begin_module(None)
        self._item: pytest.Item | None = None
        self._attempts: list[Attempt] = []
        self._begin = Span()
        self._failures: list[tuple[str, type[BaseException]]] = []
        self._said = ""
        self._worst_ratio = 0.0
        """Stolen of a second of an attempt that failed."""
        self.disturbed: list[str] = []
        self.not_judged: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Runs the test, all of it again where it is to be repeated, its timer included."""
        if item.path != self._module:
            self._begin_module(item.path)
        if item is not self._item:
            self._item, self._attempts, self._worst_ratio = item, [], 0.0
            item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = self._attempt(item, nextitem)
        has_failed = any(report.failed for report in reports)
        end = self._end_of_failing(item) if has_failed else "passed then"
        if end is None:
            self._prepare_repeat(item)
            item.ihook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            return True
        if self._worst_ratio >= DISTURBED_RATIO:
            count = len(self._attempts) - (not has_failed)
            self.disturbed.append(
                f"{item.nodeid}: {self._worst_ratio:.0%} of a second's core time was stolen; "
                f"failed {'once' if count == 1 else f'{count} times'}, {end}"
            )
        if has_failed and is_marked(item) and all(each.is_excusable for each in self._attempts):
            self._excuse(item, next(report for report in reports if report.failed))
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _begin_module(self, path: Path | None) -> None:
        self._module, self._begin_s, self._set_ups = path, now_s(), Span()

    def _attempt(self, item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
        self._begin, self._failures, earlier = Span.until_now(), [], self._set_ups
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        span = Span.until_now() - self._begin
        if self._attempts:
            self._budget.left_s -= span.length_s
        self._attempts.append(Attempt(earlier + span, tuple(self._failures)))
        return reports

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Notes what the report does not say: the exception's type, a set-up's core time."""
        if call.excinfo is not None:
            self._failures.append((call.when, call.excinfo.type))
            self._said = call.excinfo.exconly().splitlines()[0]
        if call.when == "setup":
            self._set_ups += Span.until_now() - self._begin

    def _end_of_failing(self, item: pytest.Item) -> str | None:
        """Why is a test that has just failed not run again? None: it is."""
        span, count = self._attempts[-1].span, len(self._attempts)
        stolen_ratio = max(self._watch.most_since(self._begin_s), span.stolen_ratio)
        self._worst_ratio = max(self._worst_ratio, stolen_ratio)
        if stolen_ratio < DISTURBED_RATIO:
            return "the last time undisturbed"
        if not is_marked(item):
            return "and is not repeated: it does not need the cores"
        if count == MOST_ATTEMPTS:
            return "in every attempt"
        return None if self._budget.has_room(span.length_s) else "no time is left to repeat it"

    def _prepare_repeat(self, item: pytest.Item) -> None:
        """A module's fixtures go as well: they may hold what was measured."""
        item.config.pluginmanager.hook.pytest_timeout_cancel_timer(item=item)
        item.session._setupstate.teardown_exact(None)
        self._budget.wait()
        self._begin_module(item.path)

    def _excuse(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Makes a failure a skip."""
        *others, last = (f"{each.span.stolen_ratio:.0%}" for each in self._attempts)
        shares = f"{', '.join(others)} and {last}" if others else last
        count = len(self._attempts)
        attempts = "1 attempt" if count == 1 else f"{count} attempts"
        reason = f"not judged: the hypervisor took {shares} of the cores in {attempts}"
        reason = reason.replace("%", " %")
        self.not_judged.append(f"{item.nodeid}: {reason}; {self._said}")
        report.outcome = "skipped"
        report.longrepr = (str(item.path), (item.location[1] or 0) + 1, reason)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for title, lines in (("disturbed", self.disturbed), ("not judged", self.not_judged)):
            if lines:
                terminalreporter.section(f"{title}: the hypervisor took cores away")
                for line in lines:
                    terminalreporter.write_line(line)


def is_marked(item: pytest.Item) -> bool:
    """Does it judge times or rates, which need the machine's cores?"""
    return item.get_closest_marker("measured") is not None
