"""Makes the files of every phase where they have no room: on a full disk, and below a quota.

`unshare -rm python -m tests.probes.storage.full_disk tmpfs FOLDER` prints JSON: what was raised, by
way of making, and what is left there; at last of a file system that is read-only. `btrfs` in its
place has a quota and takes root: `unshare -m`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from tests.probes.storage.btrfs_image import limited_folder
from tests.probes.storage.test_batches import phase_of
from tests.probes.storage.test_loading import loader_of
from tests.probes.storage.test_loading import phase as load_phase
from tests.probes.storage.test_saving import phase as checkpoint_phase
from tests.probes.storage.test_saving import saver_of

from broadgauge.messages.storage import BatchSource, ModelFormat
from broadgauge.probes.devices import CpuDevice
from broadgauge.probes.failures import describe_failure
from broadgauge.probes.storage.batch_files import write_samples
from broadgauge.probes.storage.distributed_loading import DistributedLoader
from broadgauge.probes.storage.held_model import RandomBits, empty_model
from broadgauge.probes.storage.own_folder import own_folder
from broadgauge.probes.storage.raw_files import random_requests, write_file
from broadgauge.specs.workloads.workload import GptModel

SIZE, ROOM = 80 << 20, 1 << 20
SHAPE = GptModel(layers=4, hidden=128, heads=2).shape


def main(kind: str, place: Path) -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    if kind == "btrfs":
        mounted = place / "mounted"
        mounted.mkdir()
        storage = limited_folder(place / "image", mounted, ROOM)
    else:
        storage = place
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "small", place], check=True)
    theirs = storage / "theirs"
    theirs.touch()
    said = {}
    for name, make in makers().items():
        said[name] = told(storage, make, fill=theirs if kind == "tmpfs" else None)
    if kind == "tmpfs":
        subprocess.run(["mount", "-o", "remount,ro", storage], check=True)
        said["read-only"] = told(storage, _raw, fill=None)
    left = sorted(path.name for path in storage.iterdir())
    sys.stdout.write(json.dumps({"said": said, "left": left}))


def makers() -> Mapping[str, Callable[[Path], object]]:
    """By phase and way: into an empty folder, more than there is room for."""
    saves: tuple[ModelFormat, ...] = ("torch", "safetensors", "distributed")
    models: tuple[ModelFormat, ...] = ("safetensors", "torch")
    sources: tuple[BatchSource, ...] = ("jsonl", "files", "arrow", "webdataset")
    return {
        "raw": _raw,
        **{f"checkpoint {kind}": partial(_checkpoint, kind) for kind in saves},
        "checkpoint process": partial(_checkpoint, "distributed", background="process"),
        **{f"load {kind}": partial(_model, kind) for kind in models},
        "load distributed": _distributed_model,
        **{f"batches {source}": partial(_batches, source) for source in sources},
    }


def _raw(folder: Path) -> None:
    write_file(folder / "raw", random_requests(8 * ROOM, ROOM), is_direct=False)


def _checkpoint(kind: ModelFormat, folder: Path, **more: Any) -> None:
    asked = checkpoint_phase(kind, model=SHAPE, files_bytes=12 * SHAPE.parameters, **more)
    with closing(saver_of(asked)) as saver:
        saver.save(folder)


def _model(kind: ModelFormat, folder: Path) -> None:
    loader_of(load_phase(kind, model=SHAPE)).write(folder, is_writer=True)


def _distributed_model(folder: Path) -> None:
    asked, device = load_phase("distributed", model=SHAPE), CpuDevice()
    model = empty_model(SHAPE, torch.bfloat16, device, is_sharded=True)
    loader = DistributedLoader(model, asked, device, RandomBits(7), dist.group.WORLD)
    loader.write(folder, is_writer=True)


def _batches(source: BatchSource, folder: Path) -> None:
    write_samples(folder, phase_of(source, samples=512, sample_size="16 KiB"), readers=2)


def told(storage: Path, make: Callable[[Path], object], fill: Path | None) -> list[str]:
    """The kind of the failure, and its words. `fill`: a file that takes most of the room as soon as
    free space was looked at."""
    if fill is not None:
        os.truncate(fill, 0)
    try:
        with own_folder(storage, "rank0", needed_bytes=ROOM) as folder:
            if fill is not None:
                _fill(fill)
            make(folder)
    except BaseException as error:  # noqa: BLE001  a CheckpointException is one: it is told
        failed = describe_failure("t", error)
        return [failed.kind.value, failed.message]
    return ["ok", ""]


def _fill(path: Path) -> None:
    status = os.statvfs(path)
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, status.f_bavail * status.f_frsize - ROOM)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
