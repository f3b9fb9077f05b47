"""Are files written and read as fast as fio does it, on the same folder at the same time?"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from statistics import median

import pytest
from tests.judgements import Note

from broadgauge.messages.storage import Access
from broadgauge.probes.storage.page_cache import let_go
from broadgauge.probes.storage.raw_files import (
    Requests,
    random_requests,
    read_file,
    sync_folder,
    write_file,
)

SIZE, REQUEST = 256 << 20, 1 << 20
ROUNDS = 11
LEAST = 0.90
"""Of fio's median rate: a call to the kernel takes longer from Python, and nothing else may."""


@pytest.fixture
def fio_folder(disk: Path) -> Path:
    if shutil.which("fio") is None:
        pytest.skip("no fio: apt install fio")
    return disk


@pytest.mark.measured
@pytest.mark.parametrize("access", ["write", "read"])
@pytest.mark.parametrize("is_direct", [True, False])
def test_files_are_moved_as_fast_as_fio_does_it(
    fio_folder: Path, access: Access, is_direct: bool, judgement: Note
) -> None:
    """In turns, each first as often: of a virtual disk rates of seconds ago say little."""
    requests = random_requests(SIZE, REQUEST)
    ours, fios = fio_folder / "ours", fio_folder / "fio"
    for path in (ours, fios):
        write_file(path, requests, is_direct=is_direct)
    rates: dict[Path, list[float]] = {ours: [], fios: []}
    for number in range(ROUNDS):
        for path in (ours, fios) if number % 2 else (fios, ours):
            if access == "write":
                path.unlink()
                sync_folder(fio_folder)
            else:
                _let_go(path)
            if path == ours:
                seconds = _our_seconds(path, access, requests, is_direct=is_direct)
            else:
                seconds = _fio_seconds(path, access, is_direct=is_direct)
            rates[path].append(SIZE / seconds / 1e9)
    ratio = median(rates[ours]) / median(rates[fios])
    told = {path.name: f"{median(of):.2f} ({min(of):.2f} to {max(of):.2f})" for path, of in
            rates.items()}  # fmt: skip
    judgement(
        f"{access}, {'direct' if is_direct else 'through the page cache'}",
        verdict="right" if ratio >= LEAST else "wrong",
        figure=f"{ratio:.2f} of fio's median",
        bound=f"at least {LEAST:.2f}",
        spread=f"GB/s: ours {told['ours']}, fio {told['fio']}",
        num_spans=ROUNDS,
    )
    assert ratio >= LEAST, told


def _let_go(path: Path) -> None:
    fd = os.open(path, os.O_RDWR)
    try:
        let_go(fd)
    finally:
        os.close(fd)


def _our_seconds(path: Path, access: Access, requests: Requests, *, is_direct: bool) -> float:
    if access == "write":
        return write_file(path, requests, is_direct=is_direct).seconds
    return read_file(path, requests.request_bytes, is_direct=is_direct).seconds


def _fio_seconds(path: Path, access: Access, *, is_direct: bool) -> float:
    """Of one process with calls like ours, one after the other, until the file is durable; fio
    makes the file as it begins to write, and says the time without its own start."""
    until_durable = ["--end_fsync=1", "--create_on_open=1", "--fallocate=none"]
    done = subprocess.run(
        [
            *("fio", "--name=peer", f"--filename={path}", f"--size={SIZE}", f"--bs={REQUEST}"),
            *(f"--rw={access}", "--ioengine=psync", f"--direct={int(is_direct)}"),
            *(until_durable if access == "write" else ()),
            "--output-format=json",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    (job,) = json.loads(done.stdout)["jobs"]
    assert job[access]["io_bytes"] == SIZE
    return SIZE / float(job[access]["bw_bytes"])
