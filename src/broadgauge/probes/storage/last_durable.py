"""Which checkpoint on a storage is the last durable one?

A marker beside the checkpoints names it. It is written after the checkpoint was durable, so that a
node lost before leaves the marker of the one before.
"""

import json
import os
from dataclasses import asdict, dataclass
from typing import Any

from broadgauge.probes.storage.durable import fsync_folder
from broadgauge.probes.storage.objects import key_of, open_store
from broadgauge.probes.storage.place import OwnPlace

MARKER = "checkpoints/last_durable.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedCheckpoint:
    """One save, as a line of the artifact of kind `checkpoint_list` says it."""

    name: str
    began_unix_s: float
    stall_s: float
    durable_s: float | None
    """From its begin; None: it isn't known whether it ever was."""
    evidence: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def publish(own: OwnPlace, saved: SavedCheckpoint) -> None:
    """By renaming, or by one request: the marker is whole or the one before. Of a mount's bucket it
    is put there itself, so that it is durable, too."""
    content = json.dumps(saved.as_json()).encode()
    if (bucket := own.objects or own.behind) is not None:
        open_store(bucket).pipe_file(key_of(bucket, MARKER), content)
        return
    path = own.path(MARKER)
    unfinished = path.with_suffix(".incomplete")
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    fsync_folder(path.parent)


def last_durable(own: OwnPlace) -> SavedCheckpoint | None:
    """None: none was published."""
    try:
        if (bucket := own.objects or own.behind) is not None:
            content = open_store(bucket).cat_file(key_of(bucket, MARKER))
        else:
            content = own.path(MARKER).read_bytes()
    except FileNotFoundError:
        return None
    return SavedCheckpoint(**json.loads(content))
