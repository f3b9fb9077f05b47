"""Proves api/stored_run.py and how a run shows itself, on the golden run and on one made up."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.report.sample_run import sample_run

from broadgauge.analysis.analyse import analysed
from broadgauge.analysis.store import analysis_json
from broadgauge.api.open_run import open_run
from broadgauge.api.stored_run import Run
from broadgauge.specs.errors import InputError, RunFolderError
from broadgauge.specs.workloads.metrics import unit_of


def test_cases_carry_verdicts_and_figures(golden: Run) -> None:
    assert [case.key for case in golden.cases] == [c["key"] for c in golden.analysis["cases"]]
    for case, judged in zip(golden.cases, golden.analysis["cases"], strict=True):
        assert (case.verdict, case.sentence) == (
            judged["verdict"]["bound"],
            judged["verdict"]["sentence"],
        )
    assert golden.num_ok == sum(case.num_ok for case in golden.cases)
    assert golden.num_failed == 2
    assert golden.errors != ()
    failed = [case for case in golden.cases if case.num_failed]
    assert {error for case in failed for error in case.errors} == set(golden.errors)
    assert json.loads(analysis_json(golden._analysed.analysis)) == golden.analysis


@pytest.mark.parametrize(
    "chosen",
    [
        lambda run: run.case("train 2x1 slow"),
        lambda run: run.case(workload="train", network="slow"),
        lambda run: run.case(run.case("train 2x1 slow").key),
    ],
)
def test_a_case_is_chosen_by_label_key_or_names(golden: Run, chosen) -> None:
    assert chosen(golden).label == "train 2x1 slow"


@pytest.mark.parametrize(
    ("label", "named", "message"),
    [
        ("train 2x1 slwo", {}, "did you mean `train 2x1 slow`"),
        (None, {"network": "slow"}, "3 cases are network=slow: "),
        (None, {"network": "fast"}, "no case is network=fast"),
        (None, {"netwrok": "slow"}, "did you mean `network`"),
    ],
)
def test_a_case_that_is_not_one_is_refused(
    golden: Run, label: str | None, named: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        golden.case(label, **named)


def test_what_tells_several_cases_apart_is_named(golden: Run) -> None:
    with pytest.raises(InputError) as refused:
        golden.case(network="slow")
    assert refused.value.hint is not None
    assert 'add workload="' in refused.value.hint or 'run.case("' in refused.value.hint
    named = golden.case(network="slow", workload="train", shape="2x1")
    assert named.label == "train 2x1 slow"


def test_a_figure_that_was_not_measured_says_why(golden: Run) -> None:
    case = golden.case("train 2x1 slow")
    assert case.figure("step_time_s") == case.estimates["step_time_s"]
    reason = golden._analysed.run.case(case.key).missing["mfu_ratio"]
    with pytest.raises(InputError, match=re.escape(reason)):
        case.figure("mfu_ratio")
    with pytest.raises(InputError, match="did you mean `step_time_s`"):
        case.figure("step_time")


def test_estimates_have_a_row_a_case_and_metric(golden: Run) -> None:
    rows = list(golden.estimates)
    assert len(rows) == sum(len(case.estimates) for case in golden.cases)
    for row in rows:
        estimate = golden.case(row["case_key"]).estimates[row["metric"]]
        assert (row["value"], row["low"], row["high"]) == (
            estimate.value,
            estimate.low,
            estimate.high,
        )
        assert row["unit"] == unit_of(row["metric"])


def test_the_report_is_written_where_it_is_asked(golden: Run, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    assert golden.write_report(path) == path
    assert golden.write_report() == golden.folder / "report.html"
    assert path.read_bytes() == (golden.folder / "report.html").read_bytes()


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="does not exist"):
        open_run(tmp_path / "nothing")


class Tags(HTMLParser):
    """Opens and closes, and what loads something."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen += [tag, *(name for name, _ in attrs)]
        if tag not in ("br", "col"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def made_up(tmp_path: Path) -> Run:
    return Run(analysed(sample_run(tmp_path / "made-up")))


def test_a_notebook_shows_the_table_and_a_verdict_for_each_network(made_up: Run) -> None:
    page = made_up._repr_html_()
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert not {"script", "img", "link", "src", "href", "onload", "id"} & set(tags.seen)
    words = re.sub(r"<[^>]*>", " ", re.sub(r"<style>.*?</style>", "", page))
    for row in made_up.cases:
        assert row.workload != "train" or row.sentence.partition(": ")[2] in words
    for figure in ("723 ms", "23.2 MB/s", "1 failed", "pod-like"):
        assert figure in words
    assert "<script" not in page


def test_styles_touch_nothing_but_their_own(made_up: Run) -> None:
    style = re.search(r"<style>(.*?)</style>", made_up._repr_html_())
    assert style is not None
    selectors = re.findall(r"(?:^|})([^{}]+){", style[1])
    assert len(selectors) > 10
    parts = [part for selector in selectors for part in selector.split(",")]
    assert [part for part in parts if not part.startswith(".broadgauge")] == []


def test_media_types_are_given_as_they_are_asked_for(made_up: Run) -> None:
    bundle = made_up._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert set(made_up._repr_mimebundle_(include={"text/html"})) == {"text/html"}
    assert set(made_up._repr_mimebundle_(exclude={"text/html"})) == {"text/plain"}
    text = bundle["text/plain"]
    assert "\x1b" not in text
    assert "network-bound: 77 % of each step waits for the network" in text
    assert repr(made_up) in text
    assert "\n" not in repr(made_up)


def test_a_run_without_a_trial_shows_itself(golden: Run) -> None:
    (golden.folder / "records.jsonl").write_text("")
    empty = open_run(golden)
    assert (empty.num_ok, empty.is_complete) == (0, False)
    assert "no trial is stored yet" in empty._repr_html_()
    assert empty._repr_mimebundle_()["text/plain"]
    assert empty.records.to_pandas().empty
