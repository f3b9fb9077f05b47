"""Do the charts say what the figures say?"""

import itertools
from dataclasses import replace

import pytest
from tests.report.sample_run import POD
from tests.report.sample_storages import LOAD, LOAD_PARTS_S, SAVE, SAVE_PARTS_S, storage_run

from broadgauge.analysis.analyse import analysed
from broadgauge.report.charts.collectives import busbw_chart
from broadgauge.report.charts.drawing import draw, script_json
from broadgauge.report.charts.parts import (
    BAR_STEP,
    LABEL_LINE_HEIGHT,
    LABEL_WIDTH,
    Spec,
    bars_height,
    case_colours,
    decade_ticks,
    label_lines,
    linear_ticks,
    log_ticks,
)
from broadgauge.report.charts.points import (
    MOST_DOTS,
    MOST_POINTS,
    loss_curves,
    smoothed,
    step_boxes,
)
from broadgauge.report.charts.rank_timelines import rank_timelines
from broadgauge.report.charts.storage_pictures import MODEL_LOAD_PICTURES, RAW_FILES_PICTURES
from broadgauge.report.charts.training import cost_chart, throughput_chart
from broadgauge.results.model import RunSummary
from broadgauge.specs.networks.network import Network
from broadgauge.specs.workloads.workload import CommandMetric, CommandWorkload


def trainings(run: RunSummary) -> list:
    return [s for s in run.cases if s.case.workload.kind == "train"]


def test_ticks_enclose_and_are_round() -> None:
    assert linear_ticks(2560) == [0, 1000, 2000, 3000]
    assert linear_ticks(0.73) == [0, 0.2, 0.4, 0.6, 0.8]
    assert linear_ticks(0) == [0, 1]
    assert decade_ticks(0.0023, 0.35) == [0.001, 0.01, 0.1, 1]
    assert decade_ticks(0.01, 0.01) == [0.01, 0.1]
    low, *_, high = log_ticks(0.16, 0.9)
    assert low <= 0.16
    assert high >= 0.9


def test_the_line_rate_is_drawn_in(run: RunSummary) -> None:
    spec = busbw_chart(run, "all_reduce", "float32")
    assert spec is not None
    lines = spec["layer"][0]["data"]["values"]
    assert {(line["network"], line["busbw"]) for line in lines} == {
        ("pod-like", 0.025),
        ("vnic-like", 0.125),
    }
    assert busbw_chart(run, "broadcast", "float32") is None


def test_the_line_rate_is_named_where_curves_are_far(run: RunSummary) -> None:
    spec = busbw_chart(run, "all_reduce", "float32")
    assert spec is not None
    words = [layer for layer in spec["layer"] if layer["mark"]["type"] == "text"]
    assert [layer["encoding"]["x"] for layer in words] == [{"value": 0}] * 2
    assert {layer["mark"]["align"] for layer in words} == {"left"}


def test_each_workload_has_its_own_row_of_steps(run: RunSummary) -> None:
    command = CommandWorkload(
        kind="command",
        name="own",
        command=("train.py",),
        metrics=(CommandMetric(name="step_time_s", json_key="step_time_s"),),
    )
    own = [replace(s, case=s.case.model_copy(update={"workload": command})) for s in trainings(run)]
    both = replace(run, cases=(*run.cases, *own))
    boxes = step_boxes(both, [*trainings(run), *own])
    assert len({box.label for box in boxes}) == 8
    assert {box.label for box in step_boxes(run, trainings(run))} == {
        f"{s.case.network_name} {s.case.shape}" for s in trainings(run)
    }


def test_bars_are_the_estimates(run: RunSummary) -> None:
    spec = throughput_chart(run, trainings(run))
    assert spec is not None
    bars = {row["case"]: row["value"] for row in spec["data"]["values"]}
    assert bars == {
        f"{s.case.network_name} {s.case.shape}": s.value("tokens_per_s") for s in trainings(run)
    }


@pytest.mark.parametrize("network", [None, POD])
def test_each_workload_on_a_storage_has_its_own_bar(network: Network | None) -> None:
    """Bars of one label would be drawn over each other."""
    run = storage_run(network=network)
    (pictures,) = RAW_FILES_PICTURES
    charts = list(pictures(analysed(run), run.cases))
    assert len(charts) == 2
    for chart in charts:
        assert chart.spec is not None
        labels = [row["case"] for row in chart.spec["data"]["values"]]
        assert len(labels) == len(set(labels)) == len(run.cases) == 4


def test_each_rank_of_a_save_has_a_line_without_gaps() -> None:
    run = storage_run(network=POD, workloads=[SAVE])
    spec = rank_timelines(run, run.cases, "since it began")
    assert spec is not None
    rows = spec["layer"][0]["data"]["values"]
    lines = {label: list(rows) for label, rows in itertools.groupby(rows, lambda row: row["case"])}
    assert len(lines) == 4  # two ranks on each of two storages
    for parts in lines.values():
        assert [row["part"] for row in parts] == list(SAVE_PARTS_S)
        assert [row["start"] for row in parts[1:]] == [row["end"] for row in parts[:-1]]
        assert parts[-1]["end"] == sum(SAVE_PARTS_S.values())
    assert {row["stall"] for row in spec["layer"][1]["data"]["values"]} == {7.0}
    assert rank_timelines(storage_run(), storage_run().cases, "") is None


def test_a_load_has_lines_and_no_moment_at_which_training_goes_on() -> None:
    run = storage_run(network=POD, workloads=[LOAD])
    spec = rank_timelines(run, run.cases, "since it began")
    assert spec is not None
    (bars,) = spec["layer"]
    assert len(bars["data"]["values"]) == 4 * len(LOAD_PARTS_S)
    charts = [
        chart.title
        for pictures in MODEL_LOAD_PICTURES
        for chart in pictures(analysed(run), run.cases)
        if chart.spec is not None
    ]
    assert charts == [
        "Read from storages",
        "Until a model is loaded",
        "What each rank does while a model is loaded",
    ]


def test_no_label_of_bars_reaches_into_the_next() -> None:
    """Labels that would read the same once they are cut are left whole, on three lines."""
    labels = [
        f"rank 0, save-asynchronous-{is_async} {storage} 1x2"
        for is_async in ("false", "true")
        for storage in ("disk", "slow-disk", "memory")
    ]
    most = max(map(len, label_lines(labels)))
    assert most > 2
    assert bars_height([{"case": label} for label in labels])["step"] >= most * LABEL_LINE_HEIGHT
    assert bars_height([{"case": "short"}]) == {"step": BAR_STEP}


def test_cost_stands_on_the_step_without_communication(run: RunSummary) -> None:
    spec = cost_chart(run, trainings(run))
    assert spec is not None
    parts = [p for p in spec["layer"][0]["data"]["values"] if p["case"] == "pod-like 2x1"]
    assert parts[0]["end"] == parts[1]["start"]
    total = next(s for s in trainings(run) if s.case.network_name == "pod-like")
    assert abs(parts[1]["end"] - total.value("step_time_s")) < 1e-9


def test_long_series_are_thinned_but_keep_their_ends(run: RunSummary) -> None:
    boxes = step_boxes(run, trainings(run))
    assert [box.samples for box in boxes] == [400, 400, 320, 400]
    assert all(len(box.some) <= MOST_DOTS + 2 for box in boxes)
    assert all(box.some[0] <= box.p05 <= box.median <= box.p95 <= box.some[-1] for box in boxes)
    assert all(0 < len(curve.points) <= MOST_POINTS for curve in loss_curves(run, trainings(run)))


def test_drawings_in_one_page_share_no_ids(run: RunSummary) -> None:
    spec = busbw_chart(run, "all_reduce", "float32")
    assert spec is not None
    first, second = draw(spec, "one"), draw(spec, "two")
    assert first.wide_svg.replace("one-", "two-") == second.wide_svg
    assert first.vega_json == second.vega_json


def test_json_never_ends_its_script() -> None:
    assert "</script" not in script_json({"label": "</script><!--"})


def test_long_labels_stay_apart() -> None:
    labels = [
        f"a-workload-of-a-very-long-name-{end} a-network-that-is-long-too 16x8" for end in "ab"
    ]
    first, second = label_lines(labels)
    assert first != second
    assert all(len(line) <= LABEL_WIDTH for lines in (first, second) for line in lines)
    assert list(label_lines(["pod-like 2x1"])) == [["pod-like 2x1"]]
    in_the_middle = ["x" * 40 + middle + "y" * 40 for middle in "ab"]
    assert list(label_lines(in_the_middle)) == [[label] for label in in_the_middle]


def test_a_loss_is_smoothed_and_keeps_its_trend() -> None:
    line = [10.0 - 0.01 * step for step in range(200)]
    assert smoothed(line) == pytest.approx(line)
    zigzag = [value + (0.5 if step % 2 else -0.5) for step, value in enumerate(line)]
    rough, smooth = (_roughness(values) for values in (zigzag, smoothed(zigzag)))
    assert smooth < 0.1 * rough
    assert smoothed([1.0, float("nan"), 3.0] * 20)[30] == pytest.approx(2.0, abs=0.5)


def _roughness(values: list[float]) -> float:
    return sum(abs(b - a) for a, b in itertools.pairwise(values))


def test_two_trainings_on_one_network_have_two_colours(run: RunSummary) -> None:
    rows: list[Spec] = [{"case": f"{name} slow", "network": "slow"} for name in ("a", "b")]
    assert case_colours(rows, run)["field"] == "case"
    assert case_colours(rows[:1], run)["field"] == "network"
