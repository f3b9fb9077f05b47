"""Proves report/charts/sensitivity.py: the picture holds the rungs, their intervals, the curve."""

import itertools
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from tests.advise.ladders.found_runs import NETWORKS, found_run
from tests.advise.ladders.ladder_runs import (
    COMMAND_WITH_STEPS,
    COMPUTE_S,
    RATES_GBPS,
    STEP_BYTES,
    WIRE_RATIO,
    Planted,
    ladder_run,
)
from tests.predict.sensitivity.simulated_ladders import simulated

from broadgauge.advise.ladders.ladder import Ladder
from broadgauge.advise.ladders.ladders_of_run import ladders, seen_ladders
from broadgauge.advise.ladders.next_step import next_step
from broadgauge.analysis.analyse import analysed
from broadgauge.api.display import plain_text
from broadgauge.predict.sensitivity.sensitivity import analyse
from broadgauge.report.charts.sensitivity import ladder_chart, ladder_words
from broadgauge.report.page.html import render
from broadgauge.report.predict.sensitivity import print_ladders
from broadgauge.report.words.ladder import BASE, CRITICAL, ENOUGH, KNEE, answers, what_next
from broadgauge.results.run_path import read_summary


def chart_of(ladder: Ladder) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Its rungs, and the rest of it: layers by their mark."""
    spec = cast("dict[str, Any]", ladder_chart(ladder))
    return spec["data"]["values"], spec


def of_mark(spec: dict[str, Any], mark: str) -> list[dict[str, Any]]:
    return [layer for layer in spec["layer"] if layer["mark"]["type"] == mark]


def test_the_picture_holds_what_was_measured_and_the_curve(tmp_path: Path) -> None:
    (ladder,) = ladders(read_summary(ladder_run(tmp_path)))
    rungs, spec = chart_of(ladder)
    assert len(rungs) == len(RATES_GBPS) + 1
    assert rungs[-1]["rate"] == "unshaped"
    assert all(row["low"] <= row["y"] <= row["high"] for row in rungs)
    (line,) = of_mark(spec, "line")
    points = line["data"]["values"]
    # On logarithmic axes a straight line over 1/rate is bent: its points are many, and true.
    assert len(points) >= 50
    for point in points:
        true_s = COMPUTE_S + STEP_BYTES * 8e-9 * WIRE_RATIO / point["x"]
        assert point["y"] == pytest.approx(true_s, rel=0.03)
    assert (points[0]["x"], points[-1]["x"]) == (rungs[0]["x"], rungs[-1]["x"])
    words = ladder_words(ladder)
    assert "Bytes on the critical path: 1.99 MB (" in words


def test_rungs_stand_apart_on_logarithmic_axes(tmp_path: Path) -> None:
    """Each rate twice the one before: equally far from each other, and the unshaped one last."""
    (ladder,) = ladders(read_summary(ladder_run(tmp_path)))
    rungs, spec = chart_of(ladder)
    (points,) = of_mark(spec, "point")
    x, y = points["encoding"]["x"], points["encoding"]["y"]
    assert (x["scale"]["type"], y["scale"]["type"]) == ("log", "log")
    low, high = x["scale"]["domain"]
    places = [math.log(row["x"] / low) / math.log(high / low) for row in rungs]
    gaps = [b - a for a, b in itertools.pairwise(places[:-1])]
    assert gaps == pytest.approx([gaps[0]] * len(gaps))
    assert min(gaps) > 0.1
    assert 0.9 < places[-1] < 1
    assert x["axis"]["values"] == [row["x"] for row in rungs]
    assert '"100 Mbit/s"' in x["axis"]["labelExpr"]
    assert '"unshaped"' in x["axis"]["labelExpr"]


def test_no_name_stands_in_the_way_of_the_unshaped_one(tmp_path: Path) -> None:
    """The host carries little more than the fastest rate."""
    (ladder,) = ladders(read_summary(ladder_run(tmp_path, Planted(ceiling_gbps=3.3))))
    rungs, spec = chart_of(ladder)
    named = of_mark(spec, "point")[0]["encoding"]["x"]["axis"]["values"]
    assert len(rungs) == len(RATES_GBPS) + 1
    assert named == [row["x"] for row in rungs if row["rate"] != "1.6 Gbit/s"]


def test_floor_and_knee_are_drawn_where_they_are_stated(tmp_path: Path) -> None:
    (ladder,) = ladders(read_summary(ladder_run(tmp_path)))
    bent = replace(ladder, found=analyse(simulated("hinge", seed=1)))
    unknown = replace(ladder, found=analyse(simulated("line", seed=1, num_blocks=2)))
    drawn = [
        [layer["mark"]["text"] for layer in of_mark(chart_of(each)[1], "text")]
        for each in (ladder, bent, unknown)
    ]
    assert drawn == [["floor"], ["floor", "knee"], []]


def test_an_interval_that_reaches_below_0_is_cut_off(tmp_path: Path) -> None:
    (ladder,) = ladders(read_summary(ladder_run(tmp_path)))
    assert ladder.found is not None
    first = ladder.found.rungs[0]
    wide = replace(first, step_s=replace(first.step_s, low=-1.0))
    found = replace(ladder.found, rungs=(wide, *ladder.found.rungs[1:]))
    rungs, spec = chart_of(replace(ladder, found=found))
    lowest = spec["layer"][-1]["encoding"]["y"]["scale"]["domain"][0]
    assert 0 < lowest <= rungs[0]["low"] < rungs[0]["y"]


def test_a_page_shows_it_where_there_are_rates_enough(tmp_path: Path) -> None:
    page = render(analysed(read_summary(ladder_run(tmp_path / "many", launches=2))))
    assert "Sensitivity of train 2x1" in page
    assert "None cores" not in page  # of these machines nothing is known
    few = read_summary(ladder_run(tmp_path / "few", rates_gbps=(0.1, 0.2), launches=2))
    assert seen_ladders(few) == ()


@pytest.mark.parametrize(
    ("counted_ratio", "spread", "words"),
    [
        (1.0, 0.002, "all of it is waited for"),
        (2.0, 0.002, "50 % is hidden even at the slowest rate"),
        (1.1, 0.15, "whether some of it is hidden can't be told"),
    ],
)
def test_hidden_bytes_are_claimed_where_the_intervals_allow_it(
    tmp_path: Path, counted_ratio: float, spread: float, words: str
) -> None:
    planted = Planted(counted_bytes=counted_ratio * STEP_BYTES, spread=spread)
    (ladder,) = ladders(read_summary(ladder_run(tmp_path, planted, launches=3)))
    assert words in dict(answers(ladder))[CRITICAL]


def test_a_commands_other_bytes_need_not_be_hidden(tmp_path: Path) -> None:
    """It may print one line for two steps."""
    planted = Planted(counted_bytes=2 * STEP_BYTES)
    path = ladder_run(tmp_path, planted, workloads=[COMMAND_WITH_STEPS], launches=3)
    (ladder,) = ladders(read_summary(path))
    words = dict(answers(ladder))[CRITICAL]
    link = "4 MB a sample printed: 50 % is hidden even at the slowest rate"
    assert f"{link}, or a line is of several steps" in words


def test_what_is_not_yet_known_says_why_and_what_to_try(tmp_path: Path) -> None:
    (ladder,) = ladders(read_summary(ladder_run(tmp_path, Planted(spread=0.2), launches=3)))
    words = dict(answers(ladder))[ENOUGH]
    assert words.startswith("not yet known, 465 Mbit/s to 22.9 Gbit/s: ")
    assert words.endswith("; try 2.9 Gbit/s, 5.4 Gbit/s and 10 Gbit/s")
    assert what_next(ladder) is not None


def test_a_line_without_an_unshaped_rung_names_the_rates_to_try(tmp_path: Path) -> None:
    (ladder,) = ladders(read_summary(ladder_run(tmp_path, has_reference=False)))
    words = dict(answers(ladder))[BASE]
    assert words.startswith("not yet known, ")
    assert ": a step gets shorter up to the fastest rate; try 2.9 Gbit/s, " in words
    assert " or a network without a rate; with communication off " in words
    assert max(next_step(ladder).rates_gbps) > 4
    assert f"{max(next_step(ladder).rates_gbps):g}" in (what_next(ladder) or "")


def test_a_knee_is_an_answer_of_its_own(tmp_path: Path) -> None:
    (ladder,) = ladders(read_summary(ladder_run(tmp_path)))
    assert KNEE not in dict(answers(ladder))
    bent = dict(answers(replace(ladder, found=analyse(simulated("hinge", seed=1)))))
    assert bent[KNEE].startswith("304 Mbit/s (")
    assert "a step below the knee; above it none: all is hidden" in bent[CRITICAL]
    scattered = analyse(simulated("two slopes", seed=0, num_blocks=3, spread=0.1))
    words = dict(answers(replace(ladder, found=scattered)))
    assert words[KNEE].startswith("not yet known")
    assert "below the knee" not in words[CRITICAL]


def test_the_next_rates_are_those_that_would_show_more(tmp_path: Path) -> None:
    """Slower ones where nothing is seen, faster ones where the host can carry them."""
    planted = Planted(step_s=lambda _: 0.05)
    (flat,) = ladders(read_summary(ladder_run(tmp_path / "flat", planted)))
    assert min(next_step(flat).rates_gbps) < 0.1
    assert set(RATES_GBPS) < set(next_step(flat).rates_gbps)
    path = ladder_run(tmp_path / "line", has_reference=False)
    (line,) = ladders(read_summary(path))
    assert 1.6 < max(next_step(line).rates_gbps) <= 10
    assert next_step(line).lacks_unshaped
    weak = Planted(ceiling_gbps=3.5)
    path = ladder_run(tmp_path / "weak", weak, has_reference=False)
    (bounded,) = ladders(read_summary(path))
    assert next_step(bounded).rates_gbps == ()


def test_found_networks_are_named_beside_what_they_carry(tmp_path: Path) -> None:
    (ladder,) = ladders(read_summary(found_run(tmp_path)))
    rungs, spec = chart_of(ladder)
    assert [row["rate"].split(",")[0] for row in rungs] == list(NETWORKS)
    (points,) = of_mark(spec, "point")
    axis = points["encoding"]["x"]["axis"]
    assert axis["title"] == "what a network carries a node"
    assert '"pod, 20' in axis["labelExpr"]
    words = ladder_words(ladder)
    assert "Rates are what all_reduce of 64 MiB carried on each network; " in words
    known = dict(answers(ladder))
    assert known[ENOUGH].endswith("a faster network would tell")
    printed = plain_text(partial(print_ladders, [ladder]))
    assert "step time against what each network carries" in printed
    assert what_next(ladder) is None
    page = render(analysed(read_summary(found_run(tmp_path / "page"))))
    assert "Sensitivity of train 2x1" in page
    assert "None cores" not in page  # of these machines nothing is known
