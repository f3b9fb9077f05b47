"""Were cores taken away while a test ran? Then a failure says nothing, and it is run again.

On a virtual machine the hypervisor gives its cores to others for a while: packets wait, time-outs
end. The kernel counts that as steal. It is judged by that count alone, not by what the test found;
a repeated test is named in the summary, and one that fails four times has failed.
"""

import os
import threading
import time
from collections import deque
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

MOST_ATTEMPTS = 4
DISTURBED_RATIO = 0.05
"""Of all core time of a second. Quiet machines of the kind that was looked at stay below 0.02."""
QUIET_RATIO = 0.02
PATIENCE_S = 120


def core_ticks() -> tuple[int, int]:
    """Stolen and all ticks since the machine started. Source: /proc/stat in proc(5)."""
    ticks = [int(n) for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return ticks[7], sum(ticks)


class StealWatch(threading.Thread):
    """Reads each second how much of the cores was stolen in it."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._seconds: deque[tuple[float, float]] = deque(maxlen=3600)

    def run(self) -> None:
        before = core_ticks()
        while True:
            time.sleep(1)
            after = core_ticks()
            all_ticks = after[1] - before[1]
            if all_ticks:
                ratio = (after[0] - before[0]) / all_ticks
                self._seconds.append((time.monotonic(), ratio))
            before = after

    def most_since(self, begin_s: float) -> float:
        """The worst second's ratio since then (monotonic clock)."""
        return max((ratio for at_s, ratio in list(self._seconds) if at_s > begin_s), default=0.0)


def wait_until_quiet() -> None:
    """Keep every core busy until all of it is ours: an idle core loses nothing."""
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        before = core_ticks()
        spinning = [
            os.posix_spawnp("sh", ["sh", "-c", _SPIN], os.environ) for _ in os.sched_getaffinity(0)
        ]
        for pid in spinning:
            os.waitpid(pid, 0)
        after = core_ticks()
        if (after[0] - before[0]) / max(1, after[1] - before[1]) < QUIET_RATIO:
            return
        time.sleep(2)


_SPIN = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"


class Repeating:
    """The plugin: runs a test again that failed while cores were stolen."""

    def __init__(self) -> None:
        self._watch = StealWatch()
        self._watch.start()
        self._module: Path | None = None
        self._begin_s = 0.0
        self.repeated: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Runs the test, all of it again where it is to be repeated, its timer included."""
        if item.path != self._module:
            self._module, self._begin_s = item.path, time.monotonic()
        attempt = 1 + sum(line.startswith(f"{item.nodeid}: ") for line in self.repeated)
        if attempt == 1:
            item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        stolen = self._watch.most_since(self._begin_s)
        has_failed = any(report.failed for report in reports)
        if has_failed and stolen >= DISTURBED_RATIO and attempt < MOST_ATTEMPTS:
            self.repeated.append(f"{item.nodeid}: {stolen:.0%} of a second's core time was stolen")
            self._wait(item)
            item.ihook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            return True
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _wait(self, item: pytest.Item) -> None:
        """A module's fixtures go as well: they may hold what was measured."""
        item.config.pluginmanager.hook.pytest_timeout_cancel_timer(item=item)
        item.session._setupstate.teardown_exact(None)
        wait_until_quiet()
        self._begin_s = time.monotonic()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.repeated:
            terminalreporter.section("repeated: the hypervisor took cores away")
            for line in self.repeated:
                terminalreporter.write_line(line)
