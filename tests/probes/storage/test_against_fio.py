"""Do our plain reads and writes reach what fio reaches on the same file system?"""

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from broadgauge.probes.storage.accounting import Operations, Parts
from broadgauge.probes.storage.cache import BLOCK_TYPES, filesystem_type
from broadgauge.probes.storage.raw_files import DEPTH, LargeFile, takes_direct

pytestmark = [
    pytest.mark.slow,
    pytest.mark.thorough,
    pytest.mark.needs_cores,
    pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed"),
]
FILE_BYTES, BLOCK_BYTES = 256 * 2**20, 2**20
PAIRS = 7
"""Interleaved, since a disk that is shared drifts."""


@pytest.fixture
def large(tmp_path) -> LargeFile:
    kind = filesystem_type(tmp_path)
    if kind not in BLOCK_TYPES or not takes_direct(tmp_path, BLOCK_BYTES, FILE_BYTES):
        pytest.skip(f"{tmp_path} is on {kind}, which takes no O_DIRECT")
    return LargeFile(
        path=tmp_path / "large",
        file_bytes=FILE_BYTES,
        block_bytes=BLOCK_BYTES,
        is_direct=True,
        depth=DEPTH,
    )


def fio_rate(file: Path, access: str) -> float:
    """Bytes a second of one job with as many requests at once as we have."""
    command = [
        "fio", "--name=x", f"--filename={file}", f"--rw={access}", f"--bs={BLOCK_BYTES}",
        f"--size={FILE_BYTES}", "--direct=1", "--ioengine=libaio", f"--iodepth={DEPTH}",
        "--end_fsync=1", "--fallocate=none", "--output-format=json",
    ]  # fmt: skip
    if access == "write":  # into a new file, as ours: blocks that are there are written faster
        file.unlink(missing_ok=True)
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["jobs"][0][access]["bw_bytes"])


def our_rate(large: LargeFile, access: str) -> float:
    call = large.write if access == "write" else large.read
    if access == "write":
        large.path.unlink(missing_ok=True)
    begin_s = time.monotonic()
    done = call(Operations(), Parts())
    return done / (time.monotonic() - begin_s)


@pytest.mark.parametrize("access", ["write", "read"])
def test_at_least_nine_tenths_of_fios_bandwidth(large, access):
    large.write(Operations(), Parts())
    other = large.path.with_name("fio")
    fio_rate(other, "write")
    pairs = [(our_rate(large, access), fio_rate(other, access)) for _ in range(PAIRS)]
    ours, fios = zip(*pairs, strict=True)
    # Who shares the disk only ever takes from a rate: the best of each says what it can.
    assert max(ours) >= 0.9 * max(fios), pairs
