"""A run on three storages, made up: a local disk, a shared file system, and a mount whose fsync
promises nothing. Written by the real engine and merger."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.engine.fake_platform import FakeClock, FakeLaunch, FakePlatform, services
from tests.engine.making import a_plan, make_folder
from tests.merging.outcomes import outcome
from tests.merging.storage_blocks import COLD, UNKNOWN, WARM, block, problem

from broadgauge.engine.run import run
from broadgauge.messages.rank import Block
from broadgauge.messages.storage import CacheProof
from broadgauge.specs.case import Case
from broadgauge.specs.launching import LaunchRequest, TrialOutcome, TrialProgress, TrialRequest

STORAGES: list[dict[str, Any]] = [
    {"name": "nvme", "path": "/mnt/nvme"},
    {"name": "shared", "path": "/mnt/shared", "is_durable": True},
    {"name": "cached", "path": "/mnt/cached", "object_url": "s3://bucket/runs"},
]
READ_S = {"nvme": 0.2, "shared": 0.3, "cached": 2.0}
"""Of 1 GB by plain reads; writes take as long."""
SERIALISE_S = 1.4


def sample_folder(parent: Path, *, launches: int = 3, failing: str | None = None) -> Path:
    """The finished run's folder; `failing`: the storage on which no save works."""
    phases = {"kind": "storage", "name": "phases"}
    shapes = {"shapes": ["1x2"]}
    plan = a_plan(
        name="storages",
        workloads=[phases],
        storages=STORAGES,
        networks=[],
        cluster=shapes,
        launches=launches,
    )
    clock = FakeClock()
    with make_folder(parent, plan) as folder:
        run(plan, _Platform(clock, failing), folder, services(clock))
        return folder.path


class _Platform(FakePlatform):
    def __init__(self, clock: FakeClock, failing: str | None) -> None:
        super().__init__(clock)
        self.failing = failing

    def start(self, request: LaunchRequest, progress: TrialProgress) -> "_Launch":
        return _Launch(self, super().start(request, progress).request, self.failing)


class _Launch(FakeLaunch):
    def __init__(self, platform: FakePlatform, request: LaunchRequest, failing: str | None) -> None:
        super().__init__(platform, request)
        self._failing = failing

    def run_trial(self, request: TrialRequest, progress: TrialProgress) -> TrialOutcome:
        del progress
        self._platform.clock.advance(60.0)
        drawn = random.Random(request.trial_id)
        return outcome(
            [
                [*_said(request.case, drawn, can_save=self._failing)]
                for _ in range(request.case.world_size)
            ]
        )


def _said(case: Case, drawn: random.Random, *, can_save: str | None) -> Iterator[Block]:
    assert case.storage is not None
    name = case.storage.name
    factor = drawn.uniform(0.97, 1.03)
    plain_s = READ_S[name] * factor
    cold: CacheProof = UNKNOWN if name == "cached" else COLD
    gigabyte = 10**9
    yield block("raw", "write", num_bytes=gigabyte, stall_s=plain_s, busy_s=plain_s)
    times_s = tuple(drawn.uniform(1e-4, 3e-4) for _ in range(300))
    for asked, proof, speed in (("cold", cold, 1.0), ("warm", WARM, 0.1)):
        state = {"asked_cache": asked, "cache": proof}
        read_s = speed * plain_s
        yield block("raw", "read", num_bytes=gigabyte, stall_s=read_s, busy_s=read_s, **state)
        yield block(
            "raw", "random-read", operations=300, operation_s=times_s, stall_s=read_s, **state
        )
        yield block(
            "batch_loading",
            "files",
            samples=100,
            stall_s=0.5 * read_s,
            busy_s=read_s,
            step_stalls_s=(0.3 * read_s, 0.2 * read_s),
            **state,
        )
        yield block(
            "model_loading",
            "safetensors, every-rank",
            num_bytes=gigabyte,
            stall_s=1.2 * read_s,
            busy_s=1.2 * read_s,
            parts_s={"read": read_s, "deserialise": 0.2 * read_s},
            **state,
        )
    if name == can_save:
        yield problem("checkpoint_saving", "torch, sharded", "No space left on device")
        return
    is_cached = name == "cached"
    stall_s = factor * SERIALISE_S + (0.1 if is_cached else plain_s)
    yield block(
        "checkpoint_saving",
        "torch, sharded",
        num_bytes=gigabyte,
        stall_s=stall_s,
        busy_s=stall_s,
        durable_s=stall_s + (15 * plain_s if is_cached else 0.0),
        durable_evidence="object there, 1000000000 bytes, checksum agrees"
        if is_cached
        else "file and folder fsynced",
        parts_s={"serialise": factor * SERIALISE_S, "write": 0.1 if is_cached else plain_s},
    )
