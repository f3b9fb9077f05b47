"""Proves messages/prepared_set.py: what is described is what lies there, else it says why not."""

import json
import re
from pathlib import Path

import pytest

from broadgauge.messages.prepared_set import (
    OFFSETS,
    TOKENS,
    PreparedSetError,
    check_content,
    read_prepared_set,
    token_bytes_of,
)
from broadgauge.tokenizing.synthetic_set import parse_synthetic, prepare_synthetic


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return prepare_synthetic(parse_synthetic("samples=20,mean_length=9"), tmp_path / "set").folder


def change(folder: Path, **changes: object) -> None:
    path = folder / "set.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_set_is_read_as_it_was_described(folder: Path) -> None:
    described = read_prepared_set(folder)
    check_content(folder, described)
    assert (described.num_samples, described.num_tokens) == (20, 180)
    assert described.key in described.description
    assert "20 samples, 180 tokens" in described.description
    change(folder, of_a_later_version=1)
    assert read_prepared_set(folder) == described


@pytest.mark.parametrize(("vocabulary", "size"), [(2, 2), (65_536, 2), (65_537, 4)])
def test_an_id_takes_two_bytes_while_they_suffice(vocabulary: int, size: int) -> None:
    assert token_bytes_of(vocabulary) == size


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": 2}, "has format 2, and this version reads 1"),
        ({"num_samples": 19}, "contradicts itself: 19 samples"),
        ({"token_bytes": 3}, "is no prepared set: token_bytes"),
        ({"num_tokens": "many"}, "is no prepared set: num_tokens: expected an integer"),
    ],
)
def test_what_can_not_be_is_said(folder: Path, changes: dict[str, object], words: str) -> None:
    change(folder, **changes)
    with pytest.raises(PreparedSetError, match=re.escape(words)):
        read_prepared_set(folder)


def test_a_file_that_is_torn_changed_or_gone_is_named(folder: Path) -> None:
    described = read_prepared_set(folder)
    tokens = bytearray((folder / TOKENS).read_bytes())
    tokens[7] ^= 1
    (folder / TOKENS).write_bytes(tokens)
    read_prepared_set(folder)
    with pytest.raises(PreparedSetError, match=r"tokens\.bin` was changed"):
        check_content(folder, described)
    (folder / TOKENS).write_bytes(tokens[:-2])
    with pytest.raises(PreparedSetError, match=r"tokens\.bin` has 358 bytes, .* says 360"):
        read_prepared_set(folder)
    (folder / TOKENS).write_bytes(tokens)
    (folder / OFFSETS).unlink()
    with pytest.raises(PreparedSetError, match=r"offsets\.bin` can't be read: No such file"):
        read_prepared_set(folder)


def test_a_folder_that_holds_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(PreparedSetError, match=r"has no set\.json: `broadgauge data prepare`"):
        read_prepared_set(tmp_path)
    with pytest.raises(PreparedSetError, match="is no folder"):
        read_prepared_set(tmp_path / "none")
    (tmp_path / "set.json").write_text("[" * 100_000)
    with pytest.raises(PreparedSetError, match="is no prepared set"):
        read_prepared_set(tmp_path)
