"""What did the author expect, what did others publish, and what did this run measure?"""

from broadgauge.analysis.model import Analysis, JudgedHypothesis, JudgedPublished
from broadgauge.report.page.markup import Content, Html, join, table, tag, with_sub_lines
from broadgauge.report.words.claims import (
    ANSWER_HEAD,
    PUBLISHED_HEAD,
    answer_cells,
    claim,
    published_cells,
    published_source,
)
from broadgauge.results.comparing.hypotheses import HypothesisVerdict

CLASSES = {
    HypothesisVerdict.SUPPORTED: "supported",
    HypothesisVerdict.REFUTED: "refuted",
    HypothesisVerdict.CANNOT_TELL: "unknown",
}


def hypotheses(analysis: Analysis) -> Html:
    """A card a hypothesis: the statement, the verdict, the figures, and the caveats."""
    if not analysis.hypotheses:
        return Html()
    return join(
        tag("h2", "Hypotheses"),
        tag(
            "p",
            "Supported: the 95 % interval over launches lies within the bounds in every case. "
            "Refuted: it lies outside of them in one, at a confidence that allows for the number "
            "of cases. Can't tell: neither.",
            class_="how",
        ),
        [_hypothesis(result) for result in analysis.hypotheses],
    )


def _hypothesis(result: JudgedHypothesis) -> Html:
    verdict = result.verdict
    rows = [answer_cells(result, answer) for answer in result.answers]
    return tag(
        "article",
        tag(
            "h3",
            tag("span", verdict.value, class_=f"badge {CLASSES[verdict]}"),
            " ",
            result.hypothesis.statement,
        ),
        tag(
            "p",
            f"{result.hypothesis.name}: {claim(result.hypothesis)}",
            f" · {result.reason}" if result.reason else "",
            class_="faint",
        ),
        table(ANSWER_HEAD, rows, class_="text cards-below") if rows else "",
        _caveats(result.caveats),
        class_=f"card claim {CLASSES[verdict]}",
    )


def _caveats(lines: tuple[str, ...]) -> Content:
    if not lines:
        return ""
    items = [tag("li", line) for line in lines]
    if len(lines) > 3:
        return tag("details", tag("summary", f"{len(lines)} caveats"), tag("ul", items))
    return join(tag("p", "Caveats:", class_="faint"), tag("ul", items))


def published(analysis: Analysis) -> Html:
    """Their figures beside ours."""
    rows = analysis.published
    if not rows:
        return Html()
    return join(
        tag("h2", "Published figures beside ours"),
        tag(
            "p",
            "Scales differ, so the last column is the one to compare: each figure over the first "
            "of the same metric, theirs and ours (ours by interleaved pairs).",
            class_="how",
        ),
        table(PUBLISHED_HEAD, [_published(row) for row in rows], class_="text cards-below"),
    )


def _published(row: JudgedPublished) -> list[Content]:
    label, *cells = published_cells(row)
    first = join(label, tag("span", published_source(row), class_="sub wrapped"))
    return [first, *(with_sub_lines(_unbroken(cell)) for cell in cells)]


def _unbroken(cell: str) -> str:
    """Figures keep their units beside them; words may wrap."""
    return cell if cell.startswith("none: ") else cell.replace(" ", "\u00a0")
