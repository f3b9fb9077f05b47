"""Which numbers did the command leave in files? Looked for once it has ended.

Runs of a launch write into one folder, so that what was there before counts for nothing: a file
is read if it is new, or changed, since the command began.
"""

import json
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from broadgauge.messages.tasks import MetricSource
from broadgauge.probes.event_files import EventFileError, scalars

TRAINER_STATE = "trainer_state.json"
"""Source: transformers, trainer.py, `TRAINER_STATE_NAME`; in each `checkpoint-N`."""
EVENT_FILES = "events.out.tfevents.*"
"""Source: tensorboard, summary/writer/event_file_writer.py."""
MOST_STATE_BYTES = 64 << 20
MOST_FILES = 1000

Seen = Mapping[Path, tuple[int, int]]
"""Time of the last change in ns, and size, by file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNumbers:
    values: tuple[float, ...] = ()
    why: str | None = None
    """What kept it from reading on, or at all."""


def seen_before(metrics: tuple[MetricSource, ...], folder: Path) -> Seen:
    """What lies there as the command begins."""
    return {path: mark for metric in metrics for path, mark in _files(metric, folder)}


def numbers_left(metric: MetricSource, folder: Path, before: Seen) -> FoundNumbers:
    """Of a metric that has a `file`; in the order in which they were logged. Never raises."""
    fresh = [path for path, mark in _files(metric, folder) if before.get(path) != mark]
    if not fresh:
        what = TRAINER_STATE if metric.trainer_state is not None else EVENT_FILES
        return FoundNumbers(why=f"the command has written no {what} in {metric.file}")
    if metric.tensorboard is not None:
        return _of_events(metric, fresh)
    # The last checkpoint's has what the ones before it have.
    newest = max(fresh, key=lambda path: path.stat().st_mtime_ns if path.exists() else 0)
    return _of_state(metric, newest)


def _files(metric: MetricSource, folder: Path) -> Iterator[tuple[Path, tuple[int, int]]]:
    if metric.file is None:
        return
    place = folder / metric.file
    try:
        if not place.is_dir():
            paths = [place]
        elif metric.tensorboard is not None:
            paths = sorted(islice(place.rglob(EVENT_FILES), MOST_FILES))
        else:
            below = place.glob(f"checkpoint-*/{TRAINER_STATE}")
            paths = [place / TRAINER_STATE, *islice(below, MOST_FILES)]
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return
    for path in paths:
        try:
            status = path.stat()
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(status.st_mode):  # a pipe would be waited for
            yield path, (status.st_mtime_ns, status.st_size)


def _of_events(metric: MetricSource, paths: list[Path]) -> FoundNumbers:
    assert metric.tag is not None
    found: list[tuple[float, float]] = []
    why = None
    for path in paths:
        try:
            for pair in scalars(path, metric.tag):
                found.append(pair)
        except (EventFileError, OSError) as error:
            why = f"{path.name} {error}"
    if not found and why is None:
        why = f"no scalar `{metric.tag}` in {len(paths)} event file(s) of {metric.file}"
    found.sort(key=lambda pair: pair[0])
    return FoundNumbers(values=tuple(value for _, value in found), why=why)


def _of_state(metric: MetricSource, path: Path) -> FoundNumbers:
    assert metric.key is not None
    where = f"{path.parent.name}/{path.name}"
    try:
        if path.stat().st_size > MOST_STATE_BYTES:
            return FoundNumbers(why=f"{where} is larger than {MOST_STATE_BYTES >> 20} MiB")
        state = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        return FoundNumbers(why=f"{where} is no JSON that can be read: {error}")
    history = state.get("log_history") if isinstance(state, dict) else None
    if not isinstance(history, list):
        return FoundNumbers(why=f"{where} has no list `log_history`")
    numbers = [each.get(metric.key) for each in history if isinstance(each, dict)]
    values = [
        _as_float(number)
        for number in numbers
        if isinstance(number, int | float) and not isinstance(number, bool)
    ]
    why = None if values else f"no entry of log_history in {where} has a number `{metric.key}`"
    return FoundNumbers(values=tuple(values), why=why)


def _as_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf")
