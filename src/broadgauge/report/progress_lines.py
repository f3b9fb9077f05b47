"""What is said of a run while it goes on? One line for what happened, none for what only passes."""

from collections.abc import Iterable

from broadgauge.engine.events import (
    LaunchEnded,
    Noted,
    PhaseBegan,
    PlanGrown,
    RecordWritten,
    RunStarted,
)
from broadgauge.report.opening import machine_lines, plan_lines, refusal_lines
from broadgauge.report.quantities import launches_words, show
from broadgauge.running.events import (
    MachineRead,
    NodesRefused,
    PlanMade,
    PrepareStepBegins,
    RunEvent,
)
from broadgauge.specs.record import Record, Status

HEADLINES = ("step_time_s", "busbw_gbyte_per_s")
"""The metric that a line about a finished trial shows: the first that it has."""


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
            return [f"{place} {event.case.label}: {outcome(event.record)}"]
        case LaunchEnded() if event.reason is not None:
            return [f"launch {event.launch_id} ended early: {event.reason}"]
        case PlanGrown():
            return [f"more       {launches_words(event.num_launches)}: {event.reason}"]
        case Noted():
            return [f"note       {event.text}"]
        case _:
            return []


def outcome(record: Record) -> str:
    """`step 612 ms`, or what went wrong."""
    if record.status is not Status.OK:
        return f"{record.status.upper()} {record.error.message if record.error else ''}".rstrip()
    wanted = [*HEADLINES, *(metric for metric in record.metrics if metric not in HEADLINES)]
    for name in wanted:
        value = record.metrics.get(name)
        if value is not None:
            return (
                f"{name.rsplit('_', 1)[0].split('_gbyte')[0].replace('_', ' ')} {show(name, value)}"
            )
    return "ok"
