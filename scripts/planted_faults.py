"""Does a named test turn red for each of ten planted faults?

    python scripts/planted_faults.py [--only NAME]…

tests/planted/faults.toml names the faults, and of each a patch and the test that has to notice it.
All of it is taken from a scratch clone of this checkout's HEAD, which runs with this interpreter's
packages. There each test has to pass, and then, with the fault's patch applied, to fail: a test
that breaks, is skipped or does not run has noticed nothing. Tests are run with the options that the
Makefile gives .ci/run (`facts`) and `make measure` (`measured`).

Exit code 1: a fault was not noticed, or its test does not pass without it, or could not judge on a
machine as busy as this one. However this ends, the clone and all that was started are gone then.
"""

import argparse
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from pydantic import BaseModel, ConfigDict
from scratch_clone import CHECKOUT, Ended, ScratchClone, scratch_clone

PLANTED = Path("tests/planted")
TABLE = PLANTED / "faults.toml"
LINT_IMPORTS = "lint-imports"
"""Stands for a test: it is no test of pytest's, and .ci/run runs it with `make lint`."""
NOT_JUDGED = "not judged: "
"""Begins the reason where a measured test could not say. Source: tests/conftest.py."""
SHOWN_LINES = 25


class Fault(BaseModel):
    """One mistake, and what has to notice it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    fault: str
    """In words."""
    patch: str
    test: str
    """A node id of pytest's: a function, of which one case has to fail, or one of its cases."""
    set: Literal["facts", "measured"]

    @property
    def patch_path(self) -> Path:
        """From the root of a checkout."""
        return PLANTED / self.patch


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run of a fault's test came to: its cases, counted."""

    ended: Ended
    num_passed: int = 0
    num_failed: int = 0
    """By an assertion or an exception of their own; what breaks before or after is none of them."""
    num_others: int = 0
    """Broken, skipped."""
    why: str = ""
    """The first line of the first failure, or of why a test was skipped."""

    @property
    def is_green(self) -> bool:
        """Did all of them run, and pass?"""
        return self.ended.exit_code == 0 and self.num_passed > 0 and self.num_others == 0

    @property
    def is_red(self) -> bool:
        """Did one of them fail, rather than break or not run?

        Source: pytest's exit codes: 1 tests failed, 2 interrupted (by what can't be collected),
        4 no such test, 5 none of them was run.
        """
        return self.ended.exit_code == 1 and self.num_failed > 0

    @property
    def is_judged(self) -> bool:
        """Was the machine the test's own, where it judges?"""
        return self.num_failed > 0 or not self.why.startswith(NOT_JUDGED)

    def __str__(self) -> str:
        counts = {"passed": self.num_passed, "failed": self.num_failed, "others": self.num_others}
        told = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        return f"{told or 'none ran'} ({self.ended.seconds:.0f} s)"


def read_faults(checkout: Path) -> tuple[Fault, ...]:
    """As its table lists them."""
    table = tomllib.loads((checkout / TABLE).read_text())
    return tuple(Fault.model_validate(entry) for entry in table["faults"])


def pytest_options(checkout: Path) -> dict[str, list[str]]:
    """Which tests belong to a set, as the Makefile has it, and how they are run?"""
    makefile = (checkout / "Makefile").read_text()
    facts = re.search(r"^FACTS := (.+)$", makefile, re.MULTILINE)
    measured = re.search(
        r"^measure:.*\n\t@\$\(BIN\)/python -m pytest (.+)$", makefile, re.MULTILINE
    )
    assert facts is not None, "no FACTS in the Makefile"
    assert measured is not None, "no pytest below `measure:` in the Makefile"
    return {"facts": ["-m", facts[1]], "measured": shlex.split(measured[1])}


def run_test(clone: ScratchClone, fault: Fault) -> Outcome:
    """Runs what has to notice the fault, whether it is there or not."""
    if fault.test == LINT_IMPORTS:
        return outcome_of_lint(clone.run(LINT_IMPORTS, "--no-cache"))
    report = clone.path.with_name("report.xml")
    report.unlink(missing_ok=True)
    options = ["-q", f"--junit-xml={report}", *pytest_options(clone.path)[fault.set]]
    return outcome_of(report, clone.run("python", "-m", "pytest", *options, fault.test))


def outcome_of_lint(ended: Ended) -> Outcome:
    """What says import-linter? Contracts are its tests."""
    counts = re.search(r"Contracts: (\d+) kept, (\d+) broken\.", ended.output)
    if counts is None:
        return Outcome(ended=ended, num_others=1)
    arrows = re.findall(r"\S+ -> \S+ \(l\.\d+\)", ended.output)
    kept, broken = map(int, counts.groups())
    why = arrows[0] if arrows else ""
    return Outcome(ended=ended, num_passed=kept, num_failed=broken, why=why)


def outcome_of(report: Path, ended: Ended) -> Outcome:
    """What says pytest's report, in JUnit's XML? There is none where it could not begin."""
    cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    found = {tag: [each for case in cases for each in case.findall(tag)] for tag in _NOT_PASSED}
    told = [each.get("message", "").strip() for tag in _NOT_PASSED for each in found[tag]]
    return Outcome(
        ended=ended,
        num_passed=sum(all(case.find(tag) is None for tag in _NOT_PASSED) for case in cases),
        num_failed=len(found["failure"]),
        num_others=len(found["error"]) + len(found["skipped"]),
        why=told[0].partition("\n")[0] if told else "",
    )


_NOT_PASSED = ("failure", "error", "skipped")
"""What stands in a test that has not passed; what says most comes first."""


def say(line: str) -> None:
    print(line, flush=True)


def say_what_is_not_planted() -> None:
    changes = subprocess.run(
        ["git", "status", "--porcelain"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    if changes.stdout:
        say("planted: HEAD is what is tried; changes that are not committed are left out")


def show(fault: Fault, state: str, outcome: Outcome, *, is_as_wanted: bool) -> None:
    say(f"planted: {fault.name}, {state}: {outcome}{'' if is_as_wanted else '  NOT AS WANTED'}")
    if not is_as_wanted:
        for line in outcome.ended.output.splitlines()[-SHOWN_LINES:]:
            say(f"planted:   {line}")


def verdict(unpatched: Outcome, patched: Outcome | None) -> str:
    """Patched: None where it was not tried, as without the fault it is not green."""
    if patched is not None and patched.is_red:
        return "noticed"
    return "NOT NOTICED" if (patched or unpatched).is_judged else "NOT JUDGED"


def table(rows: Sequence[tuple[Fault, Outcome, Outcome | None]]) -> Iterator[str]:
    """Of each fault: was it noticed, by which test, and how?"""
    for fault, unpatched, patched in rows:
        yield f"{verdict(unpatched, patched):<12} {fault.name}: {fault.fault}"
        yield f"             {fault.set}: {fault.test}"
        yield f"             unpatched: {unpatched}; patched: {patched or 'not tried'}"
        if why := (patched or unpatched).why:
            yield f"             {why[:160]}"


def plant(clone: ScratchClone, faults: Sequence[Fault]) -> bool:
    """Was each fault noticed? All without their faults first."""
    unpatched = {}
    for fault in faults:
        outcome = unpatched[fault] = run_test(clone, fault)
        show(fault, "unpatched", outcome, is_as_wanted=outcome.is_green)
    rows: list[tuple[Fault, Outcome, Outcome | None]] = []
    for fault in faults:
        patched = None
        if unpatched[fault].is_green:
            with clone.with_patch(fault.patch_path):
                patched = run_test(clone, fault)
            show(fault, "patched", patched, is_as_wanted=patched.is_red)
        rows.append((fault, unpatched[fault], patched))
    for line in ("", *table(rows)):
        say(line)
    verdicts = [verdict(unpatched, patched) for _, unpatched, patched in rows]
    say(f"planted: {verdicts.count('noticed')} of {len(rows)} faults were noticed")
    if "NOT JUDGED" in verdicts:
        say("planted: what was not judged needs a quiet machine: again with --only NAME")
    return verdicts == ["noticed"] * len(rows)


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [fault.name for fault in read_faults(CHECKOUT)]
    parser.add_argument("--only", metavar="NAME", action="append", choices=names, help=str(names))
    wanted = parser.parse_args().only
    say_what_is_not_planted()
    with scratch_clone() as clone:
        faults = [each for each in read_faults(clone.path) if not wanted or each.name in wanted]
        return 0 if plant(clone, faults) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
