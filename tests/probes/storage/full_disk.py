"""Fills a small file system while a checkpoint is saved, and makes it read-only.

`unshare -rm python -m tests.probes.storage.full_disk FOLDER FORMAT` prints JSON: what was raised,
and what is left there.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import torch.distributed as dist
from tests.probes.storage.test_saving import phase, saver_of

from broadgauge.probes.failures import describe_failure
from broadgauge.probes.storage.own_folder import own_folder
from broadgauge.specs.workloads.workload import GptModel

SIZE, ROOM = 80 << 20, 1 << 20
SHAPE = GptModel(layers=4, hidden=128, heads=2).shape


def main(storage: Path, kind: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "small", storage], check=True)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    (storage / "theirs").touch()
    asked = phase(kind, model=SHAPE, files_bytes=12 * SHAPE.parameters)
    said = [_told(storage, asked)]
    subprocess.run(["mount", "-o", "remount,ro", storage], check=True)
    said.append(_told(storage, asked))
    left = sorted(path.name for path in storage.iterdir())
    sys.stdout.write(json.dumps({"said": said, "left": left}))


def _told(storage: Path, asked: object) -> list[str]:
    """The kind of the failure, and its words."""
    try:
        with own_folder(storage, "rank0", needed_bytes=ROOM) as folder:
            saver = saver_of(asked)
            _fill(storage / "theirs")
            saver.save(folder)
    except Exception as error:  # noqa: BLE001  whatever it is, it is told
        failed = describe_failure("t", error)
        return [failed.kind.value, failed.message]
    return ["ok", ""]


def _fill(path: Path) -> None:
    """Leaves less than the checkpoint needs."""
    status = os.statvfs(path)
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, status.f_bavail * status.f_frsize - ROOM)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
