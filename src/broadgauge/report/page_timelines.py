"""What did each rank of the traced trials do when, on the page?"""

from broadgauge.report.markup import Html, join, tag
from broadgauge.report.timeline_picture import MOST_DRAWN_PIECES, timeline_figure
from broadgauge.results.folder.series import read_series
from broadgauge.results.model import RunSummary
from broadgauge.results.traced_cases import TracedCase, traced_cases
from broadgauge.specs.errors import RunFolderError
from broadgauge.specs.traced_steps import TIMELINE_SERIES
from broadgauge.traces.timeline import TracedTimeline, timeline_from_rows

MOST_CASES = 8
"""A page has so many; `explain RUN --html FILE` has all."""
TITLE = "When each rank did what"


def timelines(run: RunSummary) -> Html:
    """One a traced case; nothing where none was kept, as before there were any."""
    found = [(case, timeline) for case in traced_cases(run) if (timeline := _read(run, case))]
    shown = found[:MOST_CASES]
    if not shown:
        return Html()
    most = MOST_DRAWN_PIECES // len(shown)
    left = len(found) - len(shown)
    return join(
        tag("h2", TITLE),
        [
            timeline_figure(
                timeline, f"{case.summary.case.label}, trial {case.record.record_id}",
                most_pieces=most,
            )
            for case, timeline in shown
        ],
        tag("p", f"{left} more cases: broadgauge explain {run.folder.name} --html FILE")
        if left
        else "",
    )  # fmt: skip


def _read(run: RunSummary, case: TracedCase) -> TracedTimeline | None:
    """None: not kept, lost, or of another version; the page does without."""
    try:
        rows = read_series(run.folder, case.record, TIMELINE_SERIES)
    except RunFolderError:
        return None
    if rows is None:
        return None
    shown = len({*rows[:, 0].tolist()}) if rows.ndim == 2 and rows.shape[1] else 0
    return timeline_from_rows(rows, num_left_out=max(0, case.traced.traces_count - shown))
