"""Does a real browser show the page: figures, living charts, an empty console, on a phone too?"""

import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

from broadgauge.analysis.analyse import analysed
from broadgauge.report.page.html import render
from broadgauge.results.model import RunSummary

pytestmark = pytest.mark.browser

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--v=0",
    "--virtual-time-budget=5000",
    "--window-size=1280,2000",
)


def browse(path: Path, profile: Path, *more: str) -> tuple[str, list[str]]:
    """The document after its scripts ran, and the lines of its console.

    Not those of the browser's own pages, which find their network slow where cores are busy.
    """
    browser = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    )
    done = subprocess.run(
        [browser, *FLAGS, f"--user-data-dir={profile}", *more, "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    lines = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, [line for line in lines if "source: chrome://" not in line]


@pytest.fixture(scope="module")
def page(run: RunSummary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(analysed(run)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def shown(page: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """The page as it is, in a browser that is started once."""
    return browse(page, tmp_path_factory.mktemp("profile"))


def test_figures_are_there_and_the_console_is_empty(shown: tuple[str, list[str]]) -> None:
    document, console = shown
    assert console == []
    words = unescape(re.sub(r"<[^>]*>", " ", document))
    for figure in ("723 ms", "77 % of each step waits for the network", "23.2 MB/s", "22.5 %"):
        assert figure in words


def test_every_chart_lives(shown: tuple[str, list[str]]) -> None:
    document, _ = shown
    charts = len(re.findall(r'<div class="chart[ "]', document))
    assert charts == 8
    assert len(re.findall(r'<div class="chart is-live"', document)) == charts
    live = re.findall(r'<div class="live[^"]*".*?</svg>', document, re.DOTALL)
    assert len(live) == charts
    assert any("line rate 200 Mbit/s" in chart for chart in live)
    assert not any("undefined" in chart or "NaN" in chart for chart in live)


def test_a_phone_scrolls_in_one_direction_only(page: Path, tmp_path: Path) -> None:
    """A frame of 375 pixels stands for the phone: the browser's own window has a least width."""
    reporter = (
        "<script>setTimeout(function () { parent.postMessage("
        "document.documentElement.scrollWidth + ' of ' + window.innerWidth, '*');"
        "}, 1500);</script>"
    )
    narrow = tmp_path / "narrow.html"
    narrow.write_text(page.read_text(encoding="utf-8").replace("</body>", f"{reporter}</body>"))
    phone = tmp_path / "phone.html"
    phone.write_text(
        "<body><p id=said></p><script>onmessage = function (event) {"
        "document.getElementById('said').textContent = event.data; };</script>"
        '<iframe src="narrow.html" width="375" height="3000" frameborder="0"></iframe>'
    )
    document, console = browse(phone, tmp_path / "profile")
    assert console == []
    said = re.search(r"(\d+) of 375<", document)
    assert said is not None
    assert int(said[1]) <= 375


def test_without_scripts_the_drawn_charts_stand(page: Path, tmp_path: Path) -> None:
    scripts = re.compile(r"<script.*?</script>", re.DOTALL)
    still = tmp_path / "still.html"
    still.write_text(scripts.sub("", page.read_text(encoding="utf-8")), encoding="utf-8")
    document, console = browse(still, tmp_path / "profile")
    assert console == []
    assert document.count('<div class="still wide"><svg') == 8


def test_it_prints(page: Path, tmp_path: Path) -> None:
    printed = tmp_path / "report.pdf"
    browse(page, tmp_path / "profile", "--no-pdf-header-footer", f"--print-to-pdf={printed}")
    assert printed.read_bytes().startswith(b"%PDF")
