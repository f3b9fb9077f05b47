"""What does a reader of the page see first? The answer, a card a network, and the table."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from broadgauge.analysis.model import Analysis, JudgedRatio
from broadgauge.report.page.markup import Html, join, table, tag
from broadgauge.report.rows.closing import NetworkRow, columns
from broadgauge.report.rows.cost import cost_notes
from broadgauge.report.rows.headline import headline_lines
from broadgauge.report.rows.launch_counts import (
    launches_sentence,
    shared_launches,
    without_launches,
)
from broadgauge.report.words.cells import EMPTY, Cell
from broadgauge.report.words.printable import lasting
from broadgauge.report.words.quantities import interval, show, title_of
from broadgauge.results.cost import NO_COST, RunCost
from broadgauge.results.model import RunSummary
from broadgauge.specs.records.imported import IMPORTED

MOST_OPEN_CARDS = 12
"""More would push the table off the first screens."""


def header(run: RunSummary) -> Html:
    """What was measured, when, and on what?"""
    return tag(
        "header",
        tag("h1", run.plan.experiment_name),
        tag("p", run.plan.description) if run.plan.description else "",
        tag("p", " · ".join(header_facts(run)), class_="faint"),
    )


def header_facts(run: RunSummary) -> list[str]:
    """When, on what, by which version, and how many trials."""
    environments = list(run.environments.values())
    machine = environments[0] if environments else None
    facts = [_when(run)]
    if machine is not None:
        gpus = ", ".join(dict.fromkeys(gpu.name for gpu in machine.gpus))
        platforms = " and ".join(dict.fromkeys(each.platform for each in environments))
        if machine.platform == IMPORTED:
            facts.append("imported, not measured by Broadgauge")
            facts.append(gpus or "GPUs not known")
        else:
            cores = "" if machine.cores is None else f", {machine.cores} cores"
            facts.append(f"{platforms} platform{cores}")
            facts.append(gpus or "no GPU")
        facts.append(f"broadgauge {machine.broadgauge}")
    launches = {record.launch_id for record in run.records}
    facts.append(f"{len(run.records)} trials in {len(launches)} launches")
    return facts


def _when(run: RunSummary) -> str:
    if not run.records:
        return "no trial is stored yet"
    started = datetime.fromtimestamp(min(r.started_unix_s for r in run.records), UTC)
    return f"{started:%Y-%m-%d %H:%M} UTC"


def disturbed(analysis: Analysis) -> Html:
    """Did other programs use the cores meanwhile? Said before any figure."""
    words = analysis.shared_cores
    if words is None:
        return Html()
    return tag("p", f"{words[:1].upper()}{words[1:]}.", class_="disturbed", role="note")


def headline(rows: Sequence[NetworkRow]) -> Html:
    """Which networks hold the job back, in one line a workload?"""
    return join([tag("p", line, class_="headline") for line in headline_lines(rows)])


def cards(rows: Iterable[NetworkRow]) -> Html:
    """What does each network do to the job, and which figures say so?"""
    drawn = [_card(row) for row in rows if row.job.case.network is not None]
    body = tag("div", drawn, class_="cards")
    if len(drawn) <= MOST_OPEN_CARDS:
        return body
    return tag("details", tag("summary", f"{len(drawn)} verdicts with their evidence"), body)


def _card(row: NetworkRow) -> Html:
    network = row.job.case.network
    assert network is not None
    bound = row.verdict.bound.value
    words = row.verdict.sentence.removeprefix(bound).removeprefix(": ")
    evidence = row.verdict.evidence
    workload = f"{row.job.case.workload.name} " if row.has_company else ""
    return tag(
        "article",
        tag("h3", row.network, " ", tag("span", f"{workload}{row.job.case.shape}", class_="faint")),
        tag("p", network.label.removeprefix(f"{network.name}, "), class_="faint"),
        tag("p", tag("span", bound, class_=f"badge {bound}"), " ", words),
        _evidence(evidence) if evidence else "",
        class_=f"card {bound}",
    )


def _evidence(lines: Iterable[str]) -> Html:
    return tag(
        "details",
        tag("summary", "evidence"),
        tag("ul", [tag("li", line) for line in lines]),
    )


def closing_table(rows: tuple[NetworkRow, ...]) -> Html:
    """The table that the terminal shows, too."""
    full = columns(rows)
    launches = shared_launches(rows, full)
    shown = tuple(without_launches(column, launches) for column in full)
    body = [
        tag("tr", [_cell(index, c.title, c.cell(row)) for index, c in enumerate(shown)])
        for row in rows
    ]
    head = tag("tr", [tag("th", column.title, scope="col") for column in shown])
    drawn = tag(
        "div",
        tag("table", tag("thead", head), tag("tbody", body), class_="cards-below"),
        class_="scroll",
    )
    if launches is None:
        return drawn
    return join(drawn, tag("p", launches_sentence(launches), class_="faint"))


def _cell(index: int, title: str, cell: Cell | None) -> Html:
    shown = EMPTY if cell is None else cell
    subs = [tag("span", line, class_="sub") for line in shown.under.split("\n") if line]
    content = join(shown.main, subs)
    if index == 0:
        return tag("th", content, scope="row")
    empty = "empty" if cell is None else None
    return tag("td", content, data_title=title, title=shown.detail or None, class_=empty)


def notes(run: RunSummary, analysis: Analysis, cost: RunCost = NO_COST) -> Html:
    """What must a reader know besides the figures?"""
    all_notes = (*cost_notes(cost), *analysis.notes, *lasting(run.notes))
    return (
        tag("ul", [tag("li", note) for note in all_notes], class_="faint") if all_notes else Html()
    )


def comparisons(
    analysis: Analysis, *, is_imported: bool = False, reference: str = "the fastest network"
) -> Html:
    """How does each network do against the fastest, and each platform against the first?"""
    first = f"Against {'the first label' if is_imported else reference}"
    return join(
        _compared("Against the first platform", analysis.platforms),
        _compared(first, analysis.networks),
    )


def _compared(title: str, rows: Sequence[JudgedRatio]) -> Html:
    if not rows:
        return Html()
    return join(
        tag("h2", title),
        tag(
            "p",
            "Ratios of launches in the same block (mean log-ratio of pairs, 95 % interval), so "
            "that what changed on the machine meanwhile cancels.",
            class_="how",
        ),
        table(
            ("case", "against", "metric", "ratio", "95 % interval", "finding"),
            [_comparison(row) for row in rows],
            class_="text cards-below",
        ),
    )


def _comparison(row: JudgedRatio) -> tuple[str, ...]:
    labels = (row.b, row.a, title_of(row.metric))
    if row.ratio is None or row.verdict is None:
        return (*labels, "–", "–", "; ".join(row.notes))
    return (
        *labels,
        show("speedup_ratio", row.ratio.value),
        interval("speedup_ratio", row.ratio),
        "; ".join((row.verdict.value, *row.notes)),
    )
