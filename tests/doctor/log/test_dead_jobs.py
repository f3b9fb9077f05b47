"""Does no log pass in which a process died, whoever said so, wherever in the log?

Every line that a rule takes for an error, tracebacks, and words that no rule knows are put into
healthy logs, at places drawn once.
"""

import random
from pathlib import Path
from typing import Any

import pytest
from tests.doctor.rules.test_lines import BY_FILE, LINES, RULES, match_of

from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.reading import read_text
from broadgauge.doctor.log.rule import text_of
from broadgauge.specs.records.record import Severity

HEALTHY = sorted((Path(__file__).parent / "healthy").glob("*.log"))
HEALTHY = [path for path in HEALTHY if not path.name.startswith("geforce")]
TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "/srv/train.py", line 88, in <module>',
    "    main(arguments)",
    '  File "/srv/train.py", line 41, in main',
    "    batch = next(batches)",
)
EXCEPTIONS = (
    "KeyError: 'input_ids'",
    "AssertionError",
    "torch.OutOfMemoryError: not that one",
    "jsonargparse.util.ArgumentError: unrecognized arguments: --lr",
    "StopIteration",
    "binascii.Incomplete: an odd number of digits",
    "site.pipeline.Halted",
    "RuntimeError: two\nlines of words",
)
PREFIXES = (
    "",
    "[rank3]: ",
    "[1,3]<stderr>:",
    "3: ",
    "2026-11-23T10:00:00.25Z ",
    "[pod/train-3/pytorch] ",
    "\x1b[36m(RayTrainWorker pid=77, ip=192.0.2.1)\x1b[0m ",
    "2026-11-23T10:00:00.25Z stderr F ",
)
LAST_WORDS = (
    "terminate called after throwing an instance of 'site::Error'",
    "train.py: FATAL: the plan has no step 12",
    "[2026-11-23 10:00:00,250] [ERROR] [site.py:12] the run is over",
    "E1123 10:00:00.250 4242 site.cc:12] the plan failed: nothing is left to do",
    "site-launcher: child 3 ended, exit code 17",
    "worker 3: exit status 1",
    "./run.sh: line 7:  4242 Segmentation fault      (core dumped) python train.py",
    "site-launcher: task 3 got SIGKILL",
)


def worst_of(lines: list[str]) -> set[Severity]:
    return {finding.severity for finding in log_findings(read_text("\n".join(lines) + "\n"))}


def put_into_healthy(lines: list[str], seed: str, *, is_last: bool = False) -> list[str]:
    """At a place that the seed draws; is_last: at the end."""
    draw = random.Random(seed)
    log = draw.choice(HEALTHY).read_text(encoding="utf-8").splitlines()
    at = len(log) if is_last else draw.randint(0, len(log))
    return [*log[:at], *lines, *log[at:]]


def errors_in(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that a rule takes for an error."""
    return [
        entry
        for entry in entries
        if (match := match_of(entry)) is not None
        and (text := text_of(match.rule, match.fields)) is not None
        and text.severity is Severity.ERROR
    ]


@pytest.mark.parametrize("name", BY_FILE)
def test_an_error_that_a_rule_knows(name: str) -> None:
    passed = []
    for entry in errors_in(BY_FILE[name]):
        line = entry["line"]
        if entry.get("as", "nccl") == "nccl":
            line = f"node7:4242:4250 [0] site.cc:12 NCCL WARN {line}"
        said = worst_of(put_into_healthy([line], f"{entry['rule']} {line}"))
        passed += [] if said & {Severity.ERROR, Severity.WARNING} else [entry]
    assert passed == []


def test_every_rule_of_errors_is_among_them() -> None:
    tried = {entry["rule"] for entry in errors_in(LINES)}
    of_errors = {
        rule.id
        for rule in RULES.values()
        if any(text.severity is Severity.ERROR for text in rule.findings)
    }
    assert of_errors
    assert of_errors - tried == set()


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("exception", EXCEPTIONS)
def test_a_traceback(exception: str, prefix: str) -> None:
    lines = [prefix + line for line in (*TRACEBACK, *exception.split("\n"))]
    assert Severity.ERROR in worst_of(put_into_healthy(lines, prefix + exception))


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("words", LAST_WORDS)
def test_last_words_that_no_rule_knows(words: str, prefix: str) -> None:
    lines = [prefix + words]
    assert Severity.ERROR in worst_of(put_into_healthy(lines, prefix + words, is_last=True))
    assert worst_of(put_into_healthy(lines, prefix + words)) & {Severity.ERROR, Severity.WARNING}


@pytest.mark.parametrize("begin", range(1, len(TRACEBACK)))
def test_a_traceback_whose_beginning_is_cut(begin: int) -> None:
    lines = [*TRACEBACK[begin:], "site.errors.PlanError: no step 12"]
    assert Severity.ERROR in worst_of(put_into_healthy(lines, str(begin)))


def test_the_first_in_time_is_ahead() -> None:
    lines = [
        "[rank1]:[E1123 10:00:09.1 site.cc:1] Traceback (most recent call last):",
        "[rank1]:[E1123 10:00:09.1 site.cc:1] ValueError: the second",
        "[rank0]:[E1123 10:00:01.1 site.cc:1] Traceback (most recent call last):",
        "[rank0]:[E1123 10:00:01.1 site.cc:1] KeyError: 'the first'",
    ]
    [finding] = log_findings(read_text("\n".join(lines)))
    assert finding.symptom == "rank 0 ended first: KeyError: 'the first'; 1 other after it"
    assert [line.partition(": ")[0] for line in finding.evidence[:2]] == ["-:4", "-:2"]
