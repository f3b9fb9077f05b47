"""Proves that the program is told from what it wrote, and that anything else is one message."""

import bz2
import gzip
from pathlib import Path

import pytest
from tests.importing.reading import FILES, NCCL_TESTS, read, source

from broadgauge.importing.formats import program_of
from broadgauge.importing.source import read_files, without_secrets
from broadgauge.specs.errors import InputError

KNOWN = {
    NCCL_TESTS / "all_reduce.txt": "nccl-tests",
    NCCL_TESTS / "all_reduce.json": "nccl-tests",
    NCCL_TESTS / "nccl_debug.txt": "nccl-tests",
    FILES / "iperf3.json": "iperf3",
    FILES / "iperf3-udp.json": "iperf3",
    FILES / "iperf3-refused.json": "iperf3",
    FILES / "fio-randread.json": "fio",
    FILES / "fio-failed.json": "fio",
    FILES / "node0-pid1000.log": "nccl-inspector",
}


@pytest.mark.parametrize(("path", "program"), KNOWN.items(), ids=lambda each: Path(each).name)
def test_told_from_what_is_in_it(path: Path, program: str) -> None:
    (file,) = read_files(str(path))
    assert program_of(file) == program


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("step 12 took 0.5 s\n", "no program that is known; it begins 'step 12 took 0.5 s'"),
        ('\n{"loss": 1.5, "step": 3}\n', "file:2: nobody's JSON .* it has `loss`, `step`"),
        ("{}", "file:1: nobody's JSON that is known: it has no key"),
        ("[1, 2]", r"no program that is known; it begins '\[1, 2\]'"),
        ("{" * 100_000, "file:1: the JSON that begins here"),
        ('{"a": ' * 3000, "file:1: the JSON that begins here"),
    ],
)
def test_what_nobody_wrote_names_all_that_was_tried(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        program_of(source(text))
    if "broken" not in str(refused.value) and "can't be read" not in str(refused.value):
        for tried in ("nccl-tests", "iperf3", "fio", "NCCL Inspector"):
            assert tried in (refused.value.hint or "")


def test_asked_for_as_another() -> None:
    with pytest.raises(InputError, match="file0: start is missing"):
        read((FILES / "fio-randread.json").read_text(), program="iperf3")
    with pytest.raises(InputError, match="asked for as fio, and there is no JSON object"):
        read((NCCL_TESTS / "all_reduce.txt").read_text(), program="fio")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "is a program, no log"),
        (b"rows\x00\x01", "is no text: a zero byte at 4"),
        (b"PK\x03\x04zip", "is a zip archive"),
        (gzip.compress(b"# nThread" * 1000, mtime=0)[:-9], "can't be read to its end"),
    ],
)
def test_what_is_no_text(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_files(str(path))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_compressed_file_is_read_and_named_by_its_own_bytes(tmp_path: Path, pack) -> None:  # type: ignore[no-untyped-def]
    text = (NCCL_TESTS / "all_reduce.txt").read_bytes()
    path = tmp_path / "all_reduce.txt.packed"
    path.write_bytes(pack(text))
    (file,) = read_files(str(path))
    assert file.text == text.decode()
    assert file.content == path.read_bytes()


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(InputError, match=r"nowhere\.txt can't be read: No such file"):
        read_files("/nowhere.txt")


def test_values_of_secrets_are_not_kept() -> None:
    said = r'"env":["HF_TOKEN=hf_ab c\"d","HOME=/root","PROXY=http://me:pass@host"]'
    kept = without_secrets(f"{said} WANDB_API_KEY=123456")
    assert kept == ('"env":["HF_TOKEN=***","HOME=/root","PROXY=http://***@host"] WANDB_API_KEY=***')
    assert source("HOME=/root").without_secrets() == b"HOME=/root"
