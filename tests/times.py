"""How much time did each test take? Kept in pytest's cache, for `make bench`.

Core time is that of the test's own process, of its children, and of every process that they waited
for, so other work on the machine does not count. The first test that uses a shared fixture pays for
it.
"""

import contextlib
import os
import resource
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

CACHE_KEY = "broadgauge/times"
KINDS = ("thorough", "slow")
NUM_SLOWEST = 10
KEPT_S = 30 * 24 * 3600
"""Tests come and go: what was not run for a month is forgotten."""
_PROPERTY = "core_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class TestTime:
    """Of one test with its fixtures, when it last ran."""

    __test__ = False

    wall_s: float
    core_s: float
    ended_unix_s: float


def core_s_used() -> float:
    """User and system, by this process, its living children and all that they waited for."""
    uses = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    ended_s = sum(use.ru_utime + use.ru_stime for use in uses)
    return ended_s + sum(map(_core_s_of, _children()))


def _children() -> Iterator[int]:
    """Source: /proc/PID/task/TID/children in proc(5). None where the kernel does not list them."""
    threads = "/proc/self/task"  # looked at for each test: no glob, which takes longer than most
    if not os.path.isdir(threads):  # noqa: PTH112
        return
    for thread in os.listdir(threads):  # noqa: PTH208
        # A thread may just have ended.
        with contextlib.suppress(OSError), open(f"{threads}/{thread}/children") as listed:  # noqa: PTH123
            yield from map(int, listed.read().split())


def _core_s_of(pid: int) -> float:
    """utime, stime, cutime and cstime of /proc/PID/stat."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def ledger(times: Mapping[str, TestTime]) -> Iterator[str]:
    """Minutes by room, most core time first, and the tests that took most of it."""
    rooms: dict[str, list[TestTime]] = {}
    for name, each in times.items():
        rooms.setdefault(room_of(name), []).append(each)
    yield f"{'room':<14}{'tests':>6}{'wall':>11}{'core time':>12}"
    for room in sorted(rooms, key=lambda room: -_core_s(rooms[room])):
        wall_s = sum(each.wall_s for each in rooms[room])
        yield (
            f"{room:<14}{len(rooms[room]):>6}{wall_s / 60:>7.1f} min"
            f"{_core_s(rooms[room]) / 60:>8.1f} min"
        )
    yield f"the {NUM_SLOWEST} that took most core time:"
    for name in sorted(times, key=lambda name: -times[name].core_s)[:NUM_SLOWEST]:
        yield f"{times[name].core_s:>7.1f} s core, {times[name].wall_s:>6.1f} s wall  {name}"


def room_of(name: str) -> str:
    """Of a test's name: the folder that its module lies in, below tests/."""
    *folders, _ = name.partition("::")[0].removeprefix("tests/").split("/")
    return folders[0] if folders else "tests"


def _core_s(times: Iterable[TestTime]) -> float:
    return sum(each.core_s for each in times)


class Timing:
    """The plugin. Reports carry the core time from a worker of pytest-xdist to its controller."""

    def __init__(self) -> None:
        self._begin_core_s = 0.0
        self._wall_s: dict[str, float] = {}
        self._times: dict[str, TestTime] = {}
        self._names_by_kind: dict[str, list[str]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Where the test runs: the controller of workers has nothing to count."""
        self._begin_core_s = core_s_used()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            report.user_properties.append((_PROPERTY, core_s_used() - self._begin_core_s))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        wall_s = self._wall_s.pop(report.nodeid, 0.0) + report.duration
        if report.when != "teardown":
            self._wall_s[report.nodeid] = wall_s
            return
        core_s = sum(value for name, value in report.user_properties if name == _PROPERTY)
        self._times[report.nodeid] = TestTime(
            wall_s=wall_s, core_s=core_s, ended_unix_s=time.time()
        )

        kind = next((kind for kind in KINDS if kind in report.keywords), "fast")
        self._names_by_kind.setdefault(kind, []).append(report.nodeid)

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        """One line a kind of test, and with `--ledger` where the time went."""
        for kind, names in self._names_by_kind.items():
            times = [self._times[name] for name in names]
            terminalreporter.write_line(
                f"{len(names)} {kind} tests: {sum(each.wall_s for each in times):.0f} s, "
                f"core time {sum(each.core_s for each in times):.0f} s"
            )
        if config.getoption("ledger"):
            terminalreporter.section("where the time went")
            for line in ledger(self._times):
                terminalreporter.write_line(line)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        # Without its plugin (`-p no:cacheprovider`) the configuration has no such attribute.
        cache = getattr(session.config, "cache", None)
        if cache is None or hasattr(session.config, "workerinput"):
            return
        oldest_s = time.time() - KEPT_S
        known = {
            name: times
            for name, times in cache.get(CACHE_KEY, {}).items()
            if times["ended_unix_s"] > oldest_s
        }
        known |= {name: asdict(times) for name, times in self._times.items()}
        cache.set(CACHE_KEY, known)
