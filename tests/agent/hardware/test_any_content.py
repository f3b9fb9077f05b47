"""Proves that no content of the kernel's files stops the readers, nor the rules behind them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agent.hardware import machines

from broadgauge.agent.hardware.reading import read_machine_hardware
from broadgauge.agent.hardware.tree import MOST_BYTES, Tree, count_of_list, to_number
from broadgauge.doctor.host.findings import host_findings

CONTENTS = st.one_of(
    st.just(b""),
    st.binary(max_size=60),
    st.text(alphabet="0123456789-,.:=/ \n\tabcxGMK", max_size=60).map(str.encode),
    st.integers().map(lambda number: str(number).encode()),
    st.sampled_from(
        [b"9" * 5000, b"-" * 9, b"0x", b"\xff\xfe", b"max max", b"\0" * 70, b"1\n" * 9]
    ),
)
PLACES = ("folder", "pipe", "loop", "gone")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    root = tmp_path_factory.mktemp("machine")
    machine = machines.roce(root, pairs=1)
    machine.nic("eth0", speed=10000, is_pair=True, address="10.0.0.1/8", is_default=True)
    machine.acs("0000:12:00.0", 0x1D)
    machine.files("/sys/fs/cgroup", {"cpu.max": "max 100000", "memory.max": "max"})
    machine.file("/etc/nccl.conf", "NCCL_IB_GID_INDEX=3\n")
    machine.file("/proc/net/if_inet6", "fd" + "0" * 30 + " 04 40 00 82 eth0\n")
    files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    return root, files


@contextmanager
def changed(path: Path, content: bytes | str) -> Iterator[None]:
    before = path.read_bytes()
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.unlink()
        replace(path, content)
    try:
        yield
    finally:
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)
        path.write_bytes(before)


def replace(path: Path, place: str) -> None:
    if place == "folder":
        path.mkdir()
    elif place == "pipe":
        os.mkfifo(path)
    elif place == "loop":
        path.symlink_to(path.name)


@settings(max_examples=80, deadline=None)
@given(number=st.integers(min_value=0, max_value=10**6), content=CONTENTS)
def test_any_content(tree: tuple[Path, list[Path]], number: int, content: bytes) -> None:
    root, files = tree
    with changed(files[number % len(files)], content):
        host_findings(read_machine_hardware(root, {}))


@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_file_is_unknown(tree: tuple[Path, list[Path]], place: str) -> None:
    root, files = tree
    for path in files[::7]:
        with changed(path, place):
            host_findings(read_machine_hardware(root, {}))


@settings(max_examples=60, deadline=None)
@given(value=st.text(max_size=40), name=st.sampled_from(["IB_HCA", "SOCKET_IFNAME", "ALGO", "NET"]))
def test_any_variable(tree: tuple[Path, list[Path]], value: str, name: str) -> None:
    root, _ = tree
    host_findings(read_machine_hardware(root, {f"NCCL_{name}": value, f"NCCL_{value}": name}))


def test_the_beginning_of_a_huge_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "huge").write_bytes(b"a" * (MOST_BYTES + 9))
    assert len(Tree(tmp_path).data("/huge") or b"") == MOST_BYTES


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("-1", -1),
        ("42", 42),
        ("9" * 30, None),
        ("", None),
        ("0x1", None),
        ("٣", None),
        ("--1", None),
    ],
)
def test_numbers(text: str, number: int | None) -> None:
    assert to_number(text) == number


@pytest.mark.parametrize(
    ("text", "count"),
    [("0-3,8", 5), ("0", 1), ("", None), ("3-1", None), ("a", None), ("0-", 1), (None, None)],
)
def test_lists(text: str | None, count: int | None) -> None:
    assert count_of_list(text) == count
