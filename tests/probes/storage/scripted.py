"""Plays a trial of one rank in this process: no agent, no process group."""

import hashlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from broadgauge.messages.rank import MarkReached, TrialCommand
from broadgauge.messages.storage import (
    ObjectPlace,
    StorageBlock,
    StoragePlace,
    StorageProblem,
    StorageTask,
)
from broadgauge.messages.tasks import RankLayout
from broadgauge.messages.vocabulary import Phase
from broadgauge.probes.devices import CpuDevice
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.storage import objects
from broadgauge.probes.storage.probe import measure_storage
from broadgauge.probes.trial import Trial

IDENTITY = RankIdentity(
    rank=0,
    world_size=1,
    local_rank=0,
    local_world_size=1,
    node=0,
    master_addr="127.0.0.1",
    master_port=1,
)
LAYOUT = RankLayout(nodes=1, ranks_per_node=1, device="cpu", backend="gloo")
MOST_BYTES = 64 * 2**20


@dataclass
class Said:
    """A channel that answers every mark at once."""

    messages: list[Any] = field(default_factory=list)

    def send(self, message: Any) -> None:
        self.messages.append(message)

    def wait_for_release(self, label: str) -> None:
        assert self.messages[-1].label == label

    @property
    def blocks(self) -> list[StorageBlock]:
        return [message for message in self.messages if isinstance(message, StorageBlock)]

    @property
    def problems(self) -> list[StorageProblem]:
        return [message for message in self.messages if isinstance(message, StorageProblem)]

    @property
    def marks(self) -> list[str]:
        return [each.label for each in self.messages if isinstance(each, MarkReached)]


def command_of(
    task: StorageTask, layout: RankLayout = LAYOUT, limit_s: float = 60, trial_id: str = "t0"
) -> TrialCommand:
    return TrialCommand(
        trial_id=trial_id,
        task=task,
        layout=layout,
        seed=1,
        process_group_timeouts_s=dict.fromkeys(Phase, limit_s),
    )


def measure(place: StoragePlace, *, limit_s: float = 60, **plans: Any) -> Said:
    """`plans`: of the phases, and whatever else of the task."""
    said: Any = Said()
    task = StorageTask(place=place, **{"caches": ("cold",), "most_bytes": MOST_BYTES, **plans})
    trial = Trial(command=command_of(task, limit_s=limit_s), identity=IDENTITY, channel=said)
    measure_storage(trial, task, CpuDevice())
    found: Said = said
    return found


def on(folder: Path, **known: Any) -> StoragePlace:
    return StoragePlace(name="here", folder=str(folder), **known)


BUCKET = ObjectPlace(bucket="bucket", prefix="data")
IN_BUCKET = StoragePlace(name="bucket", objects=BUCKET, is_shared=True)


class Store:
    """An object store in memory, as much of fsspec's file system as the probe asks for."""

    def __init__(self) -> None:
        self.memory = MemoryFileSystem(skip_instance_cache=True)
        self.memory.store = {}  # its own, not the class's
        self.memory.pseudo_dirs = ["", "/bucket"]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.memory, name)

    def info(self, key: str, **_: Any) -> Any:
        return self.memory.info(key)

    def names(self) -> list[str]:
        return sorted(self.memory.store)


class BehindMount(Store):
    """What a mounted folder shows, each file only so long after it was first asked for.

    `checksum`: of each object as its ETag; None: its real one.
    """

    def __init__(self, mounted: Path, lag_s: float, checksum: str | None = None) -> None:
        super().__init__()
        self.mounted, self.lag_s, self.checksum = mounted, lag_s, checksum
        self.first_asked_s: dict[str, float] = {}

    def info(self, key: str, **_: Any) -> Any:
        file = self.mounted / key.removeprefix("bucket/data/")
        asked_s = self.first_asked_s.setdefault(key, time.monotonic())
        if not file.exists() or time.monotonic() < asked_s + self.lag_s:
            raise FileNotFoundError(key)
        content = file.read_bytes()
        etag = self.checksum or hashlib.md5(content).hexdigest()
        return {"type": "file", "size": len(content), "ETag": f'"{etag}"'}


def plant(monkeypatch: pytest.MonkeyPatch, store: Store) -> Store:
    """In the place of Amazon's."""
    monkeypatch.setitem(objects._stores, (os.getpid(), None), store)
    return store
