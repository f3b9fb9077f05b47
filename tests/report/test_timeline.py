"""Does a page show when each rank did what: true, small, and to be zoomed in a browser?"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.report.sample_run import Options, sample_run
from tests.report.test_browser import browse
from tests.report.test_step_parts import traced, with_traces
from tests.traces import jobs

from broadgauge.analysis.analyse import analysed
from broadgauge.report import html_explain
from broadgauge.report.html import render
from broadgauge.report.timeline_picture import HEIGHT, WIDTH, timeline_figure
from broadgauge.results.measured_beside import NOTHING_BESIDE
from broadgauge.results.model import RunSummary
from broadgauge.results.traced_cases import traced_cases
from broadgauge.specs.traced_steps import TIMELINE_SERIES
from broadgauge.traces.attribution.explaining import explain
from broadgauge.traces.explanation import TraceExplanation
from broadgauge.traces.reading.reader import read_trace
from broadgauge.traces.timeline import timeline_of
from broadgauge.traces.tracks import Track

RECTANGLE = re.compile(r"[Mm](-?\d+) (-?\d+)h(\d+)v(\d+)h-\d+z")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> TraceExplanation:
    paths = jobs.fsdp2(layers=12).write(tmp_path_factory.mktemp("job"))
    return explain(read_trace(path) for path in paths)


def strips(page: str, track: Track) -> list[str]:
    return re.findall(rf'<svg [^>]*class="timeline-strip {track}".*?</svg>', page, re.DOTALL)


def rectangles(path: str) -> Iterator[tuple[int, int, int, int]]:
    """x, y, width, height of each."""
    x = y = 0
    for words in RECTANGLE.findall(path):
        across, down, width, height = map(int, words)
        x, y = x + across, y + down
        yield x, y, width, height


def share_drawn(strip: str, words: str) -> float:
    """Of a strip's area."""
    (path,) = re.findall(rf'<path d="([^"]*)"[^>]*data-words="{words}"', strip)
    area = sum(width * height for _, _, width, height in rectangles(path))
    return area / WIDTH / HEIGHT


@pytest.mark.parametrize(("most_pieces", "within"), [(20_000, 0.001), (800, 1 / HEIGHT / 2)])
def test_strips_show_the_parts_by_their_area(
    found: TraceExplanation, most_pieces: int, within: float
) -> None:
    """Heights are whole units."""
    timeline = timeline_of(found)
    page = timeline_figure(timeline, "title", most_pieces=most_pieces)
    for rank, strip in zip(found.ranks, strips(page, Track.STEP), strict=True):
        wanted = rank.parts.compute_ns / timeline.span_ns
        assert share_drawn(strip, "compute") == pytest.approx(wanted, abs=within)
        for path in re.findall(r' d="([^"]*)"', strip)[:-1]:
            for x, y, width, height in rectangles(path):
                assert 0 <= x <= x + width <= WIDTH + 1
                assert 0 <= y <= y + height <= HEIGHT
    ends = re.findall(r'd="([^"]*)" class="timeline-end"', page)
    assert all(path.count("M") == found.num_steps for path in ends)


def test_a_picture_of_many_pieces_is_as_small_as_of_few(tmp_path: Path) -> None:
    paths = jobs.fsdp2(layers=120).write(tmp_path)
    long = timeline_of(explain(read_trace(path) for path in paths))
    assert len(timeline_figure(long, "title", most_pieces=100_000)) > 100_000
    assert len(timeline_figure(long, "title", most_pieces=2_000)) < 60_000


def with_timeline(run: RunSummary, found: TraceExplanation) -> RunSummary:
    """The sample run, whose traced trial left such a timeline."""
    (case,) = traced_cases(run)
    relative = f"series/{case.record.record_id}.{TIMELINE_SERIES}.npy"
    np.save(run.folder / relative, timeline_of(found).rows())
    kept = case.record.model_copy(
        update={"series": {**case.record.series, TIMELINE_SERIES: relative}}
    )
    records = tuple(kept if r is case.record else r for r in case.summary.records)
    summary = replace(case.summary, records=records)
    cases = tuple(summary if each is case.summary else each for each in run.cases)
    return replace(run, cases=cases)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    plain = sample_run(tmp_path_factory.mktemp("run"), Options(has_failure=False))
    return with_traces(plain, {0: traced(0.4)})


def test_the_report_has_one_a_traced_case(run: RunSummary, found: TraceExplanation) -> None:
    page = render(analysed(with_timeline(run, found)))
    assert page.count('<figure class="timeline"') == 1
    assert len(strips(page, Track.STEP)) == 2
    assert "querySelectorAll(&quot;" not in page
    assert page.count("function bringToLife(figure)") == 1
    assert len(page) < 1_900_000


def test_a_run_of_before_there_were_timelines_has_none(run: RunSummary) -> None:
    page = render(analysed(run))
    assert '<figure class="timeline"' not in page
    assert "function bringToLife(figure)" not in page


def test_one_that_is_lost_or_torn_is_left_out(run: RunSummary, found: TraceExplanation) -> None:
    torn = with_timeline(run, found)
    (case,) = traced_cases(torn)
    path = torn.folder / case.record.series[TIMELINE_SERIES]
    path.write_bytes(path.read_bytes()[:500])
    assert '<figure class="timeline"' not in render(analysed(torn))
    path.unlink()
    assert '<figure class="timeline"' not in render(analysed(torn))


PROBE = """<script>
window.addEventListener("load", function () {
  var strips = document.querySelector(".timeline-strips");
  var strip = document.querySelector(".timeline-strip");
  var told = [];
  function note(what) { told.push(what + "=" + strip.getAttribute("viewBox").split(" ")
    .map(Number).map(Math.round).join(",")); }
  function key(name) { strips.dispatchEvent(new KeyboardEvent("keydown", { key: name })); }
  function pointer(kind, x, id) {
    var box = strip.getBoundingClientRect();
    strip.dispatchEvent(new PointerEvent(kind, { bubbles: true, pointerId: id || 1, button: 0,
      clientX: box.left + x * box.width, clientY: box.top + 4 }));
  }
  strips.setPointerCapture = function () {};
  note("all");
  pointer("pointermove", 0.3);
  told.push("tip=" + document.getElementById("tip").textContent);
  key("+"); note("in");
  key("ArrowRight"); note("right");
  key("0"); note("zero");
  var box = strip.getBoundingClientRect();
  var wheel = new WheelEvent("wheel", { bubbles: true, cancelable: true, ctrlKey: true,
    deltaY: -300, clientX: box.left, clientY: box.top + 4 });
  strip.dispatchEvent(wheel); note("wheel");
  var plain = new WheelEvent("wheel", { bubbles: true, cancelable: true, deltaY: 99 });
  strip.dispatchEvent(plain);
  told.push("page=" + (plain.defaultPrevented ? "stays" : "scrolls"));
  pointer("pointerdown", 0.5); pointer("pointermove", 0.25); pointer("pointerup", 0.25);
  note("drag");
  document.querySelectorAll(".timeline-tools button")[4].click(); note("button");
  pointer("pointerdown", 0.4); pointer("pointerdown", 0.6, 2);
  pointer("pointermove", 0.8, 2); note("pinch");
  pointer("pointerup", 0.4); pointer("pointerup", 0.8, 2); key("0");
  for (var n = 0; n < 40; n += 1) { key("+"); }
  note("most");
  told.push("ticks=" + document.querySelector(".timeline-axis").children.length);
  told.push("said=" + document.querySelector(".timeline-said").textContent);
  told.push("wide=" + (document.documentElement.scrollWidth > window.innerWidth));
  document.title = told.join("; ");
});
</script>"""


def told(document: str) -> dict[str, str]:
    title = re.search(r"<title>(.*?)</title>", document)
    assert title is not None
    return dict(pair.split("=", 1) for pair in title[1].split("; "))


@pytest.mark.browser
def test_a_browser_zooms_and_moves_it(found: TraceExplanation, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    whole = html_explain.render([("a job", found, NOTHING_BESIDE)])
    page.write_text(whole.replace("</body>", f"{PROBE}</body>"))
    document, console = browse(page, tmp_path / "profile")
    assert console == []
    said = told(document)
    assert said["all"] == said["zero"] == said["button"] == f"0,0,{WIDTH},{HEIGHT}"
    assert said["in"] == "250000,0,500000,16"
    assert said["right"] == "300000,0,500000,16"
    start, _, width, _ = map(int, said["wheel"].split(","))
    assert (start, 0.5 < width / WIDTH < 0.6) == (0, True)
    moved, _, same, _ = map(int, said["drag"].split(","))
    assert same == width
    assert moved == pytest.approx(0.25 * width, abs=3)
    assert said["page"] == "scrolls"
    assert int(said["pinch"].split(",")[2]) == WIDTH // 2
    assert said["most"].split(",")[2] == "100"
    assert 2 <= int(said["ticks"]) <= 11
    assert re.fullmatch(r"[\d.]+ \S+ to [\d.]+ \S+", said["said"])
    assert re.match(r"compute|FSDP|exposed|communication|waiting", said["tip"])
    assert said["wide"] == "false"


@pytest.mark.browser
def test_it_lives_in_a_report(run: RunSummary, found: TraceExplanation, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(
        render(analysed(with_timeline(run, found))).replace("</body>", f"{PROBE}</body>")
    )
    document, console = browse(page, tmp_path / "profile")
    assert console == []
    assert told(document)["in"] == "250000,0,500000,16"


@pytest.mark.browser
def test_without_scripts_and_on_paper_all_of_it_stands(
    found: TraceExplanation, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    whole = html_explain.render([("a job", found, NOTHING_BESIDE)])
    page.write_text(re.sub(r"<script.*?</script>", "", whole, flags=re.DOTALL))
    document, console = browse(page, tmp_path / "profile")
    assert console == []
    assert document.count('class="timeline-strip ') == 2 * len(Track)
    assert "<button" not in document
