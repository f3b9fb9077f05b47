"""Is the page of `predict` readable as it is: on a desk, on a phone, its networks on the curve?"""

import json
import math
import re
from collections.abc import Sequence
from functools import cache
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.report.page.test_browser import browse

from broadgauge.catalog.catalog import shipped_catalog
from broadgauge.report.predict.charts import step_by_bandwidth
from broadgauge.report.predict.network_marks import (
    CHARACTER_WIDTH,
    PLOT_WIDTH,
    NetworkMark,
    PlacedName,
    marks_of,
    placed_names,
)
from broadgauge.report.predict.page import HEAD, render, table_row
from broadgauge.running.predicting import Question, Reply, reply_to

NETWORKS = ("vnic-200g", "eth-25g", "roce-400g", "ib-ndr", "roce-400g*4", "ib-ndr*8")


@cache
def reply(networks: tuple[str, ...] = NETWORKS) -> Reply:
    properties = {
        "model": ["llama3-8b", "llama3.2-1b"],
        "gpu": ["a100-sxm-80gb"],
        "strategy": ["fsdp"],
        "network": list(networks),
        "nodes": [2, 4],
    }
    question = Question(properties=properties, catalog=shipped_catalog(), tokens_count=1e12)
    return reply_to(question, is_cut=False, with_sweeps=False)


def page(found: Reply) -> str:
    return render(found.answers, found.assumed, found.notes, found.recommendations)


def extent(each: PlacedName, lowest: float, highest: float) -> tuple[float, float]:
    at = PLOT_WIDTH * (math.log10(each.rate_gbps / lowest) / math.log10(highest / lowest))
    width = CHARACTER_WIDTH * len(each.name)
    return (at - width, at) if each.is_left else (at, at + width)


RATES = st.lists(st.floats(1.0, 12_800.0), min_size=1, max_size=25)


@given(RATES)
@settings(max_examples=60, deadline=None)
def test_no_two_names_touch_and_all_are_there(rates: list[float]) -> None:
    marks = [
        NetworkMark(name=f"network-{i}", rate_gbps=rate, step_s=1.0) for i, rate in enumerate(rates)
    ]
    placed = placed_names(marks, 1.0, 15_000.0)
    assert sorted(each.name for each in placed) == sorted(mark.name for mark in marks)
    for i, one in enumerate(placed):
        for other in placed[i + 1 :]:
            (begin, end), (first, last) = (extent(each, 1.0, 15_000.0) for each in (one, other))
            assert one.row != other.row or end <= first or last <= begin, (one, other)
    assert all(extent(each, 1.0, 15_000.0)[0] >= 0 for each in placed)


@given(st.floats(1.0, 12_800.0), st.integers(1, 80))
def test_a_long_name_is_cut_in_its_middle_where_there_is_no_room(rate: float, length: int) -> None:
    name = "".join(chr(ord("a") + i % 26) for i in range(length))
    mark = NetworkMark(name=name, rate_gbps=rate, step_s=1.0)
    (placed,) = placed_names([mark], 1.0, 15_000.0)
    begin, end = extent(placed, 1.0, 15_000.0)
    assert begin >= 0
    assert end <= PLOT_WIDTH
    first, cut, last = placed.name.partition("…")
    assert name.startswith(first)
    assert name.endswith(last)
    assert not cut or len(placed.name) >= 15
    assert cut or placed.name == name
    assert cut or length < PLOT_WIDTH / CHARACTER_WIDTH


def test_one_name_stands_for_near_rates_and_two_for_others() -> None:
    def names(*rates: float) -> Sequence[str]:
        marks = [NetworkMark(name="pod", rate_gbps=rate, step_s=1.0) for rate in rates]
        return [each.name for each in placed_names(marks, 1.0, 10_000.0)]

    assert names(10.0, 10.3) == ["pod"]
    assert names(10.0, 30.0) == ["pod", "pod"]


def test_each_network_lies_on_its_curve() -> None:
    for curve in reply().answers.curves:
        marks = marks_of(curve, reply().answers.answers)
        assert [mark.name for mark in marks] == list(NETWORKS)
        points = list(zip(curve.rates_gbps, curve.step_times_s, strict=True))
        for mark in marks:
            slower = [time_s for rate, time_s in points if rate <= mark.rate_gbps]
            faster = [time_s for rate, time_s in points if rate >= mark.rate_gbps]
            assert faster[0] * 0.95 <= mark.step_s <= slower[-1] * 1.05, mark


def test_no_network_is_marked_at_a_rate_that_its_nics_do_not_have() -> None:
    properties = {
        "model": ["llama-3.1-70b"],
        "gpu": ["h100-sxm"],
        "tensor_parallel": [8],
        "pipeline_parallel": [4],
        "network": ["roce-400g"],
        "nodes": [4],
    }
    question = Question(properties=properties, catalog=shipped_catalog(), tokens_count=1e12)
    found = reply_to(question, is_cut=False, with_sweeps=False).answers
    assert [marks_of(curve, found.answers) for curve in found.curves] == [()]


def test_the_chart_has_a_point_and_a_name_for_each_network() -> None:
    curves = reply().answers.curves
    marks = [marks_of(curve, reply().answers.answers) for curve in curves]
    spec = step_by_bandwidth(curves, ["large", "small"], marks)
    assert spec is not None
    layers = json.loads(json.dumps(spec["layer"]))
    (points,) = [each for each in layers if each["mark"]["type"] == "point"]
    told = {(row["setting"], row["network"]) for row in points["data"]["values"]}
    assert told == {(name, network) for name in ("large", "small") for network in NETWORKS}
    svg = unescape(page(reply()))
    for network in NETWORKS:
        assert len(re.findall(rf"<text[^>]*>{re.escape(network)}</text>", svg)) >= 1, network


def test_a_curve_without_networks_is_drawn_as_before() -> None:
    spec = step_by_bandwidth(reply().answers.curves[:1], ["one"], [[]])
    assert spec is not None
    kinds = [layer["mark"]["type"] for layer in json.loads(json.dumps(spec["layer"]))]
    assert kinds == ["line", "rule"]
    assert spec["height"] == 240


def test_rows_have_their_intervals_in_small_letters() -> None:
    for answer in reply().answers.answers:
        row = table_row(answer)
        assert len(row) == len(HEAD)
        assert re.fullmatch(
            r"[\d.]+ m?s <span class=\"sub\">[\d.]+ to [\d.]+ m?s</span>", str(row[1])
        )
        assert 'class="part">4 nodes<' in str(row[0]) or 'class="part">2 nodes<' in str(row[0])


MEASURING = """<script>
addEventListener("load", function () { setTimeout(function () {
  var wide = Array.from(document.querySelectorAll(".scroll")).map(function (each) {
    return each.scrollWidth - each.clientWidth; });
  wide.push(document.documentElement.scrollWidth - innerWidth);
  var boxes = [];
  document.querySelectorAll("#chart-bandwidth svg text").forEach(function (each) {
    var box = each.getBoundingClientRect();
    if (box.width && NAMES.indexOf(each.textContent) >= 0)
      boxes.push([each.textContent, box.left, box.top, box.right, box.bottom]); });
  parent.postMessage(JSON.stringify({wide: wide, boxes: boxes, inner: innerWidth}), "*");
}, 1500); });
</script>"""
FRAMED = """<body><pre id="said"></pre><script>onmessage = function (event) {
document.getElementById("said").textContent = event.data; };</script>
<iframe src="page.html" width="WIDTH" height="3000" frameborder="0"></iframe>"""


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 420])
def test_nothing_is_cut_and_no_names_overlap(width: int, tmp_path: Path) -> None:
    """In a frame of that width: the browser's own window has a least one."""
    script = MEASURING.replace("NAMES", json.dumps(NETWORKS))
    text = page(reply()).replace("</body>", f"{script}</body>")
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    framed = tmp_path / "framed.html"
    framed.write_text(FRAMED.replace("WIDTH", str(width)))
    document, console = browse(framed, tmp_path / "profile")
    assert console == []
    said = re.search(r'<pre id="said">(.+?)</pre>', document)
    assert said is not None
    measured = json.loads(unescape(said[1]))
    assert measured["inner"] == width
    assert max(measured["wide"]) <= 0, "wider than its place"
    boxes = {tuple(each) for each in measured["boxes"]}
    assert {name for name, *_ in boxes} == set(NETWORKS)
    for name, left, top, right, bottom in boxes:
        assert right <= width
        for other, begin, above, end, below in boxes:
            is_apart = end <= left or right <= begin or below <= top + 1 or bottom <= above + 1
            assert other == name or is_apart, (name, other)
