"""Is it told what a file system compresses, and nothing else?"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.advise.limits import HELD_LEAST
from broadgauge.probes.storage.file_systems import file_system_of
from broadgauge.probes.storage.held_files import Extent, extents_of, held_ratio, saved_bytes


@pytest.mark.btrfs
@pytest.mark.measuring
def test_what_btrfs_compresses(tmp_path: Path, repository: Path) -> None:
    """JSON lines are base64, of which three quarters are left; all else that phases write is
    random, but for names and sizes."""
    program = [sys.executable, "-m", "tests.probes.storage.compressing_disk", str(tmp_path)]
    done = subprocess.run(
        ["unshare", "-m", *program], capture_output=True, text=True, cwd=repository, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    held = {name: each["held"] for name, each in told.items()}
    assert held.pop("ones") < 0.1
    assert 0.7 < held.pop("batches jsonl") < 0.85
    assert min(held.values()) > HELD_LEAST, held
    assert held["raw"] == held["raw, short calls"] == held["batches files"] == 1
    # Why blocks are not asked.
    assert all(each["blocks"] >= 1 for each in told.values()), told


@given(st.lists(st.tuples(st.integers(1, 100), st.floats(0.01, 1)), min_size=1))
def test_no_more_is_saved_than_there_is_in_truth(written: list[tuple[int, float]]) -> None:
    """Of extents that lie one behind the other, the last one's end alone is not known."""
    extents, place, saved = [], 0, []
    for length, ratio in written:
        held = max(1, int(length * ratio))
        extents.append(Extent(length_bytes=length, place=place, is_compressed=held < length))
        saved.append(length - held)
        place += held
    assert saved_bytes(extents) == saved_bytes(extents[::-1]) == sum(saved[:-1])
    apart = [
        Extent(length_bytes=each.length_bytes, place=each.place * 1000, is_compressed=True)
        for each in extents
    ]
    assert saved_bytes(apart) <= sum(saved)


def test_extents_of_a_file_cover_it(disk: Path) -> None:
    """In more pieces than are asked for at once: every second block is a hole."""
    file_system = file_system_of(disk)
    if file_system is None or not file_system.is_counted:
        pytest.skip("not ext4, XFS or their kind")
    path, block, count = disk / "file", 1 << 16, 600
    with path.open("wb", buffering=0) as file:
        for number in range(count):
            file.seek(2 * number * block)
            file.write(b"x" * block)
    with path.open("r+b") as file:
        subprocess.run(["sync", path], check=True)
        extents = list(extents_of(file.fileno()))
    assert len(extents) >= count
    assert sum(extent.length_bytes for extent in extents) == count * block
    assert not any(extent.is_compressed for extent in extents)
    assert held_ratio([path]) == 1.0


def test_of_files_in_memory_nothing_is_known(tmp_path: Path) -> None:
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(b"x" * 10_000)
        file.flush()
        assert held_ratio([Path(file.name)]) is None
    assert held_ratio([]) is None
    (tmp_path / "empty").touch()
    assert held_ratio([tmp_path / "empty"]) is None
