"""Is the page whole by itself: one file, small, the same each time, and safe with hostile names?"""

import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.report.sample_run import POD
from tests.report.sample_storages import storage_run

from broadgauge.analysis.analyse import analysed
from broadgauge.report.charts.drawing import drawn
from broadgauge.report.page import details
from broadgauge.report.page import html as html_report
from broadgauge.report.page.html import render, write_report
from broadgauge.report.page.vega_runtime import runtime
from broadgauge.report.rows.closing import columns, table_rows
from broadgauge.results.model import RunSummary
from broadgauge.specs.errors import RunFolderError

LOADING = ("src", "href", "xlink:href", "srcset", "data", "action", "poster", "background")


@pytest.fixture(scope="module")
def page(run: RunSummary) -> str:
    return render(analysed(run))


class Reader(HTMLParser):
    """Collects what a browser would load, and the words a reader sees."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.words: list[str] = []
        self.elements: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self._open.append(tag)
        self.loads += [value or "" for name, value in attrs if name in LOADING]

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self._open):
            self.words.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    return reader


def test_figures_stand_in_the_page(page: str) -> None:
    words = " ".join(" ".join(read(page).words).split())
    for figure in (
        "Network-bound on pod-like and vnic-like; compute-bound on reference; "
        "slower than one node on pod-like.",
        "77 % of each step waits for the network",
        "23.2 MB/s",
        "97 % of line",
        "723 ms",
        "line rate 200 Mbit/s",
        "mean of launches, t interval",
        "the peak of a CPU is not known",
        "rank 1 ended with exit code 1",
        "AMD EPYC 9654",
        "as nccl-tests defines busbw",
    ):
        assert figure in words, figure


def test_nothing_is_loaded_from_anywhere(page: str) -> None:
    assert [load for load in read(page).loads if not load.startswith("#")] == []
    style = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert style
    assert not [css for css in style if "@import" in css or "url(" in css]
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", _drawn(page)))
    assert "default-src 'none'" in unescape(page)
    assert re.search(r"<(?:link|iframe|img|base|object|embed)\b", _drawn(page)) is None


def _drawn(page: str) -> str:
    return re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def test_only_namespaces_look_like_addresses(page: str) -> None:
    addresses = set(re.findall(r"https?://[\w./-]+", page))
    assert {a for a in addresses if not a.startswith("http://www.w3.org/")} <= {
        "https://vega.github.io/schema/vega/v6.json"
    }


def test_it_is_small(page: str) -> None:
    assert len(page.encode()) < 2_000_000


def test_the_same_run_gives_the_same_bytes(run: RunSummary, page: str) -> None:
    for kept in (runtime, drawn):
        kept.cache_clear()
    assert render(analysed(run)) == page


def test_what_the_user_wrote_is_never_markup(run: RunSummary, page: str, samples) -> None:
    assert samples.HOSTILE not in page
    assert "&lt;script&gt;alert(&#x27;pod&#x27;)&lt;/script&gt;" in page
    hostile = replace(run, notes=("</p><img src=x onerror=alert(1)>", "</script><b>"))
    assert "img" not in read(render(analysed(hostile))).elements


def test_ids_are_unique(page: str) -> None:
    ids = re.findall(r'<[^>]*\sid="([^"]+)"', _drawn(page))
    assert len(ids) == len(set(ids))


def test_a_page_that_grew_too_large_is_drawn_only(
    run: RunSummary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_report, "LARGEST_PAGE_BYTES", 700_000)
    drawn = render(analysed(run))
    assert len(drawn.encode()) < 700_000
    assert "<svg" in drawn
    assert "broadgaugeVega" not in drawn


def test_a_run_without_results_makes_a_page(run: RunSummary) -> None:
    bare = [
        replace(s, records=(), estimates={}, collectives=(), num_ok=0, num_failed=0, scaling=None)
        for s in run.cases
    ]
    assert "not measured yet" in render(analysed(replace(run, cases=tuple(bare), records=())))


def test_gone_series_leave_out_their_charts(run: RunSummary, tmp_path: Path, page: str) -> None:
    without = render(analysed(replace(run, folder=tmp_path)))
    assert "Times of single steps" in page
    assert "Times of single steps" not in without
    assert "Throughput" in without


def test_gpus_are_shown_where_there_are_any(samples, tmp_path: Path, page: str) -> None:
    with_gpus = render(analysed(samples.sample_run(tmp_path, samples.Options(has_gpus=True))))
    assert "NVIDIA H200" in with_gpus
    assert "GPU clock" in with_gpus
    assert "GPU clock" not in page


def test_the_file_is_written_into_the_run(samples, tmp_path: Path) -> None:
    made = analysed(samples.sample_run(tmp_path, samples.Options(launches=1)))
    assert write_report(made) == tmp_path / "report.html"
    with pytest.raises(RunFolderError, match="can't write"):
        write_report(made, tmp_path / "no such folder" / "report.html")


def heads(page: str) -> list[str]:
    return re.findall(r'<th[^>]*scope="col"[^>]*>([^<]*)</th>', page)


def test_hosts_without_a_link_have_no_columns_of_one(run: RunSummary) -> None:
    alone, linked = str(details.hosts(storage_run())), str(details.hosts(run))
    assert heads(alone) == ["case", "cores busy"]
    assert "<h2>Hosts</h2>" in alone
    assert "on the wire" not in alone
    assert heads(linked)[:4] == ["case", "bytes per trial", "CPU per GB", "cores busy"]
    assert "<h2>Hosts and links</h2>" in linked


def first_title(run: RunSummary) -> str:
    return columns(table_rows(run, analysed(run).analysis))[0].title


def test_the_closing_table_calls_names_by_what_they_name(run: RunSummary) -> None:
    assert first_title(run) == "network"
    assert first_title(storage_run()) == "storage"
    assert first_title(storage_run(network=POD)) == "network, storage"
    assert first_title(replace(run, cases=(*run.cases, *storage_run().cases))) == "network, storage"
