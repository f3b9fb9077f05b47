"""Is said once, and at the ends that are read, what was conspicuous in many trials?"""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from broadgauge.advise.findings.shared_cores import foreign_load
from broadgauge.analysis.analyse import analysed
from broadgauge.analysis.finding_groups import finding_groups
from broadgauge.analysis.model import AnalysedRun
from broadgauge.report.page import details
from broadgauge.report.page.html import render
from broadgauge.report.terminal.printing import print_closing_table, print_run
from broadgauge.results.model import RunSummary
from broadgauge.specs.records.record import Finding, Record, Severity, Status

LINE = (
    "other programs used 73 to 100 % of the cores in 34 of 34 trials: run again on a quiet machine"
)


def _loaded(record: Record, ratios: tuple[float, ...]) -> Record:
    """With other programs on each node's cores, as advise/trial_findings.py words them."""
    if record.status is not Status.OK:
        return record
    shares = ratios[: len(record.nodes)]
    nodes = [
        node.model_copy(update={"foreign_busy_ratio": ratio})
        for node, ratio in zip(record.nodes, shares, strict=True)
    ]
    findings = [
        Finding(
            rule="foreign-load",
            severity=Severity.WARNING,
            symptom=f"other programs used {100 * ratio:.3g} % of node {index}'s cores",
            evidence=(f"{ratio:.2f} CPU seconds",),
            fix="run again",
        )
        for index, ratio in enumerate(shares)
    ]
    return record.model_copy(update={"nodes": tuple(nodes), "findings": tuple(findings)})


@pytest.fixture(scope="module")
def disturbed(run: RunSummary) -> RunSummary:
    ratios = [(0.73, 0.9), *[(0.91, 0.95)] * (len(run.records) - 2), (0.92, 1.0)]
    made = {
        record.record_id: _loaded(record, pair)
        for record, pair in zip(run.records, ratios, strict=True)
    }
    cases = [
        replace(s, records=tuple(made[record.record_id] for record in s.records)) for s in run.cases
    ]
    note = "`own` is a command of yours: 60 s a launch is a guess"
    return replace(run, records=tuple(made.values()), cases=tuple(cases), notes=(*run.notes, note))


def printed(printer, analysed: AnalysedRun, width: int) -> str:
    stream = io.StringIO()
    printer(analysed, Console(file=stream, width=width))
    return stream.getvalue()


def test_the_screen_ends_with_what_others_used(disturbed: RunSummary, run: RunSummary) -> None:
    lines = printed(print_closing_table, analysed(disturbed), 160).splitlines()
    assert lines[-1] == f"warning: {LINE}"
    assert "other programs" not in printed(print_closing_table, analysed(run), 160)


def test_both_who_took_cores_are_named(disturbed: RunSummary) -> None:
    first = disturbed.records[0]
    stolen = Finding(rule="stolen-cores", severity=Severity.WARNING, symptom="the hypervisor took")
    nodes = tuple(node.model_copy(update={"stolen_ratio": 0.2}) for node in first.nodes)
    both = first.model_copy(update={"nodes": nodes, "findings": (*first.findings, stolen)})
    assert foreign_load(replace(disturbed, records=(both,))) == (
        "other programs used 73 % of the cores in 1 of 1 trials, "
        "the hypervisor took 20 % of the cores in 1 of 1 trials: run again on a quiet machine"
    )


def test_the_page_says_it_before_any_figure(disturbed: RunSummary, run: RunSummary) -> None:
    page = render(analysed(disturbed))
    assert page.index(LINE.removeprefix("other")) < page.index('class="headline"')
    assert 'class="disturbed"' not in render(analysed(run))
    assert "is a guess" not in page
    assert "2 cores for 2 nodes of 1 core" in page


def test_guesses_of_the_plan_end_with_the_run(disturbed: RunSummary) -> None:
    text = printed(print_closing_table, analysed(disturbed), 160)
    assert "is a guess" not in text
    assert "2 cores for 2 nodes of 1 core" in text


def test_findings_that_differ_in_numbers_are_one(disturbed: RunSummary) -> None:
    (group,) = finding_groups(disturbed)
    assert group.symptom == "other programs used 73 to 100 % of node 0 and 1's cores"
    assert group.num_trials == 34
    assert len(group.cases) == 7
    assert group.evidence == ()
    page = details.findings(analysed(disturbed).analysis)
    assert page.count("other programs used") == 1
    assert page.count("<tr>") == 3, "and that two nodes are slower than one"
    shown = printed(print_run, analysed(disturbed), 100)
    findings = shown.split("Findings")[1].split("Environment")[0]
    assert findings.count("other programs") == 1
    assert "where 34 trials: train 1x1 one node, " in " ".join(findings.split())


def test_findings_of_equal_words_keep_their_evidence(run: RunSummary) -> None:
    groups = finding_groups(run)
    assert groups
    for group in groups:
        assert (not group.evidence) is bool(re.search(r" to \d[\d.]* %", group.symptom))


@pytest.mark.parametrize("width", [60, 80, 99, 120])
def test_each_group_of_sizes_is_under_its_collective(run: RunSummary, width: int) -> None:
    lines = [line.strip() for line in printed(print_run, analysed(run), width).splitlines()]
    for op in ("all_reduce", "all_gather", "reduce_scatter"):
        assert lines.count(f"{op} float32") == 3
    at = lines.index("all_reduce float32")
    assert lines[at + 1].startswith(("size ", "1 KiB"))
