"""What do two ranks say of files that they share, or do not?

`python -m tests.probes.storage.two_ranks RANK FOLDER` prints JSON: each answer by its name.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch.distributed as dist
from tests.probes.storage.test_saving import ALONE

from broadgauge.probes.storage import shared_files
from broadgauge.probes.storage.cache_proof import SeenRead
from broadgauge.probes.storage.shared_files import CacheSharers, SharedFolder, shared_folder

SIZE = 1000


def together(rank: int, folder: Path) -> SeenRead:
    """Of a cold file one rank has read 400 bytes, the other 600."""
    return _seen_together(folder / "file", SIZE, device_bytes=400 + 200 * rank)


def apart(rank: int, folder: Path) -> SeenRead:
    """Files of their own."""
    return _seen_together(folder / f"file{rank}", 600, device_bytes=400 + 200 * rank)


def on_other_machines(rank: int, folder: Path) -> SeenRead:
    """The same numbers of device and file, below another kernel."""
    before, shared_files.BOOT = shared_files.BOOT, folder / f"boot{rank}"
    shared_files.BOOT.write_text(str(rank))
    try:
        return _seen_together(folder / "file", SIZE, device_bytes=900 + rank)
    finally:
        shared_files.BOOT = before


def of_all(rank: int, folder: Path) -> SharedFolder:
    return _shared_below(folder / "all", rank)


def of_each_node(rank: int, folder: Path) -> SharedFolder:
    return _shared_below(folder / f"node{rank}", rank)


def _seen_together(path: Path, needed_bytes: int, device_bytes: int) -> SeenRead:
    path.touch()
    sharers = CacheSharers(path, dist.group.WORLD)
    seen = SeenRead(size_bytes=SIZE, device_bytes=device_bytes, cached_before_bytes=0)
    return sharers.seen_together(needed_bytes, seen)


def _shared_below(folder: Path, rank: int) -> SharedFolder:
    own = folder / f"rank{rank}"
    own.mkdir(parents=True)
    dist.barrier()
    return shared_folder(own, replace(ALONE, rank=rank, world_size=2, node=rank), dist.group.WORLD)


WORK: tuple[Callable[[int, Path], Any], ...] = (
    together,
    apart,
    on_other_machines,
    of_all,
    of_each_node,
)


def main(rank: int, folder: Path) -> None:
    store = dist.FileStore(str(folder / "store"), 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    found = {}
    for each in WORK:
        own = folder / each.__name__
        own.mkdir(exist_ok=True)
        found[each.__name__] = asdict(each(rank, own))
        dist.barrier()
    sys.stdout.write(json.dumps(found, default=str))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
