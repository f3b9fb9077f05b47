"""Does one screen hold the answer, failures once, the worst findings, and how to see the rest?"""

import io
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console

from broadgauge.analysis.analyse import analysed
from broadgauge.analysis.model import AnalysedRun, FindingGroup
from broadgauge.report.terminal.printing import print_run_briefly
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.records.record import ErrorKind, Record, Severity, Status, TrialError

SCREEN = 45
DETAILS = "broadgauge show last --details"


def short(shown: RunSummary | AnalysedRun, width: int = 120) -> str:
    stream = io.StringIO()
    run = shown if isinstance(shown, AnalysedRun) else analysed(shown)
    print_run_briefly(run, Console(file=stream, width=width), DETAILS)
    return stream.getvalue()


def failing(run: RunSummary, fails: Callable[[Record], bool]) -> RunSummary:
    error = TrialError(
        kind=ErrorKind.CRASHED, message="no data; its last lines:\n| a\n| b", last_lines=("a", "b")
    )
    bad = {"status": Status.FAILED, "metrics": {}, "collectives": (), "error": error}
    records = [r.model_copy(update=bad) if fails(r) else r for r in run.records]
    return summarise_run(
        folder=run.folder,
        plan=run.plan,
        records=records,
        experiment_yaml=run.experiment_yaml,
        environments=run.environments,
    )


def finding(severity: Severity, rule: str, trials: int = 1, fix: str | None = "do") -> FindingGroup:
    return FindingGroup(
        rule=rule,
        severity=severity,
        symptom=f"seen by {rule}",
        evidence=("a line of a log",),
        cause="why it is so",
        fix=fix,
        cases=("train 2x1 slow",),
        num_trials=trials,
    )


def with_findings(run: RunSummary, *groups: FindingGroup, shared: str | None = None) -> AnalysedRun:
    made = analysed(run)
    analysis = made.analysis.model_copy(update={"findings": groups, "shared_cores": shared})
    return replace(made, analysis=analysis)


def test_a_run_of_three_networks_is_one_screen(run: RunSummary) -> None:
    made = analysed(run)
    asked_nothing = made.analysis.model_copy(update={"hypotheses": ()})
    assert len(short(replace(made, analysis=asked_nothing)).splitlines()) <= SCREEN
    lines = short(made).splitlines()
    assert lines[0].startswith("Network-bound on pod-like and vnic-like; ")
    assert lines[-1].endswith(f": {DETAILS}")
    text = " ".join(" ".join(lines).split())
    for words in (
        "77 % of each step waits for the network; the link runs at 97 % of its 200 Mbit/s",
        "supported The pod network is the bottleneck",
        "1 trial of train 2x1 vnic-like: rank 1 ended with exit code 1",
    ):
        assert text.count(words) == 1, words
    for words in ("RuntimeError", "Environment", "Evidence", "all_reduce float32", "95 % interval"):
        assert words not in text


@pytest.mark.parametrize("num", [3, 4, 9])
def test_caveats_that_are_not_shown_are_told_with_the_command_that_shows_them(
    run: RunSummary, num: int
) -> None:
    made = analysed(run)
    caveats = tuple(f"number {i}" for i in range(num))
    judged = made.analysis.hypotheses[0].model_copy(update={"caveats": caveats})
    analysis = made.analysis.model_copy(update={"hypotheses": (judged,)})
    lines = [line.strip() for line in short(replace(made, analysis=analysis)).splitlines()]
    told = [line for line in lines if line.startswith("caveat: ")]
    assert told[:3] == [f"caveat: number {i}" for i in range(3)]
    assert told[3:] == ([f"caveat: and {num - 3} more: `{DETAILS}`"] if num > 3 else [])


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_no_line_is_too_long(run: RunSummary, width: int) -> None:
    assert max(map(len, short(run, width).splitlines())) <= width


def test_a_reason_is_told_once_for_all_trials(run: RunSummary) -> None:
    last = {r.case_key: r.record_id for r in run.records if r.status is Status.OK}
    text = short(failing(run, lambda record: record.record_id in last.values()))
    assert text.count("no data") == 1
    assert "Failed trials (8)" in text
    assert "  7 trials of 7 cases: no data; its last line: | b (crashed)" in text


def test_where_a_verdict_tells_why_a_case_failed_it_is_not_told_again(run: RunSummary) -> None:
    text = short(failing(run, lambda r: r.network == "vnic-like" and r.workload == "train"))
    assert "Failed trials" not in text
    assert "all 5 trials failed alike: no data" in " ".join(text.split())
    every = short(failing(run, lambda _: True))
    assert every.startswith("Every trial failed: no data")
    assert "Failed trials" not in every.replace("Failed trials (15)", "")


def test_the_worst_findings_come_first_with_what_helps(run: RunSummary) -> None:
    shown = with_findings(
        run,
        finding(Severity.INFO, "told-apart"),
        finding(Severity.WARNING, "one"),
        finding(Severity.WARNING, "two", trials=5, fix=None),
        finding(Severity.ERROR, "worst"),
    )
    lines = [line.strip() for line in short(shown).split("Findings\n")[1].splitlines()]
    assert lines == [
        "error  seen by worst",
        "fix         do",
        "warning  seen by two",
        "cause       why it is so",
        "warning  seen by one",
        "fix         do",
        "",
        f"More (1 more finding, every figure, evidence, the environment): {DETAILS}",
    ]


def test_many_findings_are_not_all_told(run: RunSummary) -> None:
    text = short(with_findings(run, *(finding(Severity.ERROR, f"r{n}") for n in range(9))))
    assert text.count("seen by") == 4
    assert "(5 more findings, " in text


def test_what_the_warning_of_shared_cores_says_is_not_said_again(run: RunSummary) -> None:
    load = finding(Severity.WARNING, "foreign-load")
    text = short(with_findings(run, load, shared="other programs used 50 % of the cores"))
    assert "seen by foreign-load" not in text
    assert "warning: other programs used 50 % of the cores" in text
    assert "seen by foreign-load" in short(with_findings(run, load))
