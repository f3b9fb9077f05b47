"""Are files written whole, and do the parts of the time add up?"""

import ctypes
import errno
import os
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.messages.storage import DIRECT_BYTES
from broadgauge.probes.storage.file_systems import file_system_of
from broadgauge.probes.storage.page_cache import cached_bytes
from broadgauge.probes.storage.raw_files import (
    CONTENT_BYTES,
    HUGE_PAGE_BYTES,
    holds,
    random_requests,
    read_file,
    refuse_no_direct,
    request_memory,
    write_file,
)
from broadgauge.probes.trial import RefusedError


@given(st.integers(1, 20_000), st.integers(1, 3000))
def test_a_file_has_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, size: int, request_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("raw") / "file"
    requests = random_requests(size, request_bytes)
    written = write_file(path, requests, is_direct=False)
    assert path.stat().st_size == size
    assert holds(path, requests)
    assert written.operations_count == -(-size // request_bytes)
    assert written.seconds == sum(written.parts_s.values())
    assert list(written.parts_s) == ["open", "write", "fsync", "close", "fsync folder"]
    assert min(written.parts_s.values()) >= 0
    read = read_file(path, request_bytes, is_direct=False)
    assert read.operations_count == written.operations_count
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert not holds(path, requests)


def test_direct_requests_leave_nothing_in_memory(disk: Path) -> None:
    refuse_no_direct(disk)
    path, requests = disk / "file", random_requests(64 * DIRECT_BYTES, 16 * DIRECT_BYTES)
    write_file(path, requests, is_direct=True)
    read_file(path, 16 * DIRECT_BYTES, is_direct=True)
    fd = os.open(path, os.O_RDWR)
    file_system = file_system_of(disk)
    if file_system is not None and file_system.is_counted:  # others may go through it all the same
        assert cached_bytes(fd) in (0, None)
    os.close(fd)
    assert holds(path, requests)
    assert [each.name for each in disk.iterdir()] == ["file"]


def open_fails(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Where O_DIRECT is asked for, as the kernel does it: the file is there afterwards."""
    real = os.open

    def opened(path: Any, flags: int, *others: Any, **named: Any) -> int:
        if flags & os.O_DIRECT:
            os.close(real(path, flags & ~os.O_DIRECT, *others, **named))
            raise OSError(number, os.strerror(number), path)
        return real(path, flags, *others, **named)

    monkeypatch.setattr(os, "open", opened)


def test_a_file_system_without_direct_requests_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_fails(monkeypatch, errno.EINVAL)
    with pytest.raises(RefusedError, match="no requests past the page cache: `direct: false`"):
        refuse_no_direct(tmp_path)
    assert not list(tmp_path.iterdir())


def test_another_failure_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_fails(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        refuse_no_direct(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("request_bytes", [512, 4096, 3 << 20, 20 << 20])
def test_content_repeats_itself_no_sooner_than_file_systems_look(request_bytes: int) -> None:
    """Calls of 4 KiB that all had the same content were compressed to a thirtieth by Btrfs."""
    requests = random_requests(64 << 20, request_bytes)
    assert len(requests.content) >= CONTENT_BYTES
    assert len(zlib.compress(requests.content[:CONTENT_BYTES], 1)) > 0.99 * CONTENT_BYTES
    assert sum(len(content) for _, content in requests) == 64 << 20


def test_requests_lie_in_whole_huge_pages() -> None:
    for size_bytes in (1, DIRECT_BYTES, HUGE_PAGE_BYTES, HUGE_PAGE_BYTES + 1):
        room = request_memory(size_bytes)
        assert len(room) == size_bytes
        mapped = room.obj
        begin, begin_of_all = (address_of(each) for each in (room, mapped))
        assert begin % HUGE_PAGE_BYTES == 0
        last_bytes = begin_of_all + len(mapped) - (begin + size_bytes)
        assert last_bytes >= -size_bytes % HUGE_PAGE_BYTES


def address_of(room: Any) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(room))
