"""What does a change have to pass, and what did each part of it cost? Run by .ci/run.

Only facts are asked for: what judges times and rates is left to `make measure`, and many cases of a
kind to `make test-thorough`. Parts that bear others run beside each other; their output is shown
one after the other. A part that fails does not end the others, which may say more; any failure
fails the whole. After `WATCHDOG_S` what still runs is shown and ended.

Core time is what a part's processes used. Where the hypervisor gave cores to others meanwhile, that
is stolen time: it makes a part longer, and is no cost of ours. Nothing but the standard library is
used: this runs before anything is installed.
"""

import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from watchdog import Watchdog

DEBIAN_PACKAGES = {
    "chromium": "chromium",
    "jq": "jq",
    "pdftoppm": "poppler-utils",
    "unshare": "util-linux",
    "mkfs.btrfs": "btrfs-progs",
    "ip": "iproute2",
    "cc": "gcc libc6-dev",
    "ssh": "openssh-client",
    "sshd": "openssh-server libfaketime",
}
"""By the program that shows whether it is there."""
RETRY = Path(__file__).with_name("retry")
WATCHDOG_S = 75 * 60.0
"""Whoever waits for the verdict gives up at 90 minutes, and would not learn what hangs."""
GRACE_S = 20.0
"""For Python processes to write where they are, and for what they wrote to be shown."""
CLOSING_LINE = re.compile(r"^=+ (?P<counts>(?:\d+ [a-z]+(?:, )?)+) in (?P<wall_s>[\d.]+)s\b.*=+$")
NOTHING_RAN = "no tests ran"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One command of CI."""

    name: str
    command: Sequence[str]
    after: Sequence[str] = ()
    """Parts that must have ended before this one begins."""
    needs: Sequence[str] = ()
    """Parts that must have ended well."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    """How a part went."""

    is_ok: bool = False
    was_run: bool = False
    wall_s: float = 0.0
    core_s: float = 0.0
    """User and system time of its processes, those that they waited for included."""
    stolen_s: float = 0.0
    closing_lines: list[str] = field(default_factory=list)
    """pytest's, one a session."""
    lines: "queue.SimpleQueue[str | None]" = field(default_factory=queue.SimpleQueue)
    """Its output; None ends it."""
    has_ended: threading.Event = field(default_factory=threading.Event)


def missing_packages() -> list[str]:
    """Debian packages of programs that are not there."""
    lacking = [names for program, names in DEBIAN_PACKAGES.items() if not shutil.which(program)]
    return [name for names in lacking for name in names.split()]


def what_python310_needs() -> list[str]:
    """scripts/python310 fetches CPython 3.10 with Maven where it is not there."""
    search = ["scripts/python310", "--there"]
    is_there = subprocess.run(search, capture_output=True, check=False).returncode == 0
    return [] if is_there or shutil.which("mvn") else ["maven"]


def install_command(packages: Sequence[str]) -> list[str]:
    """Installs them as root; nothing where nothing lacks."""
    if not packages:
        return ["true"]
    names = " ".join(packages)
    install = f"apt-get install -y -qq --no-install-recommends {names}"
    script = f"apt-get update -qq && DEBIAN_FRONTEND=noninteractive {install} >/dev/null"
    as_root = ["sudo"] if os.geteuid() else []
    return [*as_root, str(RETRY), f"Debian: {names}", "sh", "-c", script]


def parts() -> list[Part]:
    """In the order in which their output is shown."""
    before, ready = ("packages", "control plane"), ("environment",)
    return [
        Part(
            name="packages", command=install_command([*missing_packages(), *what_python310_needs()])
        ),
        Part(name="environment", command=("make", "install")),
        Part(name="control plane", command=("make", "control-plane")),
        Part(name="lint", command=("make", "lint"), needs=ready),
        Part(name="tests", command=("make", "ci-tests"), after=before, needs=ready),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreTime:
    """Of all cores since the machine started, in seconds."""

    busy_s: float = 0.0
    """By any program of this machine."""
    stolen_s: float = 0.0
    """By the hypervisor."""
    all_s: float = 0.0
    """Idle time included."""

    @classmethod
    def now(cls) -> "CoreTime":
        """Source: /proc/stat in proc(5). Nothing where there is none."""
        stat = Path("/proc/stat")
        if not stat.is_file():
            return cls()
        words = stat.read_text().split("\n", 1)[0].split()[1:9]
        second = os.sysconf("SC_CLK_TCK")
        user, nice, system, idle, iowait, irq, softirq, steal = (int(w) / second for w in words)
        busy_s = user + nice + system + irq + softirq
        return cls(busy_s=busy_s, stolen_s=steal, all_s=busy_s + idle + iowait + steal)

    def __sub__(self, other: "CoreTime") -> "CoreTime":
        return CoreTime(
            busy_s=self.busy_s - other.busy_s,
            stolen_s=self.stolen_s - other.stolen_s,
            all_s=self.all_s - other.all_s,
        )


def stolen_s() -> float:
    """Of all cores since the machine started."""
    return CoreTime.now().stolen_s


def share_of_others(meanwhile: CoreTime, ours_s: float) -> str:
    """How much of the cores others had, of the time in which all this ran."""
    if not meanwhile.all_s:
        return "unknown"
    others_s = max(0.0, meanwhile.busy_s - ours_s)
    return (
        f"{others_s / meanwhile.all_s:.0%} other programs, "
        f"{meanwhile.stolen_s / meanwhile.all_s:.0%} the hypervisor"
    ).replace("%", " %")


def run_part(part: Part, outcomes: dict[str, Outcome], watchdog: Watchdog) -> None:
    """Waits for what it comes after, runs it, and says how it went."""
    outcome = outcomes[part.name]
    for name in (*part.after, *part.needs):
        outcomes[name].has_ended.wait()
    if all(outcomes[name].is_ok for name in part.needs) and not watchdog.has_barked:
        _run_command(part, outcome, watchdog.environment)
    outcome.has_ended.set()
    outcome.lines.put(None)


def _run_command(part: Part, outcome: Outcome, environment: Mapping[str, str]) -> None:
    begin_s, begin_stolen_s = time.monotonic(), stolen_s()
    process = subprocess.Popen(
        part.command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    for line in process.stdout:
        outcome.lines.put(line)
        if CLOSING_LINE.match(line.rstrip()) or NOTHING_RAN in line:
            outcome.closing_lines.append(line.strip())
    _, status, use = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    outcome.was_run, outcome.is_ok = True, process.returncode == 0
    outcome.wall_s = time.monotonic() - begin_s
    outcome.core_s = use.ru_utime + use.ru_stime
    outcome.stolen_s = stolen_s() - begin_stolen_s


def run_parts(wanted: Sequence[Part]) -> dict[str, Outcome]:
    """Shows the output of each as it comes, in their order."""
    outcomes = {part.name: Outcome() for part in wanted}
    watchdog = Watchdog(
        lambda: [name for name, outcome in outcomes.items() if not outcome.has_ended.is_set()],
        say,
        limit_s=WATCHDOG_S,
        grace_s=GRACE_S,
    )
    for part in wanted:
        threading.Thread(target=run_part, args=(part, outcomes, watchdog), daemon=True).start()
    watchdog.start()
    for part in wanted:
        say(f"ci: {part.name}: {' '.join(part.command)}")
        for line in iter(outcomes[part.name].lines.get, None):
            say(line.rstrip("\n"))
    return outcomes


def say(line: str) -> None:
    print(line, flush=True)


def table(outcomes: dict[str, Outcome]) -> Iterator[str]:
    """What each part took, and how it went."""
    yield f"ci: {'part':<14}{'wall':>9}{'core time':>11}{'stolen':>9}"
    for name, outcome in outcomes.items():
        ended = "ok" if outcome.is_ok else "FAILED" if outcome.was_run else "NOT RUN"
        yield (
            f"ci: {name:<14}{outcome.wall_s:>7.0f} s{outcome.core_s:>9.0f} s"
            f"{outcome.stolen_s:>7.0f} s  {ended}"
        )


def sum_of_closing_lines(lines: Sequence[str]) -> str:
    """As pytest would close one session with all of their tests."""
    counts: Counter[str] = Counter()
    wall_s = 0.0
    for found in filter(None, map(CLOSING_LINE.match, lines)):
        wall_s += float(found["wall_s"])
        for count in found["counts"].split(", "):
            number, word = count.split()
            counts["error" if word == "errors" else word] += int(number)
    del counts["deselected"]
    order = ("failed", "passed", "skipped", "xfailed", "xpassed", "warning", "warnings", "error")
    said = [f"{counts[word]} {word}" for word in order if counts[word]]
    long = f" ({timedelta(seconds=int(wall_s))})" if wall_s >= 60 else ""
    return f"===== {', '.join(said) or NOTHING_RAN} in {wall_s:.2f}s{long} ====="


def main() -> int:
    """The exit code."""
    begin_s, begin = time.monotonic(), CoreTime.now()
    outcomes = run_parts(parts())
    for line in table(outcomes):
        say(line)
    core_s = sum(outcome.core_s for outcome in outcomes.values())
    meanwhile = CoreTime.now() - begin
    say(
        f"ci: in all {(time.monotonic() - begin_s) / 60:.1f} minutes, "
        f"{core_s / 60:.1f} core-minutes used"
    )
    say(f"ci: meanwhile others had of the cores: {share_of_others(meanwhile, core_s)}")
    failed = [name for name, outcome in outcomes.items() if not outcome.is_ok]
    if failed:
        say(f"ci: FAILED: {', '.join(failed)}")
    say("ci: all sessions of pytest together:")
    say(sum_of_closing_lines([line for each in outcomes.values() for line in each.closing_lines]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
