"""Where does a user's command read and write? Its placeholders get the storage's folders or URLs.

The folders are made where they are not there yet, and left: what a command writes is its user's.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from broadgauge.messages.storage import StoragePlace
from broadgauge.messages.storage_words import (
    UnknownPlaceholderError,
    filled,
    part_of,
    placeholders,
)
from broadgauge.messages.tasks import CommandTask
from broadgauge.probes.trial import RefusedError


def placed(
    task: CommandTask, variables: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[CommandTask, Mapping[str, str]]:
    """The task and its variables, which win over `environment`, with every placeholder filled in.

    Raises RefusedError for one that is unknown, or that has no storage.
    """
    given = {**environment, **variables}
    meant = {name: value for name, value in given.items() if placeholders(value)}
    texts = (*task.command, *meant.values())
    wanted = dict.fromkeys(name for text in texts for name in placeholders(text))
    if not wanted:
        return task, variables
    place = task.storage
    if place is None:
        raise RefusedError(
            f"`{{storage.{next(iter(wanted))}}}` is of a storage, and this workload has none: "
            "`storages: [NAME]` in its entry"
        )
    try:
        _make_folders(place, tuple(wanted))
        words = tuple(filled(word, place) for word in task.command)
        values = {name: filled(value, place) for name, value in meant.items()}
    except UnknownPlaceholderError as error:
        raise RefusedError(str(error)) from error
    return replace(task, command=words), {**variables, **values}


def _make_folders(place: StoragePlace, names: tuple[str, ...]) -> None:
    if place.folder is None:
        return
    for folder in (Path(part_of(place, name)) for name in names):
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            why = error.strerror or str(error)
            raise RefusedError(f"storage {place.name}: {folder} can't be made: {why}") from error
