"""Do pictures and tables of batches show what a step waits?"""

from tests.report.sample_batches import batches, batches_run

from broadgauge.analysis.analyse import analysed
from broadgauge.report.charts.storage_pictures import BATCHES_PICTURES
from broadgauge.report.kinds.registry import in_report
from broadgauge.report.rows.file_accesses import HEAD, file_access_rows


def test_batches_have_a_bar_for_all_steps_and_one_for_the_slow_ones() -> None:
    run = batches_run([batches("cold"), batches("warm")])
    (pictures,) = BATCHES_PICTURES
    charts = list(pictures(analysed(run), run.cases))
    values = []
    for chart in charts[:2]:
        assert chart.spec is not None
        values.append([row["value"] for row in chart.spec["data"]["values"]])
    assert values == [[5.0, 1.25], [0.8, 0.2]]
    waits = charts[2].spec
    assert waits is not None
    assert [row["median"] for row in waits["data"]["values"]] == [0.4, 0.1]
    assert [row["steps"] for row in waits["data"]["values"]] == ["18", "18"]  # of two launches


def test_the_table_says_what_training_waits_and_which_parts() -> None:
    run = batches_run([batches("cold", 0.3)])
    (row,) = file_access_rows(run.cases[0])
    shown = dict(zip(HEAD, row, strict=True))
    assert shown["training waits"] == "4 s"
    assert shown["parts of the time"] == "start 400 ms, compute 3 s, wait 3.6 s"
    assert shown["came from"] == "cold"


def test_the_figure_is_what_a_rank_waits_for_100_samples() -> None:
    summary = batches_run([batches("cold")]).cases[0]
    cell = in_report(summary.case.workload).figure(summary)
    assert cell is not None
    assert cell.main == "5 s"
    assert cell.below == "per 100 samples; p99 800 ms a step"
