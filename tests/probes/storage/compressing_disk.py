"""Makes the files of phases on a file system that compresses all that it can.

`unshare -m python -m tests.probes.storage.compressing_disk FOLDER` prints JSON: of each way of
making files, of their bytes, what the file system holds, and what it says as blocks. Takes root.
"""

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import torch.distributed as dist
from tests.probes.storage.btrfs_image import mount_image
from tests.probes.storage.test_batches import phase_of
from tests.probes.storage.test_loading import loader_of
from tests.probes.storage.test_loading import phase as load_phase
from tests.probes.storage.test_saving import phase as checkpoint_phase
from tests.probes.storage.test_saving import saver_of

from broadgauge.messages.storage import BatchSource, ModelFormat
from broadgauge.probes.storage.batch_files import write_samples
from broadgauge.probes.storage.held_files import held_ratio
from broadgauge.probes.storage.page_cache import sync_file_system
from broadgauge.probes.storage.raw_files import random_requests, write_file
from broadgauge.specs.workloads.workload import GptModel

SIZE = 4 << 20
SHAPE = GptModel(layers=2, hidden=256, heads=2, vocabulary=4096).shape
BLOCK_BYTES = 512
"""Of `st_blocks`. Source: stat(3type)."""


def main(place: Path) -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    mounted = place / "mounted"
    mounted.mkdir()
    mount_image(place / "image", mounted, "compress-force=zstd")
    told = {}
    for name, make in makers().items():
        folder = mounted / name
        folder.mkdir()
        make(folder)
        sync_file_system(folder)
        files = [path for path in folder.rglob("*") if path.is_file()]
        size_bytes = sum(path.stat().st_size for path in files)
        blocks_bytes = sum(path.stat().st_blocks for path in files) * BLOCK_BYTES
        told[name] = {"held": held_ratio(files), "blocks": blocks_bytes / size_bytes}
    sys.stdout.write(json.dumps(told))


def makers() -> Mapping[str, Callable[[Path], object]]:
    """By phase and way: into an empty folder."""
    models: tuple[ModelFormat, ...] = ("safetensors", "torch")
    sources: tuple[BatchSource, ...] = ("jsonl", "files", "webdataset")
    return {
        "ones": lambda folder: (folder / "ones").write_bytes(b"\1" * SIZE),
        "raw": partial(_raw, 1 << 20),
        "raw, short calls": partial(_raw, 4096),
        "checkpoint": lambda folder: saver_of(checkpoint_phase("torch", model=SHAPE)).save(folder),
        **{f"load {kind}": partial(_model, kind) for kind in models},
        **{f"batches {source}": partial(_batches, source) for source in sources},
    }


def _raw(request_bytes: int, folder: Path) -> None:
    write_file(folder / "raw", random_requests(SIZE, request_bytes), is_direct=False)


def _model(kind: ModelFormat, folder: Path) -> None:
    loader_of(load_phase(kind, model=SHAPE)).write(folder, is_writer=True)


def _batches(source: BatchSource, folder: Path) -> None:
    write_samples(folder, phase_of(source, samples=256, sample_size="16 KiB"), readers=2)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
