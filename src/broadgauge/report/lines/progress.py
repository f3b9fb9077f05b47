"""What is said of a run while it goes on? One line for what happened, none for what only passes."""

from collections.abc import Iterable, Iterator, Sequence

from broadgauge.engine.events import (
    LaunchEnded,
    Noted,
    PhaseBegan,
    PlanGrown,
    RecordWritten,
    RunEnded,
    RunStarted,
)
from broadgauge.report.lines.opening import machine_lines, plan_lines, refusal_lines
from broadgauge.report.words.quantities import launches_words, show
from broadgauge.results.kinds.registry import in_results
from broadgauge.running.events import (
    MachineRead,
    NodesRefused,
    PlanMade,
    PrepareStepBegins,
    RunEvent,
)
from broadgauge.specs.case import Case
from broadgauge.specs.records.record import Record, Status


class ProgressLines:
    """The lines of one run, in the order of its events. Trials that are skipped one after the other
    for the same reason are one line, and a reason is told once."""

    def __init__(self) -> None:
        self._skipped: list[RecordWritten] = []
        self._told: set[str] = set()

    def of(self, event: RunEvent) -> Iterator[str]:
        """What of an event, and of those skipped before it, stays on the screen."""
        if isinstance(event, RecordWritten) and event.record.status is Status.SKIPPED:
            self._skipped.append(event)
            return
        lines = tuple(event_lines(event))
        if lines or isinstance(event, RunEnded):
            yield from self.rest()
        yield from lines

    def rest(self) -> Iterator[str]:
        """Those skipped since the last line."""
        groups: dict[str, list[RecordWritten]] = {}
        for event in self._skipped:
            groups.setdefault(_why(event.record), []).append(event)
        self._skipped = []
        for reason, events in groups.items():
            yield _skipped_line(events, "as before" if reason in self._told else reason)
            self._told.add(reason)


def _why(record: Record) -> str:
    return "" if record.error is None else record.error.headline


def _skipped_line(events: Sequence[RecordWritten], reason: str) -> str:
    """`[12/12] train 2x1 slow, train 2x1 fast: SKIPPED 8 trials, not run, since …`."""
    last = events[-1]
    labels = ", ".join(dict.fromkeys(event.case.label for event in events))
    count = "" if len(events) == 1 else f"{len(events)} trials, "
    return f"[{last.num_finished}/{last.num_trials}] {labels}: SKIPPED {count}{reason}"


def event_lines(event: RunEvent) -> Iterable[str]:
    """What of an event stays on the screen."""
    match event:
        case MachineRead():
            return machine_lines(event.machine)
        case NodesRefused():
            return refusal_lines(event.machine)
        case PlanMade():
            return plan_lines(event.experiment, event.plan)
        case PrepareStepBegins():
            return (f"prepare    {event.workload}: {' '.join(event.command)}",)
        case PhaseBegan(phase="waiting"):
            return (f"waiting    {event.detail}",)
    return _lines_while_running(event)


def _lines_while_running(event: RunEvent) -> Iterable[str]:
    match event:
        case RunStarted():
            notes = [f"note       {note}" for note in event.notes]
            done = f", {event.num_finished} of {event.num_trials} trials are there already"
            resumed = done if event.num_finished else ""
            return [*notes, f"run        {event.location}{resumed}"]
        case RecordWritten():
            place = f"[{event.num_finished}/{event.num_trials}]"
            return [f"{place} {event.case.label}: {outcome(event.case, event.record)}"]
        case LaunchEnded() if event.reason is not None:
            return [f"launch {event.launch_id} ended early: {event.reason}"]
        case PlanGrown():
            return [f"more       {launches_words(event.num_launches)}: {event.reason}"]
        case Noted():
            return [f"note       {event.text}"]
        case _:
            return []


def outcome(case: Case, record: Record) -> str:
    """`step 612 ms`, or what went wrong."""
    if record.status is not Status.OK:
        return f"{record.status.upper()} {record.error.message if record.error else ''}".rstrip()
    for name in (*in_results(case.workload).headline_metrics, *record.metrics):
        value = record.metrics.get(name)
        if value is not None:
            return (
                f"{name.rsplit('_', 1)[0].split('_gbyte')[0].replace('_', ' ')} {show(name, value)}"
            )
    return "ok"
