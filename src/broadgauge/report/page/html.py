"""How is a run passed on? As one HTML file that opens offline, on a phone and on paper.

The charts are drawn here as SVG, and the Vega runtime inside the file brings them to life on a
screen. A content policy in the page forbids the browser to load anything from anywhere.
"""

from importlib.resources import files
from pathlib import Path

from broadgauge.analysis.model import AnalysedRun
from broadgauge.report.page import baseline, charts, claims, details, matrix, nccl, storages, top
from broadgauge.report.page.markup import Html, tag
from broadgauge.report.page.vega_runtime import runtime
from broadgauge.report.rows.closing import table_rows
from broadgauge.report.words.links import reference_words
from broadgauge.results.folder import disk

FILE_NAME = "report.html"
LARGEST_PAGE_BYTES = 1_900_000
"""Below 2 MB, so that it can be mailed; a page that grew past it goes without the living charts."""

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; "
    "img-src data:"
)
"""'unsafe-eval': Vega compiles its expressions, all of them from this page."""


def write_report(analysed: AnalysedRun, path: Path | None = None) -> Path:
    """Writes the page, into the run's folder unless told where. Raises RunFolderError."""
    target = analysed.run.folder / FILE_NAME if path is None else path
    page = render(analysed).encode()
    with disk.telling("write", target):
        disk.write_whole(target, page)
    return target


def render(analysed: AnalysedRun) -> str:
    """The page. The same run gives the same bytes."""
    script = runtime()
    above, below = _above_pictures(analysed), _below_pictures(analysed)
    pictures = charts.pictures(analysed)

    def page(script: str | None) -> str:
        """With the runtime's script the charts live; without it they are drawn only."""
        drawn = charts.figures(pictures, is_interactive=script is not None)
        shown = [tag("h2", "Pictures"), drawn] if pictures else []
        return whole_page(analysed.run.plan.experiment_name, [*above, *shown, *below], script)

    living = page(script)
    is_too_large = script is not None and len(living.encode()) > LARGEST_PAGE_BYTES
    return page(None) if is_too_large else living


def whole_page(title: str, sections: list[Html], script: str | None) -> str:
    """The document around these sections."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light"),
        tag("title", f"{title} · Broadgauge"),
        tag("style", _asset("report.css")),
    )
    scripts = [tag("script", Html(script)), tag("script", _asset("report.js"))] if script else []
    body = tag("body", tag("main", sections), tag("div", id="tip", role="status"), scripts)
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _above_pictures(analysed: AnalysedRun) -> list[Html]:
    run, analysis = analysed.run, analysed.analysis
    rows = table_rows(run, analysis, analysed.cost)
    return [
        top.header(run),
        top.disturbed(analysis),
        top.headline(rows),
        claims.hypotheses(analysis),
        tag("h2", "What limits the job") if run.plan.hypotheses else Html(),
        top.cards(rows),
        top.closing_table(rows),
        storages.storages(run),
        top.notes(run, analysis, analysed.cost),
        baseline.baseline(run, analysis),
        claims.published(analysis),
        matrix.placement(run),
    ]


def _below_pictures(analysed: AnalysedRun) -> list[Html]:
    run, analysis = analysed.run, analysed.analysis
    return [
        top.comparisons(analysis, is_imported=run.plan.is_imported, reference=reference_words(run)),
        matrix.paths(analysis),
        nccl.nccl(analysis),
        matrix.nics(run),
        details.hosts(run),
        details.failures(run),
        details.findings(analysis),
        details.all_metrics(run, analysed.cost),
        details.meanings(run, analysed.cost),
        details.environments(run),
        details.experiment(run),
    ]


def _asset(name: str) -> Html:
    """A file that comes with the package; style and script stand in the page as they are."""
    return Html(files("broadgauge.report").joinpath("assets", name).read_text(encoding="utf-8"))
