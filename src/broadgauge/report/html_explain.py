"""How is an explanation passed on? As one HTML file: bars, a timeline to zoom, collectives."""

from collections.abc import Iterator, Sequence

from broadgauge.report.charts_traced import COLOURS
from broadgauge.report.explanation_words import (
    PART_WORDS,
    beside_words,
    collective_rows,
    off_words,
    opening_words,
    probe_words,
)
from broadgauge.report.html import whole_page
from broadgauge.report.markup import Html, table, tag
from broadgauge.report.timeline_picture import timeline_figure
from broadgauge.results.measured_beside import MeasuredBeside
from broadgauge.specs.units import show_ratio, show_time
from broadgauge.traces.explanation import StepPart, TraceExplanation
from broadgauge.traces.timeline import timeline_of

MOST_PIECES = 60_000
"""Of all timelines of the page: some 1 MB."""
MOST_COLLECTIVES = 100


Job = tuple[str, TraceExplanation, MeasuredBeside]
"""Its title, what its traces say, and what was measured beside them."""


def render(jobs: Sequence[Job]) -> str:
    """The page, a section a job. The same explanations give the same bytes."""
    sections = [tag("h1", "Where a step's time goes")]
    for job in jobs:
        sections += _job(job, MOST_PIECES // len(jobs))
    return whole_page("Explanation", sections, None)


def _job(job: Job, most_pieces: int) -> Iterator[Html]:
    title, found, beside = job
    yield tag("h2", title)
    yield tag("p", opening_words(found), class_="headline")
    yield _parts(found)
    yield from (tag("p", words) for words in beside_words(found))
    yield from (tag("p", words) for words in off_words(found, beside))
    yield from (tag("p", note, class_="faint") for note in found.notes)
    timeline = timeline_of(found)
    yield timeline_figure(timeline, "When each rank did what", most_pieces=most_pieces)
    if found.collectives:
        head, rows = collective_rows(found.collectives[:MOST_COLLECTIVES], beside.probe)
        yield tag("h3", "Collectives")
        yield table(head, rows, class_="cards-below")
        yield from (tag("p", words, class_="faint") for words in probe_words(beside))


def _parts(found: TraceExplanation) -> Html:
    """One row a part: its name, its time, its share, a bar."""
    parts = found.parts_s()
    rows = []
    for part in StepPart:
        time_s = parts[part]
        if time_s:
            ratio = time_s / found.step_time_s
            style = f"width:{100 * ratio:.2f}%;background:{COLOURS[part]}"
            bar = tag("div", class_="bar", style=style)
            rows.append((PART_WORDS[part], show_time(time_s), show_ratio(ratio, 2), bar))
    return table(("part", "time", "share", ""), rows, class_="shares")
