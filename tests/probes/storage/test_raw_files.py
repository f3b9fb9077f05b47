"""Are files written whole, and do the parts of the time add up?"""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.probes.storage.page_cache import cached_bytes
from broadgauge.probes.storage.raw_files import (
    ALIGNMENT,
    holds,
    random_request,
    read_file,
    write_file,
)


@given(st.integers(1, 20_000), st.integers(1, 3000))
def test_a_file_has_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, size: int, request_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("raw") / "file"
    request = random_request(request_bytes)
    written = write_file(path, size, request, is_direct=False)
    assert path.stat().st_size == size
    assert holds(path, size, request)
    assert written.operations_count == -(-size // request_bytes)
    assert written.seconds == sum(written.parts_s.values())
    assert list(written.parts_s) == ["open", "writing", "fsync", "close", "fsync folder"]
    assert min(written.parts_s.values()) >= 0
    read = read_file(path, request_bytes, is_direct=False)
    assert read.operations_count == written.operations_count
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert not holds(path, size, request)


def test_direct_requests_leave_nothing_in_memory(tmp_path: Path) -> None:
    path, request = tmp_path / "file", random_request(16 * ALIGNMENT)
    write_file(path, 64 * ALIGNMENT, request, is_direct=True)
    read_file(path, 16 * ALIGNMENT, is_direct=True)
    fd = os.open(path, os.O_RDWR)
    assert cached_bytes(fd) in (0, None)
    os.close(fd)
    assert holds(path, 64 * ALIGNMENT, request)
