"""How are predictions passed on? As one HTML file: a table, and two plots."""

from collections.abc import Iterator, Sequence

from broadgauge.advise.recommendations.recommendation import Recommendation
from broadgauge.predict.answering.answers import Answer, Answers
from broadgauge.report.page.charts import figure
from broadgauge.report.page.html import LARGEST_PAGE_BYTES, whole_page
from broadgauge.report.page.markup import Content, Html, join, table, tag
from broadgauge.report.page.vega_runtime import runtime
from broadgauge.report.predict.charts import step_by_bandwidth, throughput_by_nodes
from broadgauge.report.predict.network_marks import marks_of
from broadgauge.report.predict.words import (
    NEAREST_WORDS,
    NOTHING,
    above_floor,
    bottleneck,
    common_words,
    curve_titles,
    exposed_words,
    fitting_first,
    knee_words,
    label_words,
    limits,
    memory_words,
    show_gib,
    show_interval,
    tokens_words,
    with_nearest,
)
from broadgauge.report.words.cost import tokens_title, usd_words, whole_cells
from broadgauge.specs.units import show_ratio, show_time

HEAD = (
    *("case", "step, 80 % interval", "tokens/s", "MFU", "scaling", "exposed comm."),
    *("memory a GPU", "bottleneck", "$/10⁹ tokens"),
)
MOST_UNBROKEN = 22
"""Characters of a case's name, or of a part of it, that are kept on one line."""
ON_PHONES = "cards-below predicted"
"""Each row becomes a card there; where a table is wider than its place, its cases stay in sight."""

TRAINING_HEAD = ("case", "time", "80 % interval", "cost", "80 % interval")
MEMORY_HEAD = (
    *("case", "parameters", "gradients", "optimizer", "activations", "buffers", "margin"),
    "of the GPU's",
)


def render(
    answers: Answers,
    assumed: Sequence[str],
    notes: Sequence[str],
    found: Sequence[Recommendation] = (),
) -> str:
    """The page. The same answers give the same bytes."""
    script = runtime()
    page = _page(answers, assumed, notes, found, script)
    if script is not None and len(page.encode()) > LARGEST_PAGE_BYTES:
        return _page(answers, assumed, notes, found, None)
    return page


def _page(
    answers: Answers,
    assumed: Sequence[str],
    notes: Sequence[str],
    found: Sequence[Recommendation],
    script: str | None,
) -> str:
    num_asked = len(answers.answers)
    shown = [*with_nearest(fitting_first(answers.answers), answers.over)]
    sections = [
        tag(
            "header",
            tag("h1", "Prediction"),
            tag("p", common_words(answers)),
            tag("p", f"Assumed: {'; '.join(assumed)}.", class_="faint") if assumed else "",
            _cut(answers),
        ),
        *(tag("p", f"{words}.") for words in limits(answers.answers)),
        table(HEAD, [table_row(answer) for answer in shown], class_=ON_PHONES),
        *([tag("p", f"{NEAREST_WORDS}.", class_="faint")] if len(shown) > num_asked else []),
        *training_table(shown),
        tag("h2", "Pictures"),
        tag("section", list(_figures(answers, is_interactive=script is not None)), class_="charts"),
        *_advice(found),
        tag("h2", "Memory of the fullest GPU"),
        table(MEMORY_HEAD, [_memory(answer) for answer in shown], class_=ON_PHONES),
        *(tag("p", f"Note: {note}", class_="faint") for note in notes),
    ]
    return whole_page("Prediction", sections, script)


def _advice(found: Sequence[Recommendation]) -> Iterator[Html]:
    """What follows, each with its arithmetic to open and its cautions in sight."""
    if found:
        yield tag("h2", "What follows")
    for each in found:
        cautions = [tag("p", f"{caution}.", class_="faint") for caution in each.cautions]
        lines = [tag("li", line) for line in each.arithmetic]
        yield tag("details", tag("summary", f"{each.words}."), tag("ul", lines))
        yield from cautions


def _cut(answers: Answers) -> Html | str:
    if answers.num_cases == len(answers.answers):
        return ""
    words = f"The {len(answers.answers)} best of {answers.num_cases:,} cases."
    return tag("p", words, class_="faint")


def table_row(answer: Answer) -> tuple[Content, ...]:
    prediction = answer.prediction
    scaling = answer.scaling_ratio
    fits, _, held = memory_words(prediction.memory).partition(", ")
    return (
        _case(answer),
        _with_sub(show_time(prediction.step_time_s.value), show_interval(prediction.step_time_s)),
        tokens_words(answer),
        show_ratio(prediction.mfu_ratio, 2),
        NOTHING if scaling is None else show_ratio(scaling, 2),
        _with_sub(*exposed_words(answer)),
        _with_sub(fits, held),
        bottleneck(answer),
        usd_words(answer.usd_per_gigatoken) if prediction.memory.is_fitting else NOTHING,
    )


def _case(answer: Answer) -> Html:
    """What tells it from the others; lines break between its parts, not at a name's hyphens."""
    words = label_words(answer)
    parts = [words] if len(words) <= MOST_UNBROKEN else words.split(", ")
    drawn = [
        tag("span", part, class_="part" if len(part) <= MOST_UNBROKEN else None) for part in parts
    ]
    return join(drawn[0], [piece for part in drawn[1:] for piece in (", ", part)])


def _with_sub(main: str, sub: str) -> Html:
    """The second in small letters below."""
    return join(main, " ", tag("span", sub, class_="sub")) if sub else join(main)


def training_table(shown: Sequence[Answer]) -> Iterator[Html]:
    """Time and cost of a whole training, where its tokens were said."""
    wholes = [
        (_case(each), each.whole)
        for each in shown
        if each.whole is not None and each.prediction.memory.is_fitting
    ]
    if not wholes:
        return
    yield tag("h2", f"A training of {tokens_title(wholes[0][1].tokens_count)}")
    rows = [(label, *whole_cells(whole)) for label, whole in wholes]
    yield table(TRAINING_HEAD, rows, class_=ON_PHONES)


def _memory(answer: Answer) -> tuple[Content, ...]:
    use = answer.prediction.memory
    parts = (
        *(use.parameters_bytes, use.gradients_bytes, use.optimizer_bytes),
        *(use.activations_bytes, use.buffers_bytes, use.margin_bytes),
    )
    return (_case(answer), *map(show_gib, parts), memory_words(use))


def _figures(answers: Answers, *, is_interactive: bool) -> Iterator[Html]:
    throughput = throughput_by_nodes(answers.answers)
    if throughput is not None:
        yield figure(
            "chart-throughput",
            "Throughput by nodes",
            "Tokens a second of all GPUs; the band is the 80 % interval.",
            throughput,
            is_interactive=is_interactive,
        )
    titles = curve_titles(answers)
    marks = [marks_of(curve, answers.answers) for curve in answers.curves]
    bandwidth = step_by_bandwidth(answers.curves, titles, marks)
    if bandwidth is not None:
        knees = " ".join(
            f"{title}: {knee_words(curve)}; {above_floor(answers, curve)}."
            for title, curve in zip(titles, answers.curves, strict=True)
        )
        yield figure(
            "chart-bandwidth",
            "Step time by bandwidth",
            f"A point is what a network carries. Dashed: the knee. {knees}",
            bandwidth,
            is_interactive=is_interactive,
        )
